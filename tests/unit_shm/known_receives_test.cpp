// SPDX-License-Identifier: BSD-2-Clause
// What a sender may take for known of its peer's receives: never more than is posted, for this lap,
// sound, and as long as it says.
#include "providers/shm/wire/known_receives.hpp"

#include <gtest/gtest.h>

#include <array>

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kCreditsLog = 6;
constexpr std::uint64_t kEntries = 1u << kCreditsLog;

class KnownReceivesTest : public testing::Test {
 protected:
  void post(std::uint64_t index, std::uint32_t length, bool bad = false) {
    credits_[index % kEntries] =
        Credit::make(static_cast<std::uint32_t>(index >> kCreditsLog) + 1, length, bad);
  }
  void post_all(std::uint64_t from, std::uint64_t behind, std::uint32_t length) {
    for (std::uint64_t index = from; index != behind; ++index) post(index, length);
  }
  KnownReceives look(std::uint64_t from) const { return look_ahead(receives_, from); }

 private:
  alignas(kCacheLine) std::array<std::atomic<std::uint64_t>, kEntries> credits_{};
  Receives receives_{credits_.data(), kEntries - 1, kCreditsLog};
};

TEST_F(KnownReceivesTest, NothingIsKnownOfReceivesThatAreNotPosted) {
  const KnownReceives known = look(0);
  EXPECT_EQ(known.behind, 0u);
  EXPECT_TRUE(known.must_look(0));
}

TEST_F(KnownReceivesTest, KnowledgeEndsAtTheFirstReceiveThatIsNotPosted) {
  post_all(0, 5, 64);
  EXPECT_EQ(look(0).behind, 5u);
  EXPECT_EQ(look(3).behind, 5u);
}

TEST_F(KnownReceivesTest, OneLookKnowsThirtyTwo) {
  post_all(0, kEntries, 64);
  EXPECT_EQ(look(8).behind, 40u);
  EXPECT_EQ(look(8).room, 64);
}

TEST_F(KnownReceivesTest, AReceiveOfTheLastLapIsNotPosted) {
  post_all(0, kEntries, 64);
  post_all(kEntries, kEntries + 3, 64);
  EXPECT_EQ(look(kEntries).behind, kEntries + 3);
  EXPECT_EQ(look(kEntries - 4).behind, kEntries + 3) << "but one of the next lap is";
}

TEST_F(KnownReceivesTest, NoneThatIsKnownIsShorterThanTheRoom) {
  post_all(0, 16, 64);
  post(9, 63);
  EXPECT_EQ(look(0).behind, 9u);
  EXPECT_EQ(look(9).room, 63);
  EXPECT_EQ(look(9).behind, 16u) << "longer ones are";
}

TEST_F(KnownReceivesTest, AReceiveWithABadKeyIsNeverKnown) {
  post_all(0, 16, 64);
  post(4, 64, true);
  EXPECT_EQ(look(0).behind, 4u);
  EXPECT_EQ(look(4).behind, 0u);
}

TEST_F(KnownReceivesTest, AnEmptyReceiveIsKnownForEmptyMessages) {
  post(0, 0);
  EXPECT_EQ(look(0).behind, 1u);
  EXPECT_EQ(look(0).room, 0);
}

TEST_F(KnownReceivesTest, OnlyWhereALineBeginsIsLookedAhead) {
  const KnownReceives known{8, 64};
  EXPECT_FALSE(known.must_look(7)) << "known";
  EXPECT_TRUE(known.must_look(8));
  EXPECT_FALSE(known.must_look(9));
  EXPECT_TRUE(known.must_look(16));
}

}  // namespace
}  // namespace verbatim::shm
