// SPDX-License-Identifier: BSD-2-Clause
//
// What is said (verbatim/explain.h) of memory windows, of shared receives, of receives whose memory
// went after the message came, of atomics without room for what they fetch, and of a peer that is
// stopped in the middle of a copy. Of RC, at both ends.
#include <gmock/gmock.h>
#include <signal.h>

#include <future>

#include "tests/shm/explain_text.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// `b` holds the windows and the receives, `a` asks.
struct Asked {
  explicit Asked(Setting setting, const PairWish& wish = {})
      : pair(setting, wish),
        local(pair.a.allocate(setting.memory, 8192)),
        memory(pair.b.allocate(setting.memory, 8192, kAllAccess | IBV_ACCESS_MW_BIND)) {}

  WindowBind words(const WindowInfo& window, const RegionInfo& of) {
    WindowBind bind;
    bind.wr_id = kId;
    bind.window = window.id;
    bind.region = of.id;
    bind.rkey = ibv_inc_rkey(pair.b.call<&Endpoint::window_key>(window.id));
    bind.address = of.address;
    bind.length = 1024;
    bind.access = IBV_ACCESS_REMOTE_WRITE;
    return bind;
  }
  /// A window of type 2 that is open to the first pair.
  RegionInfo open() {
    const WindowInfo window = pair.b.allocate_window(IBV_MW_TYPE_2);
    EXPECT_EQ(pair.b.bind_window(pair.qb, words(window, memory)), 0);
    expect_wc(pair.b.poll_sends(pair.qb, 1)[0], kId, IBV_WC_BIND_MW, pair.qb);
    RegionInfo shown = memory;
    shown.rkey = pair.b.call<&Endpoint::window_key>(window.id);
    return shown;
  }
  std::string fail(Request request, ibv_wc_status status, const QpInfo& from) {
    request.wr_id = kId;
    expect_posted(pair.a.post_send(from, request));
    const ibv_wc wc = pair.a.poll_sends(from, 1)[0];
    expect_error(wc, kId, status, from);
    return pair.a.explain(from, wc);
  }
  std::string failed_bind(const QpInfo& on) {
    const ibv_wc wc = pair.b.poll_sends(on, 1)[0];
    expect_error(wc, kId, IBV_WC_MW_BIND_ERR, on);
    return pair.b.explain(on, wc);
  }
  std::string suffered(const QpInfo& by) {
    EXPECT_EQ(pair.b.take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
    return pair.b.explain(by);
  }

  Pair pair;
  RegionInfo local, memory;
};

class ExplainWindow : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainWindow, each_way());
class ExplainReceive : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainReceive, each_way());
constexpr Setting kStoppedPeer[] = {{Placement::kTwoProcesses, MemoryKind::kMapped}};
class ExplainStopped : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainStopped, kStoppedPeer);

TEST_P(ExplainWindow, ThatIsAnotherQueuePairsAtBothEnds) {
  Asked scene(GetParam());
  const RegionInfo shown = scene.open();
  const auto [qa, qb] = scene.pair.add_qps({}, {});
  const auto names =
      AllOf(HasSubstr("remote access error"), HasSubstr("rkey " + key(shown.rkey)),
            HasSubstr("it is a memory window of another queue pair or protection domain; fix: bind "
                      "a window for this queue pair"));
  EXPECT_THAT(scene.fail(write(0, slice(scene.local, 0, 8), shown), IBV_WC_REM_ACCESS_ERR, qa),
              AllOf(HasSubstr("RDMA_WRITE, wr_id 4711: "), names));
  EXPECT_THAT(scene.suffered(qb), AllOf(HasSubstr("the peer's RDMA_WRITE: "), names));
}

TEST_P(ExplainWindow, ThatCouldNotBeBoundOrClosedByItsKey) {
  Asked scene(GetParam());
  const RegionInfo shown = scene.open();
  const RegionInfo closed = scene.pair.b.register_part(scene.memory, 0, 8192, kAllAccess);
  const WindowInfo window = scene.pair.b.allocate_window(IBV_MW_TYPE_2);
  const WindowBind bind = scene.words(window, closed);  // of no right to be bound to
  ASSERT_EQ(scene.pair.b.bind_window(scene.pair.qb, bind), 0);
  EXPECT_THAT(scene.failed_bind(scene.pair.qb),
              AllOf(HasSubstr("BIND_MW, wr_id 4711: memory management operation error"),
                    HasSubstr("the memory window " + key(bind.rkey) +
                              " could not be bound: its "
                              "region lacks MW_BIND; fix: register")));
  const auto [qa, qb] = scene.pair.add_qps({}, {});
  expect_posted(scene.pair.b.post_send(qb, local_invalidate(kId, shown.rkey)));
  EXPECT_THAT(scene.failed_bind(qb),
              AllOf(HasSubstr("LOCAL_INV, wr_id 4711: "),
                    HasSubstr("bound on this queue pair has the key " + key(shown.rkey))));
}

/// IBTA C10-72 to C10-75: each cause by itself, and no other beside it.
TEST_P(ExplainWindow, ThatCouldNotBeBoundByTheOneCauseThatItWas) {
  Asked scene(GetParam());
  Side& owner = scene.pair.b;
  const RegionInfo readable = owner.register_part(scene.memory, 0, 8192, IBV_ACCESS_MW_BIND);
  const RegionInfo foreign = owner.register_foreign(scene.memory, kAllAccess | IBV_ACCESS_MW_BIND);
  const WindowInfo window = owner.allocate_window(IBV_MW_TYPE_2);
  const auto says = [&](auto change, const std::string& what) {
    WindowBind bind = scene.words(window, scene.memory);
    change(bind);
    ASSERT_EQ(owner.bind_window(scene.pair.qb, bind), 0);
    EXPECT_THAT(scene.failed_bind(scene.pair.qb), HasSubstr(" could not be bound: " + what));
    scene.pair.reconnect();
  };
  says([&](WindowBind& b) { b.region = readable.id; },
       "it is to be written through, and its region");
  says([&](WindowBind& b) { b.region = foreign.id; }, "window, region and queue pair are not of");
  says([&](WindowBind& b) { b.access |= 1u << 14; }, "the rights 0x4000 are none that a window");
  says([&](WindowBind& b) { b.rkey += 0x100; }, "that key is another's; fix: ");
  says([&](WindowBind& b) { b.address += 8192 - 1000; }, "asked [0x");
  ASSERT_EQ(owner.bind_window(scene.pair.qb, scene.words(window, scene.memory)), 0);
  ASSERT_EQ(owner.poll_sends(scene.pair.qb, 1)[0].status, IBV_WC_SUCCESS);
  says([](WindowBind&) {}, "it still is; fix: invalidate it first");
}

TEST_P(ExplainWindow, AKeyThatAMessageMayNotEndAtBothEnds) {
  Asked scene(GetParam());
  for (const std::uint32_t rkey : {scene.memory.rkey, scene.memory.rkey ^ 0x80000000u}) {
    expect_posted(scene.pair.b.post_receive(scene.pair.qb, receive(8)));
    const auto names =
        AllOf(HasSubstr("remote access error: rkey " + key(rkey) + " of "),
              HasSubstr("the message was to invalidate it, and it is no memory window of type 2"),
              HasSubstr("; fix: name the key of a window that the receiver has bound"));
    EXPECT_THAT(scene.fail(send_with_invalidate(0, slice(scene.local, 0, 8), rkey),
                           IBV_WC_REM_ACCESS_ERR, scene.pair.qa),
                AllOf(HasSubstr("SEND_WITH_INV, wr_id 4711: "), names));
    EXPECT_THAT(scene.suffered(scene.pair.qb),
                AllOf(HasSubstr("the peer's SEND_WITH_INV: "), names));
    scene.pair.reconnect();
  }
}

TEST_P(ExplainWindow, AnAtomicWithoutRoomForWhatItFetches) {
  Asked scene(GetParam());
  EXPECT_THAT(scene.fail(fetch_add(0, slice(scene.local, 0, 4), scene.memory, 0, 1),
                         IBV_WC_LOC_LEN_ERR, scene.pair.qa),
              AllOf(HasSubstr("FETCH_AND_ADD, wr_id 4711: local length error"),
                    HasSubstr("its SGEs have 4 bytes, an atomic's old value needs 8; fix: ")));
}

/// Met in the middle of a copy through a window, a peer is stopped: the window cannot be closed,
/// and who waits for that is told so in time.
TEST_P(ExplainStopped, APeerThatIsInAWindowWhichIsToBeClosed) {
  constexpr std::uint64_t kLong = 16_MiB;
  Pair pair(GetParam());
  const RegionInfo from = pair.b.allocate(MemoryKind::kMapped, kLong);
  const RegionInfo whole =
      pair.a.allocate(MemoryKind::kMapped, kLong, kAllAccess | IBV_ACCESS_MW_BIND);
  bool met = false;
  // A stop between two copies leaves nothing to wait for.
  for (int round = 0; round < 20 && !met; ++round) {
    SCOPED_TRACE(round);
    const WindowInfo window = pair.a.allocate_window(IBV_MW_TYPE_2);
    WindowBind bind;
    bind.window = window.id;
    bind.region = whole.id;
    bind.rkey = ibv_inc_rkey(pair.a.call<&Endpoint::window_key>(window.id));
    bind.address = whole.address;
    bind.length = kLong;
    bind.access = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(pair.a.bind_window(pair.qa, bind), 0);
    ASSERT_EQ(pair.a.poll_sends(pair.qa, 1)[0].status, IBV_WC_SUCCESS);
    RegionInfo shown = whole;
    shown.rkey = bind.rkey;
    pair.a.set(whole, 0, kLong, 0);
    pair.b.set(from, 0, kLong, 0x99);
    auto storm = std::async(std::launch::async, [&, qp = pair.qb] {
      return pair.b.call<&Endpoint::storm>(qp.id, write(1, slice(from, 0, kLong), shown), 8u,
                                           ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, 0) != 0; }));
    pair.b.child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return pair.b.child().is_stopped(); }));
    expect_posted(pair.a.post_send(pair.qa, local_invalidate(kId, shown.rkey)));
    const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
    met = wc.status != IBV_WC_SUCCESS;
    if (met) {
      expect_error(wc, kId, IBV_WC_MW_BIND_ERR, pair.qa);
      EXPECT_THAT(pair.a.explain(pair.qa, wc),
                  AllOf(HasSubstr("LOCAL_INV, wr_id 4711: "),
                        HasSubstr("the window " + key(shown.rkey) +
                                  " could not be closed: the peer is stopped in the middle"),
                        HasSubstr("; fix: continue that process")));
    }
    pair.b.child().signal(SIGCONT);
    EXPECT_FALSE(storm.get().empty());
    EXPECT_EQ(pair.a.free_window(window), 0);
    pair.reconnect();
  }
  EXPECT_TRUE(met) << "the peer was never met in the middle of a copy";
}

TEST_P(ExplainReceive, WhoseMemoryWentAfterTheMessageCame) {
  Asked scene(GetParam());
  const RegionInfo brief = scene.pair.b.register_part(scene.memory, 0, 64);
  Slice to = slice(scene.memory, 0, 64);
  to.lkey = brief.lkey;
  expect_posted(scene.pair.b.post_receive(scene.pair.qb, {receive(8, to), receive(9)}));
  expect_posted(scene.pair.a.post_send(scene.pair.qa, send(1, slice(scene.local, 0, 8))));
  expect_wc(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 1, IBV_WC_SEND, scene.pair.qa);
  ASSERT_EQ(scene.pair.b.deregister(brief), 0);
  const ibv_wc wc = scene.pair.b.poll_receives(scene.pair.qb, 1)[0];
  expect_error(wc, 8, IBV_WC_LOC_PROT_ERR, scene.pair.qb);
  EXPECT_THAT(scene.pair.b.explain(scene.pair.qb, wc),
              AllOf(HasSubstr("a receive, wr_id 8: local protection error"),
                    HasSubstr("lkey " + key(brief.lkey)), HasSubstr("no memory region")));
  EXPECT_THAT(scene.fail(send(0, slice(scene.local, 0, 8)), IBV_WC_REM_OP_ERR, scene.pair.qa),
              AllOf(HasSubstr("SEND, wr_id 4711: remote operation error"),
                    HasSubstr("the peer found the memory of a receive gone"),
                    HasSubstr("fix: keep memory registered while receives name it")));
}

/// A further pair, whose receives at `b` are those of a shared queue.
struct Shared : Asked {
  explicit Shared(Setting setting) : Asked(setting), srq(pair.b.create_srq()) {
    QpWish sharing;
    sharing.srq = srq.id;
    std::tie(qa, qb) = pair.add_qps({}, sharing);
  }
  SrqInfo srq;
  QpInfo qa, qb;
};

TEST_P(ExplainReceive, OfASharedQueueThatIsTooShort) {
  Shared scene(GetParam());
  expect_posted(scene.pair.b.post_srq_receive(scene.srq, {receive(9, slice(scene.memory, 0, 32))}));
  const auto bytes = HasSubstr("the message has 33 bytes, the ");
  EXPECT_THAT(scene.fail(send(0, slice(scene.local, 0, 33)), IBV_WC_REM_INV_REQ_ERR, scene.qa),
              AllOf(HasSubstr("SEND, wr_id 4711: "), bytes, HasSubstr(" takes 32; fix: ")));
  const ibv_wc wc = scene.pair.b.poll_receives(scene.qb, 1)[0];
  expect_error(wc, 9, IBV_WC_LOC_LEN_ERR, scene.qb);
  EXPECT_THAT(scene.pair.b.explain(scene.qb, wc),
              AllOf(HasSubstr("a receive, wr_id 9: local length error"), bytes,
                    HasSubstr("posted receive takes 32; fix: ")));
}

TEST_P(ExplainReceive, OfASharedQueueWithABadKey) {
  Shared scene(GetParam());
  Slice wrong = slice(scene.memory, 64, 64);
  wrong.lkey = scene.memory.lkey ^ 0x80000000u;
  expect_posted(scene.pair.b.post_srq_receive(
      scene.srq, {receive(9, SliceList{slice(scene.memory, 0, 64), wrong})}));
  EXPECT_THAT(scene.fail(send(0, slice(scene.local, 0, 65)), IBV_WC_REM_OP_ERR, scene.qa),
              AllOf(HasSubstr("SEND, wr_id 4711: remote operation error"), HasSubstr("; fix: ")));
  const ibv_wc wc = scene.pair.b.poll_receives(scene.qb, 1)[0];
  expect_error(wc, 9, IBV_WC_LOC_PROT_ERR, scene.qb);
  EXPECT_THAT(scene.pair.b.explain(scene.qb, wc),
              AllOf(HasSubstr("a receive, wr_id 9: local protection error"),
                    HasSubstr("lkey " + key(wrong.lkey) + " of SGE 1"),
                    HasSubstr("no memory region has this key")));
}

}  // namespace
}  // namespace verbatim::harness
