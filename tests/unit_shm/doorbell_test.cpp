// SPDX-License-Identifier: BSD-2-Clause
// The doorbells of many objects: who has rung, and who did so for more than one thing.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {
namespace {

class DoorbellsOfMany : public ::testing::Test {
 protected:
  DoorbellBlock bells_{};
};

TEST_F(DoorbellsOfMany, AreTakenOnce) {
  bells_.ring(7);
  bells_.ring(4095);
  std::vector<std::uint32_t> rung;
  bells_.drain([&](std::uint32_t bit) { rung.push_back(bit); });
  EXPECT_EQ(rung, (std::vector<std::uint32_t>{7, 4095}));
  rung.clear();
  bells_.drain([&](std::uint32_t bit) { rung.push_back(bit); });
  EXPECT_TRUE(rung.empty());
}

TEST_F(DoorbellsOfMany, SayManyOfWhatWasRungForOnceMoreBeforeALook) {
  bells_.ring_one(3);
  bells_.ring_one(5);
  bells_.ring_one(5);
  const DoorbellBlock::Rung rung = bells_.take(0);
  EXPECT_EQ(rung.bits, 0b101000u);
  EXPECT_EQ(rung.many, 0b100000u);
}

TEST_F(DoorbellsOfMany, SayOneAgainAfterALook) {
  bells_.ring_one(5);
  bells_.ring_one(5);
  (void)bells_.take(0);
  bells_.ring_one(5);
  const DoorbellBlock::Rung rung = bells_.take(0);
  EXPECT_EQ(rung.bits, 0b100000u);
  EXPECT_EQ(rung.many, 0u);
}

TEST_F(DoorbellsOfMany, KeepTheWordOfWhoHasYetToRing) {
  // Its owner is between its two words.
  bells_.many[0].store(0b10, std::memory_order_relaxed);
  bells_.ring_one(0);
  EXPECT_EQ(bells_.take(0).many, 0u);
  bells_.words[0].fetch_or(0b10, std::memory_order_relaxed);
  EXPECT_EQ(bells_.take(0).many, 0b10u);
}

TEST_F(DoorbellsOfMany, AreFoundAgainWhenPutBack) {
  bells_.ring(70);
  (void)bells_.summary.exchange(0);
  const DoorbellBlock::Rung rung = bells_.take(1);
  bells_.put_back(1, rung);
  EXPECT_EQ(bells_.summary.load(), 0b10u);
  EXPECT_EQ(bells_.take(1).many, rung.many);
}

TEST_F(DoorbellsOfMany, SayManyOfWhatIsPutBackWhenItWasRungForMeanwhile) {
  bells_.ring_one(5);
  const DoorbellBlock::Rung rung = bells_.take(0);
  bells_.ring_one(5);
  bells_.put_back(0, rung);
  EXPECT_EQ(bells_.take(0).many, 0b100000u);
}

TEST_F(DoorbellsOfMany, LeadToEachThingThoughALookAtOneTakesOneAlone) {
  // What lies there, of each object, as messages lie in a ring: published before the ring.
  constexpr std::uint32_t kObjects = 3;
  constexpr std::uint32_t kThings = 20'000;
  std::atomic<std::uint32_t> published[kObjects] = {};
  std::uint32_t taken[kObjects] = {};
  const auto publish_all = [&](std::uint32_t object) {
    for (std::uint32_t i = 0; i != kThings; ++i) {
      published[object].fetch_add(1, std::memory_order_release);
      bells_.ring_one(object);
    }
  };
  std::vector<std::thread> publishers;
  for (std::uint32_t object = 0; object != kObjects; ++object)
    publishers.emplace_back(publish_all, object);
  std::uint64_t looks = 0;
  const auto look = [&] {
    if (bells_.summary.exchange(0, std::memory_order_seq_cst) == 0) return false;
    DoorbellBlock::Rung rung = bells_.take(0);
    // What there is no room for.
    const std::uint64_t left = looks++ % 8;
    bells_.put_back(0, {rung.bits & left, rung.many & left});
    rung = {rung.bits & ~left, rung.many & ~left};
    for (std::uint32_t object = 0; object != kObjects; ++object) {
      if ((rung.bits >> object & 1) == 0) continue;
      const std::uint32_t there = published[object].load(std::memory_order_acquire);
      if ((rung.many >> object & 1) != 0)
        taken[object] = there;
      else if (taken[object] != there)
        ++taken[object];
    }
    return true;
  };
  for (std::uint32_t i = 0; i != kThings; ++i) (void)look();
  for (std::thread& publisher : publishers) publisher.join();
  while (look()) {
  }
  for (const std::uint32_t each : taken) EXPECT_EQ(each, kThings);
}

}  // namespace
}  // namespace verbatim::shm
