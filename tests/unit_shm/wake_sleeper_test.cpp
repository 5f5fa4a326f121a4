// SPDX-License-Identifier: BSD-2-Clause
//
// Whom a sender wakes when the queue that it sends to is armed, and whom it leaves it to:
// channel.hpp and event_gate.hpp. This process plays both sides, on one segment.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "providers/shm/queues/comp_channel.hpp"
#include "runtime/verbs/software/event_gate.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kCq = 7;
constexpr std::uint32_t kBit = 70;
constexpr std::uint32_t kRecord = 3;  // number + 1

class WakeSleeper : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(own_->create(), 0);
    Doorbells& doorbells = own_->doorbells();
    ASSERT_EQ(own_->back(&doorbells.cqs[kCq], sizeof(CqDoorbells)), 0);
    seen_.view(*own_);
    doorbells.cqs[kCq].ring(kBit);
    doorbells.cq_wake.ring(kCq);
  }
  void TearDown() override {
    seen_.unmap();
    own_->destroy();
  }
  CompChannelRecord& record() { return own_->head().comp_channels[kRecord - 1]; }

  std::unique_ptr<OwnSegment> own_ = std::make_unique<OwnSegment>();
  PeerSegment seen_;
};

TEST_F(WakeSleeper, SaysWhenThereIsNobody) {
  EXPECT_FALSE(wake_sleeper(seen_, kRecord, kCq, kBit));
}

TEST_F(WakeSleeper, LeavesItToWhoIsOnTheWay) {
  record().on_the_way = 1;
  EXPECT_TRUE(wake_sleeper(seen_, kRecord, kCq, kBit));
  EXPECT_FALSE(wake_sleeper(seen_, kRecord + 1, kCq, kBit)) << "who is on the way elsewhere";
}

TEST_F(WakeSleeper, LeavesItToWhoPollsTheQueue) {
  own_->doorbells().cqs[kCq].silence_all();
  EXPECT_TRUE(wake_sleeper(seen_, kRecord, kCq, kBit));
}

TEST_F(WakeSleeper, CountsOnNobodyForQueuesAtWhichSleepersDoNotLook) {
  record().on_the_way = 1;
  EXPECT_FALSE(wake_sleeper(seen_, kRecord, kMaxCqs / 2, kBit));
}

TEST_F(WakeSleeper, KnowsNoRecordThatDoesNotExist) {
  record().on_the_way = 1;
  EXPECT_FALSE(wake_sleeper(seen_, 0, kCq, kBit));
  EXPECT_FALSE(wake_sleeper(seen_, kMaxCompChannels + 1, kCq, kBit));
}

std::atomic<int> looks{0};

class SharedGate : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gate_.open(), 0);
    if (!gate_.let_others_wake({&bed_, &on_the_way_, &due_, []() noexcept { ++looks; }}))
      GTEST_SKIP() << "a sleeper cannot wait on several words here";
  }

  std::atomic<std::uint32_t> bed_{0};
  std::atomic<std::uint32_t> on_the_way_{0};
  std::atomic<std::uint32_t> due_{0};
  EventGate gate_;
};

TEST_F(SharedGate, LetsNobodyFallAsleepWhileSomethingIsDue) {
  due_ = 1;
  gate_.mutex().lock();
  EXPECT_EQ(gate_.wait_and_unlock(), 0);
}

TEST_F(SharedGate, ShowsWhoIsOnTheWayAndLetsOthersLookWhenHeHasGone) {
  const int before = looks;
  gate_.begin_way();
  EXPECT_EQ(on_the_way_, 1u);
  EXPECT_EQ(looks, before);
  gate_.end_way();
  EXPECT_EQ(on_the_way_, 0u);
  EXPECT_EQ(looks, before + 1);
}

}  // namespace
}  // namespace verbatim::shm
