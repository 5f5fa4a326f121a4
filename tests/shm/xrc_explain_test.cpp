// SPDX-License-Identifier: BSD-2-Clause
//
// What is said of an XRC request that fails (verbatim/explain.h): of the connection's two ends, and
// of the process whose queue it was for, which is neither.
#include <gmock/gmock.h>

#include "tests/shm/explain_text.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/xrc_sharing.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExplainXrc : public BetweenProcesses {
 protected:
  static std::string in(Side& side) {
    return text("process %d ", side.is_child() ? side.child().pid() : ::getpid());
  }
  static std::string number(const SrqInfo& queue) { return text("XRC SRQ 0x%06x", queue.srqn); }
  /// All have met when it returns.
  void begin(const Link& link = {}, const Link& answers = {}) {
    start(link, answers);
    post(1, 0, 64);
    EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(*c, shared).wr_id, 1u);
  }
  void again() {
    ASSERT_EQ(a->to_state(way.sender, IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(way.target, IBV_QPS_RESET), 0);
    a->connect(way.sender, way.target);
    b->connect(way.target, way.sender);
  }
  std::string fail(Request request, ibv_wc_status status) {
    request.wr_id = kId;
    const ibv_wc wc = do_one(request);
    EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
    return a->explain(way.sender, wc);
  }
  /// Who is at which end, and what was asked.
  auto names_all(const char* request) {
    return AllOf(StartsWith(qp(way.sender) + " (XRC_SEND, " + in(*a)),
                 HasSubstr(" to " + qp(way.target) + " (" + in(*b)),
                 HasSubstr(" for " + number(shared) + " (" + in(*c)),
                 HasSubstr(text("): %s, wr_id %llu: ", request, 4711ull)), HasSubstr("; fix: "));
  }
};
RUN_OVER_SETTINGS(ExplainXrc, on_every_device(between_processes()));

TEST_P(ExplainXrc, AKeyOfTheQueuesProcessAtBothEnds) {
  begin();
  RegionInfo wrong = into;
  wrong.rkey ^= 0x80000000u;
  const auto unknown = AllOf(HasSubstr(text("rkey 0x%08x of the SRQ's process", wrong.rkey)),
                             HasSubstr("asked REMOTE_WRITE of " + range(into.address + 8, 64)),
                             HasSubstr("no memory region has this key"));
  EXPECT_THAT(fail(to(shared, write(0, slice(from, 0, 64), wrong, 8)), IBV_WC_REM_ACCESS_ERR),
              AllOf(names_all("RDMA_WRITE"), unknown));
  EXPECT_EQ(b->take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_THAT(b->explain(way.target),
              AllOf(StartsWith(qp(way.target) + " (XRC_RECV, " + in(*b)),
                    HasSubstr(" to " + qp(way.sender) + " (" + in(*a)),
                    HasSubstr(", for " + number(shared) + " (" + in(*c)),
                    HasSubstr("the peer's RDMA_WRITE: remote access error"), unknown));
  again();
  const RegionInfo part = c->register_part(into, 4096, 1024, IBV_ACCESS_REMOTE_READ);
  EXPECT_THAT(fail(to(shared, read(0, slice(from, 0, 100), part, 1000)), IBV_WC_REM_ACCESS_ERR),
              AllOf(names_all("RDMA_READ"), HasSubstr("ends 76 bytes before the request does")));
  again();
  EXPECT_THAT(fail(to(shared, write(0, slice(from, 0, 8), part)), IBV_WC_REM_ACCESS_ERR),
              AllOf(names_all("RDMA_WRITE"), HasSubstr("the right REMOTE_WRITE is missing")));
}

TEST_P(ExplainXrc, TheAccessFlagsOfTheTarget) {
  Link answers;
  answers.access = IBV_ACCESS_REMOTE_READ;
  begin({}, answers);
  EXPECT_THAT(fail(to(shared, write(0, slice(from, 0, 8), into)), IBV_WC_REM_INV_REQ_ERR),
              AllOf(names_all("RDMA_WRITE"), HasSubstr("RDMA_WRITE needs REMOTE_WRITE"),
                    HasSubstr(" are REMOTE_READ; ")));
}

TEST_P(ExplainXrc, AMessageLongerThanItsReceiveAtBothEnds) {
  begin();
  const QpInfo opened = c->call<&Endpoint::open_qp>(way.target.qpn);
  const auto lengths = HasSubstr("the message has 33 bytes, the receive posted");
  post(9, 0, 32);
  EXPECT_THAT(fail(to(shared, send(0, slice(from, 0, 33))), IBV_WC_REM_INV_REQ_ERR),
              AllOf(names_all("SEND"), lengths, HasSubstr(" to the SRQ takes 32; ")));
  const ibv_wc wc = received(*c, shared);
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
  EXPECT_THAT(c->explain(opened, wc),
              AllOf(StartsWith(number(shared) + " (" + in(*c)),
                    HasSubstr(" by " + qp(way.target) + " to " + qp(way.sender) + " (" + in(*a)),
                    HasSubstr("): a receive, wr_id 9: local length error: the message has 33")));
}

TEST_P(ExplainXrc, AnEmptyQueue) {
  Link link, answers;
  link.rnr_retry = 2;
  answers.min_rnr_timer = 14;
  begin(link, answers);
  EXPECT_THAT(fail(to(shared, send(0, slice(from, 0, 8))), IBV_WC_RNR_RETRY_EXC_ERR),
              AllOf(names_all("SEND"), HasSubstr("the SRQ had no receive posted after "),
                    HasSubstr("min_rnr_timer 14: 1280 us"), HasSubstr("rnr_retry 2)")));
}

TEST_P(ExplainXrc, AQueueThatIsNotThere) {
  begin();
  SrqInfo nobody = shared;
  nobody.srqn = (way.sender.qpn ^ way.target.qpn ^ shared.srqn ^ 0x7f3000u) | 1;
  EXPECT_THAT(fail(to(nobody, send(0, slice(from, 0, 8))), IBV_WC_REM_INV_REQ_ERR),
              AllOf(HasSubstr(" for " + number(nobody) + ": SEND"),
                    HasSubstr("no process has " + number(nobody)), HasSubstr("VERBATIM_FABRIC")));
  again();
  const SrqInfo gone = queue(*c);
  ASSERT_EQ(c->call<&Endpoint::destroy_srq>(gone.id), 0);
  EXPECT_THAT(fail(to(gone, write(0, slice(from, 0, 8), into)), IBV_WC_REM_INV_REQ_ERR),
              AllOf(HasSubstr(" for " + number(gone) + " (" + in(*c)),
                    HasSubstr("its process has no " + number(gone))));
  again();
  const auto d = process("another");
  const SrqInfo foreign = queue(*d);
  EXPECT_THAT(fail(to(foreign, send(0, slice(from, 0, 8))), IBV_WC_REM_INV_REQ_ERR),
              AllOf(HasSubstr(number(foreign) + " is of another XRC domain than " + qp(way.target)),
                    HasSubstr("ibv_open_xrcd")));
}

TEST_P(ExplainXrc, AProcessThatDied) {
  begin();
  expect_posted(a->post_send(way.sender, to(shared, send(kId, slice(from, 0, 8)))));
  EXPECT_TRUE(a->poll_once(way.sender.send_cq, 1).empty());
  const auto names = names_all("SEND");
  c->child().kill_and_collect();
  const ibv_wc wc = a->poll_sends(way.sender, 1)[0];
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(a->explain(way.sender, wc),
              AllOf(names, HasSubstr("the process of " + number(shared) + " has ended")));
}

TEST_P(ExplainXrc, ATargetsProcessThatDied) {
  begin();
  expect_posted(a->post_send(way.sender, to(shared, send(kId, slice(from, 0, 8)))));
  EXPECT_TRUE(a->poll_once(way.sender.send_cq, 1).empty());
  const auto names = names_all("SEND");
  b->child().kill_and_collect();
  const ibv_wc wc = a->poll_sends(way.sender, 1)[0];
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(a->explain(way.sender, wc), AllOf(names, HasSubstr(": its process has ended")));
}

TEST_P(ExplainXrc, OneQueueThatIsGoneIsOneCauseHoweverManyInitiatorsMeetIt) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  begin();
  constexpr std::size_t kInitiators = 12;
  std::vector<Connection> all{way};
  while (all.size() < kInitiators) all.push_back(connect(*a, *b));
  const SrqInfo gone = shared;
  shared = queue(*c);
  ASSERT_EQ(c->call<&Endpoint::destroy_srq>(gone.id), 0);
  for (const Connection& one : all)
    expect_posted(a->post_send(one.sender, to(gone, send(1, slice(from, 0, 8)))));
  for (const Connection& one : all) EXPECT_NE(sent(one).status, IBV_WC_SUCCESS);
  const auto told = [&] {
    std::vector<std::string> lines;
    for (const std::string& line : watch->explanations())
      if (line.find("(XRC_SEND, ") != std::string::npos) lines.push_back(line);
    return lines;
  };
  EXPECT_TRUE(wait_until([&] { return count_spoken_of(told()) == kInitiators; }));
  EXPECT_LE(told().size(), 4u);
  EXPECT_THAT(told(), ::testing::Each(HasSubstr("has no " + number(gone))));
}

}  // namespace
}  // namespace verbatim::harness
