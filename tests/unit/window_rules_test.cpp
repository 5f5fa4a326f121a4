// SPDX-License-Identifier: BSD-2-Clause
// What a memory window may show of a region (IBTA C10-72 to C10-75).
#include "runtime/verbs/software/window_rules.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

constexpr std::uint32_t kWindowPd = 3, kWindowQpn = 0x77;

KeyMeaning region(unsigned access = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE) {
  return {1, 1000, 100, 0x5000, access, kWindowPd};
}
BindRequest bind(unsigned access, ibv_mw_type type = IBV_MW_TYPE_2) {
  return {type, kWindowPd, kWindowPd, kWindowQpn, 1020, 40, access};
}
WindowFault judge(const KeyMeaning& whole, const BindRequest& asked) {
  std::uint64_t offset;
  return judge_bind(whole, asked, offset);
}

TEST(Windows, ShowAPartOfTheirRegion) {
  std::uint64_t offset = 0;
  const BindRequest asked = bind(IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(judge_bind(region(), asked, offset), WindowFault::kUnseen);
  EXPECT_EQ(offset, 20u);
  const KeyMeaning shown = meaning_of_window(region(), asked, offset);
  EXPECT_EQ(shown.iova, 1020u);
  EXPECT_EQ(shown.length, 40u);
  EXPECT_EQ(shown.address, 0x5000u + 20);
  EXPECT_EQ(shown.access, unsigned{IBV_ACCESS_REMOTE_WRITE}) << "not the region's";
}

TEST(Windows, OfTypeTwoAreTheQueuePairsThatBoundThem) {
  EXPECT_EQ(meaning_of_window(region(), bind(0), 20).pd, holder::kWindowOfQp | kWindowQpn);
  EXPECT_EQ(meaning_of_window(region(), bind(0, IBV_MW_TYPE_1), 20).pd,
            holder::kWindowOfPd | kWindowPd);
}

TEST(Windows, MayBeginAtAddressZeroWhenTheyAreOfTypeTwo) {
  const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(judge(region(), bind(access, IBV_MW_TYPE_1)), WindowFault::kBasedAtZero);
  ASSERT_EQ(judge(region(), bind(access)), WindowFault::kUnseen);
  const KeyMeaning shown = meaning_of_window(region(), bind(access), 20);
  EXPECT_EQ(shown.iova, 0u);
  EXPECT_EQ(shown.address, 0x5000u + 20);
  EXPECT_EQ(shown.access, unsigned{IBV_ACCESS_REMOTE_READ});
}

TEST(Windows, GiveNoRightThatIsNotAPeers) {
  EXPECT_EQ(judge(region(), bind(IBV_ACCESS_LOCAL_WRITE)), WindowFault::kRights);
  EXPECT_EQ(judge(region(), bind(IBV_ACCESS_MW_BIND)), WindowFault::kRights);
}

TEST(Windows, AreOfOneDomainWithTheirRegionAndTheirQueuePair) {
  KeyMeaning others = region();
  others.pd = kWindowPd + 1;
  EXPECT_EQ(judge(others, bind(0)), WindowFault::kDomain);
  BindRequest asked = bind(0);
  asked.queue_pd = kWindowPd + 1;
  EXPECT_EQ(judge(region(), asked), WindowFault::kDomain);
}

TEST(Windows, AreBoundOnlyToRegionsThatAllowIt) {
  EXPECT_EQ(judge(region(IBV_ACCESS_LOCAL_WRITE), bind(0)), WindowFault::kUnbindable);
  EXPECT_EQ(judge(region(IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED), bind(0)),
            WindowFault::kBasedRegion);
}

TEST(Windows, AreWrittenThroughOnlyWhereTheirRegionMayBeWritten) {
  EXPECT_EQ(judge(region(IBV_ACCESS_MW_BIND), bind(IBV_ACCESS_REMOTE_WRITE)),
            WindowFault::kUnwritable);
  EXPECT_EQ(judge(region(IBV_ACCESS_MW_BIND), bind(IBV_ACCESS_REMOTE_ATOMIC)),
            WindowFault::kUnwritable);
  EXPECT_EQ(judge(region(IBV_ACCESS_MW_BIND), bind(IBV_ACCESS_REMOTE_READ)), WindowFault::kUnseen)
      << "the region itself need not be readable by peers";
}

TEST(Windows, ShowNothingOutsideOfTheirRegion) {
  BindRequest asked = bind(IBV_ACCESS_REMOTE_READ);
  asked.length = 81;
  EXPECT_EQ(judge(region(), asked), WindowFault::kBounds);
  asked.length = 80;
  EXPECT_EQ(judge(region(), asked), WindowFault::kUnseen);
  asked.start = 999;
  EXPECT_EQ(judge(region(), asked), WindowFault::kBounds);
}

}  // namespace
}  // namespace verbatim
