// SPDX-License-Identifier: BSD-2-Clause
// What the timers of a reliable connection grant a request.
#include "runtime/verbs/software/retry.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(RnrTimer, CodesMeanWhatIbtaTable45Says) {
  EXPECT_EQ(rnr_timer_ns(0), 655'360'000u) << "0 is the longest one";
  EXPECT_EQ(rnr_timer_ns(1), 10'000u);
  EXPECT_EQ(rnr_timer_ns(12), 640'000u);
  EXPECT_EQ(rnr_timer_ns(31), 491'520'000u);
}

TEST(RnrTimer, EveryCodeButZeroIsLongerThanTheOneBefore) {
  for (std::uint32_t code = 2; code < 32; ++code)
    EXPECT_GT(rnr_timer_ns(code), rnr_timer_ns(code - 1)) << code;
}

TEST(RnrTimer, OnlyFiveBitsOfACodeCount) { EXPECT_EQ(rnr_timer_ns(32 + 12), rnr_timer_ns(12)); }

TEST(RnrRetry, SevenWaitsForEverAndZeroNotAtAll) {
  EXPECT_EQ(rnr_span_ns(7, 10'000), kForEver);
  EXPECT_EQ(rnr_span_ns(0, 10'000), 0u);
  EXPECT_EQ(rnr_span_ns(6, 10'000), 60'000u);
}

TEST(AckTimeout, DoublesWithEachCodeAndZeroIsForEver) {
  EXPECT_EQ(ack_timeout_ns(0), kForEver);
  EXPECT_EQ(ack_timeout_ns(1), 8192u);
  EXPECT_EQ(ack_timeout_ns(14), 4096u << 14) << "67 ms, what most programs set";
  EXPECT_EQ(ack_timeout_ns(31), std::uint64_t{4096} << 31);
}

TEST(AckTimeout, IsGrantedOnceAndOnceMoreForEachRetry) {
  EXPECT_EQ(ack_span_ns(14, 0), ack_timeout_ns(14));
  EXPECT_EQ(ack_span_ns(14, 7), 8 * ack_timeout_ns(14));
  EXPECT_EQ(ack_span_ns(0, 7), kForEver) << "no number of tries makes it longer";
}

TEST(Errors, OfTheRequestersOwnSideAreNotThePeers) {
  for (const ibv_wc_status status :
       {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_MW_BIND_ERR})
    EXPECT_TRUE(is_local_error(status)) << status;
  for (const ibv_wc_status status :
       {IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
        IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR})
    EXPECT_FALSE(is_local_error(status)) << status;
}

}  // namespace
}  // namespace verbatim
