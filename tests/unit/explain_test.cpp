// SPDX-License-Identifier: BSD-2-Clause
// Failures in words: what a provider without records can still say, and the sentences for causes
// that tests of real devices cannot bring about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <string>

#include "runtime/verbs/explain.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"

namespace verbatim::unit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Explanation : public EachWitness {
 protected:
  void SetUp() override {
    EachWitness::SetUp();
    cq_ = make_cq();
    qp_ = make_qp(cq_);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_qp(qp_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EachWitness::TearDown();
  }
  std::string words(const Failure& failure, const FailedCompletion* completion = nullptr) {
    char line[1024];
    (void)describe_failure(Qp::from(qp_), failure, completion, line, sizeof line);
    return line;
  }
  static Failure of(Cause cause) {
    Failure failure;
    failure.cause = cause;
    failure.status = IBV_WC_RETRY_EXC_ERR;
    failure.remote_qpn = 0x123456;
    return failure;
  }

  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Witness, Explanation, ::testing::Values("null0", "fakek0"), witness_name);

TEST_P(Explanation, WithoutARecordIsWhatTheStatusSays) {
  const CapturedStderr captured;
  char line[512];
  for (const ibv_wc_status status :
       {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR,
        IBV_WC_MW_BIND_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
        IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR}) {
    ASSERT_GT(vbt_explain_completion(qp_, 5, status, line, sizeof line), 0);
    const char* const word = status == IBV_WC_WR_FLUSH_ERR ? "flushed" : ibv_wc_status_str(status);
    EXPECT_THAT(line, AllOf(StartsWith("QP 0x"), HasSubstr("wr_id 5: "), HasSubstr(word),
                            HasSubstr("; fix: ")));
  }
  EXPECT_EQ(vbt_explain(qp_, nullptr, line, sizeof line), -EOPNOTSUPP);
  EXPECT_EQ(captured.text(), "") << "nothing is missing that a log need tell of";
}

TEST_P(Explanation, OfAPeerThatDoesNotAnswer) {
  Failure failure = of(Cause::kPeerPsn);
  failure.peer_psn = 0x77;
  failure.own_psn = 0x78;
  failure.waited_ns = 33'000'000;
  failure.timer_ns = 4'194'304;
  failure.timer_code = 10;
  failure.tries = 7;
  EXPECT_THAT(words(failure),
              AllOf(HasSubstr("QP 0x123456 expects PSN 0x000077, this one sends from 0x000078"),
                    HasSubstr("after 33 ms (timeout 10: 4194 us; retry_cnt 7)"),
                    HasSubstr("sq_psn here and rq_psn")));
  EXPECT_THAT(words(of(Cause::kPeerOtherType)), HasSubstr("QP 0x123456 is of another type"));
  EXPECT_THAT(words(of(Cause::kPeerUsed)), HasSubstr("not been reset since"));
  EXPECT_THAT(words(of(Cause::kPeerSilent)), HasSubstr("lives, but did not answer"));
  EXPECT_THAT(words(of(Cause::kPeerBrokeRules)), HasSubstr("shared memory cannot be"));
}

TEST_P(Explanation, OfAWindow) {
  Failure failure = of(Cause::kWindow);
  failure.status = IBV_WC_MW_BIND_ERR;
  failure.key.key = 0xabcd;
  EXPECT_THAT(words(failure), AllOf(HasSubstr("0x0000abcd"), HasSubstr("does not say why")));
  const std::pair<WindowFault, const char*> kFaults[] = {
      {WindowFault::kNotBound, "bound on this queue pair has the key 0x0000abcd; fix: "},
      {WindowFault::kNoLonger, "is no longer bound; fix: "},
      {WindowFault::kStillBound, "0x0000abcd could not be bound: it still is; fix: "},
      {WindowFault::kForeignKey, "that key is another's; fix: "},
      {WindowFault::kRights, "the rights 0x4000 are none that a window gives; fix: "},
      {WindowFault::kBasedAtZero, "of type 1 it cannot be ZERO_BASED; fix: "},
      {WindowFault::kBasedRegion, "its region is ZERO_BASED; fix: "},
      {WindowFault::kUnbindable, "its region lacks MW_BIND; fix: "},
      {WindowFault::kUnwritable, "its region lacks LOCAL_WRITE; fix: "},
      {WindowFault::kNoRegion, "its region is deregistered; fix: "},
      {WindowFault::kDomain, "are not of one protection domain; fix: "},
      {WindowFault::kBounds,
       "asked [0x1000, 0x1010), the region has [0x1000, 0x1008): it ends 8 "}};
  failure.key.need = 0x4000;
  failure.key.asked_at = failure.key.first = 0x1000;
  failure.key.asked_bytes = 16;
  failure.key.bytes = 8;
  for (const auto& [fault, said] : kFaults) {
    failure.window = fault;
    EXPECT_THAT(words(failure), HasSubstr(said));
  }
  failure.cause = Cause::kWindowInUse;
  EXPECT_THAT(words(failure), AllOf(HasSubstr("0x0000abcd"), HasSubstr("stopped in the middle")));
}

TEST_P(Explanation, KeepsStrangersNamesPrintable) {
  Failure failure = of(Cause::kPeerDead);
  failure.remote = printable_name(42, "a\nb\x1b[0m c", 16);
  EXPECT_THAT(words(failure), HasSubstr("(process 42 a?b?[0m?c)"));
  failure.remote = printable_name(0, "sixteen-or-more-letters", 16);
  EXPECT_THAT(words(failure), HasSubstr("(sixteen-or-more)"));
}

}  // namespace
}  // namespace verbatim::unit
