// SPDX-License-Identifier: BSD-2-Clause
// The doorbells of many objects, and those of a completion queue: who has rung, and for what.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {
namespace {

TEST(DoorbellsOfMany, AreTakenOnce) {
  DoorbellBlock bells{};
  bells.ring(7);
  bells.ring(4095);
  std::vector<std::uint32_t> rung;
  bells.drain([&](std::uint32_t bit) { rung.push_back(bit); });
  EXPECT_EQ(rung, (std::vector<std::uint32_t>{7, 4095}));
  rung.clear();
  bells.drain([&](std::uint32_t bit) { rung.push_back(bit); });
  EXPECT_TRUE(rung.empty());
}

TEST(Bell, TellsHowManyLinesLieBehindThoseThatWereTaken) {
  for (const std::uint64_t taken : {0u, 1u, 127u, 128u, 1000u}) {
    for (std::uint64_t lines = 0; lines != bell::kLines; ++lines) {
      const std::uint8_t bell = bell::up_to(taken + lines);
      EXPECT_TRUE(bell::names_line(bell));
      EXPECT_EQ(bell::lines_behind(bell, taken), lines);
    }
  }
  EXPECT_FALSE(bell::names_line(bell::kAll));
  EXPECT_FALSE(bell::names_line(bell::kSilent));
}

class DoorbellsOfAQueue : public ::testing::Test {
 protected:
  std::uint8_t take_one(std::uint32_t at) {
    return CqDoorbells::bell_of(bells_->take(at / 8), at % 8);
  }
  std::unique_ptr<CqDoorbells> bells_ = std::make_unique<CqDoorbells>();
};

TEST_F(DoorbellsOfAQueue, AreFoundByTheirGroupsAndTakenOnce) {
  constexpr std::uint32_t kLast = CqDoorbells::kBells - 1;
  bells_->ring(7, bell::up_to(3));
  bells_->ring(kLast);
  EXPECT_TRUE(bells_->is_any_rung());
  EXPECT_EQ(bells_->take_groups(), 1u | std::uint64_t{1} << (CqDoorbells::kGroups - 1));
  EXPECT_FALSE(bells_->is_any_rung());
  EXPECT_EQ(bells_->take_groups(), 0u);
  EXPECT_TRUE(bells_->is_rung(7));
  EXPECT_EQ(CqDoorbells::rung_of(bells_->look(0)), 0b10000000u);
  EXPECT_EQ(take_one(7), bell::up_to(3));
  EXPECT_FALSE(bells_->is_rung(7));
  EXPECT_EQ(bells_->look(0), 0u);
  EXPECT_EQ(take_one(kLast), bell::kAll);
}

TEST_F(DoorbellsOfAQueue, AreNoGroupWhenOnlySomethingElseIsDue) {
  bells_->show_any();
  EXPECT_TRUE(bells_->is_any_rung());
  EXPECT_EQ(bells_->take_groups(), 0u);
  EXPECT_FALSE(bells_->is_any_rung());
}

TEST_F(DoorbellsOfAQueue, SayWhatTheLastOneSaid) {
  bells_->ring(70, bell::up_to(1));
  bells_->ring(70, bell::up_to(2));
  EXPECT_EQ(take_one(70), bell::up_to(2));
}

TEST_F(DoorbellsOfAQueue, AreFoundAgainWhenPutBack) {
  bells_->ring(70, bell::up_to(0));
  bells_->ring(71);
  const std::uint64_t rung = bells_->take(8);
  bells_->put_back(8, CqDoorbells::part_of(rung, 0b10000000));
  EXPECT_FALSE(bells_->is_rung(70));
  EXPECT_EQ(take_one(71), bell::kAll);
}

TEST_F(DoorbellsOfAQueue, KeepTheWordOfWhoHasRungMeanwhileWhenPutBack) {
  bells_->ring(0, bell::up_to(1));
  bells_->ring(1, bell::up_to(1));
  bells_->ring(2);
  const std::uint64_t rung = bells_->take(0);
  bells_->ring(1, bell::up_to(2));
  bells_->put_back(0, rung);
  const std::uint64_t now = bells_->take(0);
  EXPECT_EQ(CqDoorbells::bell_of(now, 0), bell::up_to(1));
  EXPECT_EQ(CqDoorbells::bell_of(now, 1), bell::up_to(2));
  EXPECT_EQ(CqDoorbells::bell_of(now, 2), bell::kAll);
}

TEST_F(DoorbellsOfAQueue, LeadToEachLineThoughNobodyLooksBehindTheOneThatIsNamed) {
  // What lies there, of each queue pair, as lines lie in a ring: published before the ring, and not
  // more of them than a bell can tell.
  constexpr std::uint32_t kObjects = 3;
  constexpr std::uint64_t kThings = 20'000;
  std::atomic<std::uint64_t> published[kObjects] = {};
  std::atomic<std::uint64_t> taken[kObjects] = {};
  const auto publish_all = [&](std::uint32_t object) {
    for (std::uint64_t i = 1; i <= kThings; ++i) {
      while (i - taken[object].load(std::memory_order_acquire) >= bell::kLines)
        std::this_thread::yield();
      published[object].store(i, std::memory_order_release);
      bells_->ring(object, i % 64 == 0 ? bell::kAll : bell::up_to(i));
    }
  };
  std::vector<std::thread> publishers;
  for (std::uint32_t object = 0; object != kObjects; ++object)
    publishers.emplace_back(publish_all, object);
  std::uint64_t before_all[kObjects] = {};  // what had been taken before the last look at all
  std::uint32_t looks = 0;
  const auto look = [&] {
    if (!bells_->is_any_rung()) return false;
    if (bells_->take_groups() == 0) return true;
    const std::uint64_t rung = bells_->take(0);
    // What there is no room for.
    const std::uint32_t left = looks++ % 8;
    bells_->put_back(0, CqDoorbells::part_of(rung, left));
    if (left != 0) {
      bells_->show(0);
      bells_->show_any();
    }
    for (std::uint32_t object = 0; object != kObjects; ++object) {
      const std::uint8_t bell = CqDoorbells::bell_of(rung, object);
      if (bell == bell::kSilent || (left >> object & 1) != 0) continue;
      const std::uint64_t before = taken[object].load(std::memory_order_relaxed);
      const std::uint64_t there = published[object].load(std::memory_order_acquire);
      if (bell::names_line(bell)) {
        const std::uint64_t behind = bell::lines_behind(bell, before);
        // A look at all may have taken what is rung for only now.
        const bool is_late = before + behind > there;
        if (is_late) {
          EXPECT_GE(before - before_all[object], bell::kLines - behind)
              << "it was rung for before it was there";
        }
        taken[object].store(is_late ? before : before + behind, std::memory_order_release);
      } else {
        before_all[object] = before;
        taken[object].store(there, std::memory_order_release);
      }
    }
    return true;
  };
  const auto has_all = [&] {
    for (const auto& each : taken)
      if (each.load(std::memory_order_relaxed) != kThings) return false;
    return true;
  };
  std::uint64_t idle = 0;
  while (!has_all() && idle < 100'000'000) idle = look() ? 0 : idle + 1;
  for (auto& each : taken) {
    EXPECT_EQ(each.load(), kThings);
    each.store(kThings);  // lets its publisher end
  }
  for (std::thread& publisher : publishers) publisher.join();
}

}  // namespace
}  // namespace verbatim::shm
