// SPDX-License-Identifier: BSD-2-Clause
//
// The fault table once more, for what a person is told (verbatim/explain.h): who, which request,
// which key, what was asked and what there was, and what to do. At both ends.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>

#include "tests/shm/explain_text.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Explain : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(Explain, each_way());

class ExplainProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainProcesses, between_processes());

/// Two connected queue pairs at a time, and memory at both ends.
struct Scene {
  explicit Scene(Setting setting, const PairWish& wish = {})
      : pair(setting, wish),
        local(pair.a.allocate(setting.memory, 8192)),
        remote(pair.b.allocate(setting.memory, 8192)) {
    renew();
  }

  /// The processes have met when it returns: who they are is known.
  void renew() {
    std::tie(qa, qb) = pair.add_qps({}, {});
    expect_posted(pair.b.post_receive(qb, receive(1)));
    expect_posted(pair.a.post_send(qa, send(1, {})));
    expect_wc(pair.a.poll_sends(qa, 1)[0], 1, IBV_WC_SEND, qa);
    expect_receive(pair.b.poll_receives(qb, 1)[0], 1, 0, qb);
  }

  /// Posts `request` at `a`, which must fail, and what is said of it.
  std::string fail(Request request, ibv_wc_status status) {
    request.wr_id = kId;
    expect_posted(pair.a.post_send(qa, request));
    const ibv_wc wc = pair.a.poll_sends(qa, 1)[0];
    expect_error(wc, kId, status, qa);
    return pair.a.explain(qa, wc);
  }
  /// What `b` says of itself, once it has its event.
  std::string responder(int event) {
    EXPECT_EQ(pair.b.take_async_event().type, event);
    return pair.b.explain(qb);
  }
  std::string pid_of(Side& side) const {
    return text("process %d ", side.is_child() ? side.child().pid() : ::getpid());
  }
  /// Who is at which end, and which request it was.
  auto names_all(const char* request) {
    return AllOf(StartsWith(qp(qa) + " (RC, " + pid_of(pair.a)), HasSubstr(" to " + qp(qb) + " ("),
                 HasSubstr(pid_of(pair.b)), HasSubstr(text("%s, wr_id %llu: ", request, 4711ull)),
                 HasSubstr("; fix: "), Not(HasSubstr("\n")));
  }
  auto names_peers(const char* request) {
    return AllOf(StartsWith(qp(qb) + " (RC, " + pid_of(pair.b)), HasSubstr(" to " + qp(qa) + " ("),
                 HasSubstr(pid_of(pair.a)), HasSubstr(text("the peer's %s: ", request)),
                 HasSubstr("; fix: "));
  }

  Pair pair;
  QpInfo qa, qb;
  RegionInfo local, remote;
};

TEST_P(Explain, ALocalKeyWithItsRangeAndRights) {
  Scene scene(GetParam());
  Slice piece = slice(scene.local, 0, 64);
  piece.lkey = scene.local.lkey ^ 0x80000000u;
  EXPECT_THAT(scene.fail(send(0, SliceList{slice(scene.local, 0, 8), piece}), IBV_WC_LOC_PROT_ERR),
              AllOf(scene.names_all("SEND"), HasSubstr("local protection error"),
                    HasSubstr("lkey " + key(piece.lkey) + " of SGE 1"),
                    HasSubstr(range(scene.local.address, 64)), HasSubstr("no memory region")));
  scene.renew();
  EXPECT_THAT(
      scene.fail(write(0, slice(scene.local, 8000, 200), scene.remote), IBV_WC_LOC_PROT_ERR),
      AllOf(scene.names_all("RDMA_WRITE"), HasSubstr("lkey " + key(scene.local.lkey)),
            HasSubstr(range(scene.local.address + 8000, 200)),
            HasSubstr(range(scene.local.address, 8192)),
            HasSubstr("ends 8 bytes before the request does")));
  scene.renew();
  const RegionInfo foreign = scene.pair.a.register_foreign(scene.local);
  EXPECT_THAT(scene.fail(send(0, slice(foreign, 0, 64)), IBV_WC_LOC_PROT_ERR),
              AllOf(scene.names_all("SEND"), HasSubstr("lkey " + key(foreign.lkey)),
                    HasSubstr("another protection domain")));
  scene.renew();
  const RegionInfo constant =
      scene.pair.a.register_part(scene.local, 0, 8192, IBV_ACCESS_REMOTE_READ);
  EXPECT_THAT(scene.fail(read(0, slice(constant, 16, 64), scene.remote), IBV_WC_LOC_PROT_ERR),
              AllOf(scene.names_all("RDMA_READ"),
                    HasSubstr("asked LOCAL_WRITE of " + range(scene.local.address + 16, 64)),
                    HasSubstr("the region has REMOTE_READ of"),
                    HasSubstr("the right LOCAL_WRITE is missing")));
}

TEST_P(Explain, ARemoteKeyThatMeansNothingAtBothEnds) {
  Scene scene(GetParam());
  RegionInfo wrong = scene.remote;
  wrong.rkey ^= 0x80000000u;
  const auto names = AllOf(HasSubstr("remote access error"), HasSubstr("rkey " + key(wrong.rkey)),
                           HasSubstr("asked REMOTE_WRITE of " + range(wrong.address + 8, 64)),
                           HasSubstr("no memory region has this key"));
  EXPECT_THAT(scene.fail(write(0, slice(scene.local, 0, 64), wrong, 8), IBV_WC_REM_ACCESS_ERR),
              AllOf(scene.names_all("RDMA_WRITE"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_ACCESS_ERR),
              AllOf(scene.names_peers("RDMA_WRITE"), names));
}

TEST_P(Explain, ARemoteRangeOutsideItsRegionAtBothEnds) {
  Scene scene(GetParam());
  const RegionInfo part = scene.pair.b.register_part(scene.remote, 4096, 1024);
  const auto names = AllOf(HasSubstr("rkey " + key(part.rkey)),
                           HasSubstr("asked REMOTE_READ of " + range(part.address + 1000, 100)),
                           HasSubstr(" of " + range(part.address, 1024)),
                           HasSubstr("ends 76 bytes before the request does"));
  EXPECT_THAT(scene.fail(read(0, slice(scene.local, 0, 100), part, 1000), IBV_WC_REM_ACCESS_ERR),
              AllOf(scene.names_all("RDMA_READ"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_ACCESS_ERR),
              AllOf(scene.names_peers("RDMA_READ"), names));
  scene.renew();
  EXPECT_THAT(scene.fail(write(0, slice(scene.local, 0, 8), part, ~std::uint64_t{7}),
                         IBV_WC_REM_ACCESS_ERR),
              HasSubstr("begins 8 bytes before it"));
}

TEST_P(Explain, ARightThatTheRegionLacksAtBothEnds) {
  Scene scene(GetParam());
  const RegionInfo only = scene.pair.b.register_part(scene.remote, 0, 64, IBV_ACCESS_REMOTE_READ);
  const auto names = AllOf(HasSubstr("asked REMOTE_ATOMIC of " + range(only.address + 8, 8)),
                           HasSubstr("the region has REMOTE_READ of " + range(only.address, 64)),
                           HasSubstr("the right REMOTE_ATOMIC is missing"),
                           HasSubstr("fix: register the memory with IBV_ACCESS_REMOTE_ATOMIC"));
  EXPECT_THAT(scene.fail(fetch_add(0, slice(scene.local, 0, 8), only, 8, 1), IBV_WC_REM_ACCESS_ERR),
              AllOf(scene.names_all("FETCH_AND_ADD"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_ACCESS_ERR),
              AllOf(scene.names_peers("FETCH_AND_ADD"), names));
}

TEST_P(Explain, AKeyOfAnotherDomainAtBothEnds) {
  Scene scene(GetParam());
  const RegionInfo foreign = scene.pair.b.register_foreign(scene.remote);
  const auto names =
      AllOf(HasSubstr("rkey " + key(foreign.rkey)), HasSubstr("another protection domain"));
  EXPECT_THAT(scene.fail(write(0, slice(scene.local, 0, 8), foreign), IBV_WC_REM_ACCESS_ERR),
              AllOf(scene.names_all("RDMA_WRITE"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_ACCESS_ERR),
              AllOf(scene.names_peers("RDMA_WRITE"), names));
}

TEST_P(Explain, TheAccessFlagsOfTheQueuePairAtBothEnds) {
  PairWish wish;
  wish.link_b.access = IBV_ACCESS_REMOTE_READ;
  Scene scene(GetParam(), wish);
  const auto names =
      AllOf(HasSubstr("remote invalid request error"), HasSubstr("RDMA_WRITE needs REMOTE_WRITE"),
            HasSubstr(" are REMOTE_READ; "), HasSubstr("qp_access_flags"));
  EXPECT_THAT(scene.fail(write(0, slice(scene.local, 0, 8), scene.remote), IBV_WC_REM_INV_REQ_ERR),
              AllOf(scene.names_all("RDMA_WRITE"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_REQ_ERR), AllOf(scene.names_peers("RDMA_WRITE"), names));
}

TEST_P(Explain, AnAtomicThatIsNotAlignedAtBothEnds) {
  Scene scene(GetParam());
  const auto names = HasSubstr(text("remote address 0x%llx is no multiple of 8",
                                    static_cast<unsigned long long>(scene.remote.address + 4)));
  EXPECT_THAT(scene.fail(compare_swap(0, slice(scene.local, 0, 8), scene.remote, 4, 0, 1),
                         IBV_WC_REM_INV_REQ_ERR),
              AllOf(scene.names_all("CMP_AND_SWP"), names));
  EXPECT_THAT(scene.responder(IBV_EVENT_QP_REQ_ERR),
              AllOf(scene.names_peers("CMP_AND_SWP"), names));
}

TEST_P(Explain, AMessageLongerThanItsReceiveByBothLengths) {
  Scene scene(GetParam());
  for (const std::uint64_t size : {40u, 5000u}) {
    expect_posted(
        scene.pair.b.post_receive(scene.qb, receive(9, slice(scene.remote, 0, size - 1))));
    const std::string lengths = text("message has %u bytes", static_cast<unsigned>(size));
    const std::string room = text(" takes %u; ", static_cast<unsigned>(size - 1));
    EXPECT_THAT(scene.fail(send(0, slice(scene.local, 0, size)), IBV_WC_REM_INV_REQ_ERR),
                AllOf(scene.names_all("SEND"), HasSubstr(lengths), HasSubstr(room)));
    const ibv_wc wc = scene.pair.b.poll_receives(scene.qb, 1)[0];
    expect_error(wc, 9, IBV_WC_LOC_LEN_ERR, scene.qb);
    EXPECT_THAT(scene.pair.b.explain(scene.qb, wc),
                AllOf(HasSubstr("a receive, wr_id 9: local length error"), HasSubstr(lengths),
                      HasSubstr(room)));
    scene.renew();
  }
}

TEST_P(Explain, ABadReceiveAtItsOwnerAndAtTheSender) {
  Scene scene(GetParam());
  Slice bad = slice(scene.remote, 128, 64);
  bad.lkey ^= 0x80000000u;
  expect_posted(
      scene.pair.b.post_receive(scene.qb, receive(9, SliceList{slice(scene.remote, 0, 64), bad})));
  const auto names =
      AllOf(HasSubstr("lkey " + key(bad.lkey) + " of SGE 1"),
            HasSubstr("asked LOCAL_WRITE of " + range(bad.offset + scene.remote.address, 64)),
            HasSubstr("no memory region"));
  EXPECT_THAT(scene.fail(send(0, slice(scene.local, 0, 65)), IBV_WC_REM_OP_ERR),
              AllOf(scene.names_all("SEND"), HasSubstr("the peer has posted"), names));
  const ibv_wc wc = scene.pair.b.poll_receives(scene.qb, 1)[0];
  expect_error(wc, 9, IBV_WC_LOC_PROT_ERR, scene.qb);
  EXPECT_THAT(scene.pair.b.explain(scene.qb, wc),
              AllOf(HasSubstr("a receive, wr_id 9: local protection error"), names));
}

TEST_P(Explain, HowLongAReceiveWasWaitedFor) {
  PairWish wish;
  wish.link_a.rnr_retry = 2;
  wish.link_b.min_rnr_timer = 14;  // of IBTA table 45: 1.28 ms
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  expect_posted(pair.a.post_send(pair.qa, send(kId, slice(local, 0, 8))));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  expect_error(wc, kId, IBV_WC_RNR_RETRY_EXC_ERR, pair.qa);
  EXPECT_THAT(pair.a.explain(pair.qa, wc),
              AllOf(HasSubstr("SEND, wr_id 4711: RNR retry counter exceeded"),
                    HasSubstr("no receive posted after "), HasSubstr("min_rnr_timer 14: 1280 us"),
                    HasSubstr("rnr_retry 2)"), HasSubstr("fix: post receives")));
}

/// Three tries, 4 ms each.
PairWish impatient() {
  PairWish wish;
  wish.connected = false;
  wish.link_a.timeout = wish.link_b.timeout = 10;
  wish.link_a.retry_count = wish.link_b.retry_count = 2;
  return wish;
}

std::string after_timeout(Side& side, const QpInfo& from, const RegionInfo& local) {
  expect_posted(side.post_send(from, send(kId, slice(local, 0, 8))));
  const ibv_wc wc = side.poll_sends(from, 1)[0];
  expect_error(wc, kId, IBV_WC_RETRY_EXC_ERR, from);
  return side.explain(from, wc);
}

TEST_P(Explain, APeerThatIsNotReadyByItsState) {
  const PairWish wish = impatient();
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  ASSERT_EQ(pair.b.call<&Endpoint::to_init>(pair.qb.id, Link{}), 0);
  pair.a.connect(pair.qa, pair.qb, wish.link_a);
  EXPECT_THAT(after_timeout(pair.a, pair.qa, local),
              AllOf(HasSubstr("transport retry counter exceeded"),
                    HasSubstr(qp(pair.qb) + " is in state INIT"), HasSubstr("timeout 10: 4194 us"),
                    HasSubstr("retry_cnt 2)")));
}

TEST_P(Explain, APeerThatHasFailedOrGone) {
  PairWish wish = impatient();
  wish.connected = true;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
  EXPECT_THAT(after_timeout(pair.a, pair.qa, local),
              HasSubstr(qp(pair.qb) + " is in the error state"));
  const auto [qa, qb] = pair.add_qps({}, {});
  pair.a.to_state(qa, IBV_QPS_RESET);
  pair.a.connect(qa, qb, wish.link_a);
  pair.b.call<&Endpoint::destroy_qp>(qb.id);
  EXPECT_THAT(after_timeout(pair.a, qa, local),
              AllOf(HasSubstr("has no " + qp(qb)), HasSubstr("timeout 10")));
}

TEST_P(Explain, APeerThatNeverWas) {
  const PairWish wish = impatient();
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  QpInfo nobody = pair.qb;
  nobody.qpn = (pair.qa.qpn ^ pair.qb.qpn ^ 0x7f3000u) | 1;  // of a block that nobody has
  pair.a.connect(pair.qa, nobody, wish.link_a);
  EXPECT_THAT(after_timeout(pair.a, pair.qa, local),
              AllOf(HasSubstr("no process has " + qp(nobody)), HasSubstr("VERBATIM_FABRIC")));
}

TEST_P(Explain, APeerThatIsConnectedElsewhere) {
  const PairWish wish = impatient();
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const QpInfo third = pair.a.create_qp();
  pair.b.connect(pair.qb, third, wish.link_b);
  pair.a.connect(pair.qa, pair.qb, wish.link_a);
  EXPECT_THAT(
      after_timeout(pair.a, pair.qa, local),
      AllOf(HasSubstr(qp(pair.qb) + " is connected to " + qp(third)), HasSubstr("dest_qp_num")));
}

TEST_P(ExplainProcesses, AProcessThatDiedByItsNumberAndName) {
  Scene scene(GetParam());
  const std::string pid = scene.pid_of(scene.pair.b);
  expect_posted(scene.pair.a.post_send(scene.qa, send(kId, slice(scene.local, 0, 8))));
  scene.pair.b.child().kill_and_collect();
  const ibv_wc wc = scene.pair.a.poll_sends(scene.qa, 1)[0];
  expect_error(wc, kId, IBV_WC_RETRY_EXC_ERR, scene.qa);
  EXPECT_THAT(
      scene.pair.a.explain(scene.qa, wc),
      AllOf(HasSubstr(" to " + qp(scene.qb) + " (" + pid + program_invocation_short_name + ")"),
            HasSubstr("SEND, wr_id 4711"), HasSubstr("its process has ended")));
}

TEST_P(Explain, AFlushByWhatCameFirst) {
  Scene scene(GetParam());
  RegionInfo wrong = scene.remote;
  wrong.rkey ^= 0x80000000u;
  expect_posted(scene.pair.a.post_receive(scene.qa, receive(77, slice(scene.local, 0, 64))));
  expect_posted(scene.pair.a.post_send(
      scene.qa, {write(1, slice(scene.local, 0, 8), wrong), send(2, slice(scene.local, 0, 8))}));
  const auto sent = scene.pair.a.poll_sends(scene.qa, 2);
  const auto received = scene.pair.a.poll_receives(scene.qa, 1);
  const auto names = HasSubstr(
      "flushed: what came first: RDMA_WRITE, wr_id 1: remote access error: "
      "rkey " +
      key(wrong.rkey));
  EXPECT_THAT(scene.pair.a.explain(scene.qa, sent[1]), AllOf(HasSubstr("wr_id 2: "), names));
  EXPECT_THAT(scene.pair.a.explain(scene.qa, received[0]), AllOf(HasSubstr("wr_id 77: "), names));
  EXPECT_THAT(scene.pair.a.explain(scene.qa), HasSubstr(": RDMA_WRITE, wr_id 1: remote access"));
}

TEST_P(Explain, AFlushThatTheProgramAskedFor) {
  Scene scene(GetParam());
  expect_posted(scene.pair.a.post_receive(scene.qa, receive(77, slice(scene.local, 0, 64))));
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_ERR), 0);
  EXPECT_THAT(
      scene.pair.a.explain(scene.qa, scene.pair.a.poll_receives(scene.qa, 1)[0]),
      AllOf(HasSubstr("wr_id 77: flushed: "), HasSubstr("the program moved the queue pair")));
}

TEST_P(Explain, NothingAfterAReset) {
  Scene scene(GetParam());
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_ERR), 0);
  EXPECT_NE(scene.pair.a.explain(scene.qa), "");
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_RESET), 0);
  EXPECT_EQ(scene.pair.a.explain(scene.qa), "");
}

TEST_P(Explain, InTheLogOnceForEachQueuePair) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "the log is not watched (VERBATIM_LOG is set)";
  Scene scene(GetParam());
  RegionInfo wrong = scene.remote;
  wrong.rkey ^= 0x80000000u;
  const Request request = write(0, slice(scene.local, 0, 8), wrong);
  const std::string told = scene.fail(request, IBV_WC_REM_ACCESS_ERR);
  const std::string answered = scene.responder(IBV_EVENT_QP_ACCESS_ERR);
  expect_posted(scene.pair.a.post_send(scene.qa, request));
  expect_error(scene.pair.a.poll_sends(scene.qa, 1)[0], 0, IBV_WC_WR_FLUSH_ERR, scene.qa);
  const auto lines = watch->explanations();
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre("verbatim: " + told, "verbatim: " + answered));
}

}  // namespace
}  // namespace verbatim::harness
