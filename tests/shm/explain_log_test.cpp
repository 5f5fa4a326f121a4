// SPDX-License-Identifier: BSD-2-Clause
//
// The line that explains a failure (verbatim/explain.h), where programs meet it: of every
// transport, of requests posted and built by calls, polled and seen through a cursor, asked for and
// in the log.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tests/shm/explain_text.hpp"
#include "tests/shm/lone_sender.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string own_end(const QpInfo& qp, const char* type) {
  char line[64];
  std::snprintf(line, sizeof line, "QP 0x%06x (%s, ", qp.qpn, type);
  return line;
}

/// Posts what has a key of nobody's, sees it fail, and asks.
std::string fail(LoneSender& sender, std::uint64_t wr_id, std::uint32_t lkey) {
  sender.wr_id = wr_id;
  sender.lkey = lkey;
  EXPECT_EQ(sender.post(IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(sender.poll(), IBV_WC_LOC_PROT_ERR);
  const auto line = sender.own.explain(sender.info.id, wr_id, IBV_WC_LOC_PROT_ERR);
  return {line.begin(), line.end()};
}

class ExplainSender
    : public ::testing::TestWithParam<std::tuple<ibv_qp_type, bool /*calls*/, bool /*cursor*/>> {
 protected:
  ibv_qp_type type() const { return std::get<0>(GetParam()); }
  LoneSender sender_{type(), std::get<1>(GetParam()), std::get<2>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, ExplainSender,
                         ::testing::Combine(::testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
                                                              IBV_QPT_XRC_SEND),
                                            ::testing::Bool(), ::testing::Bool()),
                         [](const auto& tested) {
                           return sender_name(std::get<0>(tested.param),
                                              std::get<1>(tested.param)) +
                                  (std::get<2>(tested.param) ? "ByCursor" : "");
                         });

TEST_P(ExplainSender, IsToldBothEndsAndTheRequestOnceInTheLog) {
  const std::string told = fail(sender_, 4711, 0x12345);
  const char* const name = type() == IBV_QPT_RC   ? "RC"
                           : type() == IBV_QPT_UC ? "UC"
                           : type() == IBV_QPT_UD ? "UD"
                                                  : "XRC_SEND";
  const std::string here =
      "process " + std::to_string(getpid()) + " " + program_invocation_short_name + ")";
  EXPECT_THAT(
      told,
      AllOf(StartsWith(own_end(sender_.info, name) + here), HasSubstr(" to QP 0x"),
            HasSubstr("(" + here + (type() == IBV_QPT_XRC_SEND ? " for XRC SRQ" : ": ")),
            HasSubstr(type() == IBV_QPT_UD ? ": SEND, wr_id 4711: " : ": RDMA_WRITE, wr_id 4711: "),
            HasSubstr("lkey 0x00012345 of SGE 0")));
  LogWatch* const watch = LogWatch::instance();
  if (watch != nullptr) {
    EXPECT_THAT(watch->explanations(), ElementsAre("verbatim: " + told));
  }

  // What has an answer ends the connection; of the others the program leads the sends back, and
  // the next failure is told by its own facts.
  sender_.wr_id = 4712;
  if (sender_.own.state(sender_.info.id) == IBV_QPS_ERR) {
    EXPECT_EQ(sender_.post(IBV_SEND_SIGNALED), 0);
    EXPECT_EQ(sender_.poll(), IBV_WC_WR_FLUSH_ERR);
  } else {
    ASSERT_EQ(sender_.own.to_state(sender_.info.id, IBV_QPS_RTS), 0);
    EXPECT_THAT(fail(sender_, 4712, 0x54321),
                AllOf(HasSubstr("wr_id 4712: "), HasSubstr("lkey 0x00054321 of SGE 0"),
                      Not(HasSubstr("came first"))));
  }
  if (watch != nullptr) {
    EXPECT_EQ(watch->explanations().size(), 1u);
  }
}

TEST_P(ExplainSender, IsToldButNotInTheLogWhereTheProgramWantsNoneOfIt) {
  EXPECT_EQ(vbt_log_failures(nullptr, 0), EINVAL);
  ASSERT_EQ(vbt_log_failures(sender_.own.qp(sender_.info.id), 0), 0);
  EXPECT_THAT(fail(sender_, 4711, 0x12345), HasSubstr("lkey 0x00012345 of SGE 0"));
  if (LogWatch* const watch = LogWatch::instance(); watch != nullptr) {
    EXPECT_THAT(watch->explanations(), ElementsAre());
  }
}

/// With VERBATIM_LOG=error in the environment: what is in the log when the poll has returned.
VBT_ROLE(polls_what_failed) {
  const bool by_cursor = control.receive_value<int>() != 0;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 1;
  LoneSender sender(IBV_QPT_UC, false, by_cursor);
  sender.lkey = 0x12345;
  if (sender.post(IBV_SEND_SIGNALED) != 0 || sender.poll() != IBV_WC_LOC_PROT_ERR) return 2;
  char text[2048];
  const ssize_t length = ::read(ends[0], text, sizeof text);
  control.send_value(std::vector<std::uint8_t>(text, text + (length < 0 ? 0 : length)));
  control.send_value(sender.own.explain(sender.info.id, 1, IBV_WC_LOC_PROT_ERR));
  return 0;
}

TEST(ExplainLog, OfErrorsAloneHasTheLineWhenThePollReturns) {
  for (const int by_cursor : {0, 1}) {
    Child child("polls_what_failed", {{"VERBATIM_LOG", "error"}});
    child.control().send_value(by_cursor);
    const auto logged = child.control().receive_value<std::vector<std::uint8_t>>();
    const auto told = child.control().receive_value<std::vector<std::uint8_t>>();
    EXPECT_EQ(std::string(logged.begin(), logged.end()),
              "verbatim: " + std::string(told.begin(), told.end()) + "\n");
    EXPECT_NE(told.size(), 0u);
    EXPECT_EQ(child.wait().exit_status, 0);
  }
}

constexpr std::uint32_t kMany = 113;

/// Queue pairs of `sender` to as many that are not ready; their requests have failed when it
/// returns. Those they lead to are given back at the end.
void fail_many(Side& sender, Side& receiver) {
  Link link;
  link.timeout = 8;
  link.retry_count = 0;
  QpWish wish;
  wish.send_depth = wish.receive_depth = wish.max_sge = 1;
  wish.send_cq = wish.receive_cq = sender.call<&Endpoint::create_cq>(kMany, 0);
  QpWish never_ready = wish;
  never_ready.send_cq = never_ready.receive_cq = receiver.call<&Endpoint::create_cq>(1, 0);
  std::vector<QpInfo> all;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    all.push_back(sender.create_qp(wish));
    sender.connect(all.back(), receiver.create_qp(never_ready), link);
  }
  for (const QpInfo& qp : all) expect_posted(sender.post_send(qp, send(1, SliceList{})));
  for (const ibv_wc& wc : sender.call<&Endpoint::poll>(wish.send_cq, kMany, kDefaultWaitMs))
    EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(wc.status);
}

TEST(ExplainLog, OfOneCauseHasTheFirstAtOnceAndOneLineForTheOthers) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  Side sender(std::make_shared<Session>());
  Side receiver(kAnotherProcess);
  fail_many(sender, receiver);
  EXPECT_GE(watch->explanations().size(), 1u);
  EXPECT_TRUE(wait_until([&] { return count_spoken_of(watch->explanations()) == kMany; }));
  const auto lines = watch->explanations();
  EXPECT_LE(lines.size(), 4u) << "at most the first, and one for each second that it took";
  for (const std::string& line : lines)
    EXPECT_THAT(line, AllOf(HasSubstr("(process " + std::to_string(receiver.child().pid())),
                            HasSubstr("is in state RESET, not yet in RTR")));
}

/// Ends by exit() while lines are held back.
VBT_ROLE(fails_much_and_exits) {
  (void)control;
  Side sender(std::make_shared<Session>());
  fail_many(sender, sender);
  std::exit(0);
}

TEST(ExplainLog, LosesNoLineWhenTheProcessExits) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  Child child("fails_much_and_exits");
  EXPECT_EQ(child.wait().exit_status, 0);
  EXPECT_EQ(count_spoken_of(watch->explanations()), kMany);
}

}  // namespace
}  // namespace verbatim::harness
