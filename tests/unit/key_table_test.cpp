// SPDX-License-Identifier: BSD-2-Clause
// Keys: how they are given, what they allow, and what it means that one is taken back.
#include "runtime/verbs/software/key_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runtime/verbs/software/local_keys_fast.hpp"
#include "tests/unit/captured_stderr.hpp"

namespace verbatim {
namespace {

constexpr std::uint32_t kPd = 5, kOtherPd = 6, kQpn = 0x11;
constexpr unsigned kRead = IBV_ACCESS_REMOTE_READ, kWrite = IBV_ACCESS_REMOTE_WRITE;

KeyMeaning meaning(std::uint64_t iova, std::uint64_t length, unsigned access,
                   std::uint32_t pd = kPd) {
  return {0, iova, length, 0x7000'0000 + iova, access, pd};
}

const auto kNobodyUses = [] { return true; };
const auto kSomebodyStays = [] { return false; };

class Keys : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPlaces = 8;
  using Table = KeyTable<PrivateKeys<kPlaces>>;

  std::uint32_t publish(const KeyMeaning& what) {
    std::uint32_t key = 0;
    EXPECT_EQ(table_->publish(what, key), 0);
    return key;
  }
  KeyFault judge(std::uint32_t key, unsigned need, std::uint64_t start, std::uint64_t bytes) {
    const auto admits = [](const KeyMeaning& of) { return holder::is_open_to(of.pd, kPd, kQpn); };
    return authorize(table_->view(), {key, need, start, bytes}, admits, found_, offset_);
  }

  std::unique_ptr<Table> table_ = std::make_unique<Table>();
  KeyMeaning found_{};
  std::uint64_t offset_ = 0;
};

TEST_F(Keys, AllowWhatTheyWerePublishedFor) {
  const std::uint32_t key = publish(meaning(1000, 100, kRead | kWrite));
  EXPECT_EQ(judge(key, kRead, 1000, 100), KeyFault::kNone);
  EXPECT_EQ(judge(key, kWrite, 1040, 60), KeyFault::kNone);
  EXPECT_EQ(offset_, 40u);
  EXPECT_EQ(found_.address + offset_, 0x7000'0000u + 1040);
}

TEST_F(Keys, OfNothingAreUnknown) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(judge(0, 0, 0, 0), KeyFault::kUnknown) << "key 0 is none";
  EXPECT_EQ(judge(key + 1, kRead, 0, 8), KeyFault::kUnknown) << "another generation";
  EXPECT_EQ(judge(key + 0x100, kRead, 0, 8), KeyFault::kUnknown) << "another index";
  EXPECT_EQ(judge(~0u, kRead, 0, 8), KeyFault::kUnknown) << "an index beyond the table";
}

TEST_F(Keys, OfAnotherDomainAreRefusedAsThat) {
  const std::uint32_t key = publish(meaning(0, 8, kRead, kOtherPd));
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kDomain);
}

TEST_F(Keys, OfAWindowOfAnotherAreRefusedAsThat) {
  const std::uint32_t others = publish(meaning(0, 8, kRead, holder::kWindowOfQp | (kQpn + 1)));
  EXPECT_EQ(judge(others, kRead, 0, 8), KeyFault::kWindow);
  const std::uint32_t ours = publish(meaning(0, 8, kRead, holder::kWindowOfQp | kQpn));
  EXPECT_EQ(judge(ours, kRead, 0, 8), KeyFault::kNone);
}

TEST_F(Keys, WithoutTheRightAreRefusedBeforeTheirRangeIsLookedAt) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(judge(key, kWrite, 0, 8), KeyFault::kRight);
  EXPECT_EQ(judge(key, kRead | kWrite, 100, 8), KeyFault::kRight) << "every right is needed";
}

TEST_F(Keys, AllowNoByteOutsideOfTheirRange) {
  const std::uint32_t key = publish(meaning(1000, 100, kRead));
  EXPECT_EQ(judge(key, kRead, 999, 1), KeyFault::kBounds);
  EXPECT_EQ(judge(key, kRead, 1000, 101), KeyFault::kBounds);
  EXPECT_EQ(judge(key, kRead, 1100, 1), KeyFault::kBounds);
  EXPECT_EQ(judge(key, kRead, 1100, 0), KeyFault::kNone) << "no byte is none outside";
  EXPECT_EQ(judge(key, kRead, 1001, ~std::uint64_t{0}), KeyFault::kBounds) << "sums do not wrap";
}

TEST_F(Keys, ThatWereRetiredStayWrongWhenTheirIndexComesBack) {
  std::uint32_t before[kPlaces - 1];
  for (std::uint32_t& key : before) key = publish(meaning(0, 8, kRead));
  for (const std::uint32_t key : before) EXPECT_EQ(table_->retire(key, kNobodyUses), 0);
  for (std::uint32_t i = 1; i < kPlaces; ++i) (void)publish(meaning(0, 8, kRead));
  for (const std::uint32_t key : before) EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kUnknown);
}

TEST_F(Keys, ThatAreFreedComeBackInTheOrderInWhichTheyWereFreed) {
  std::uint32_t before[kPlaces - 1];
  for (std::uint32_t& key : before) key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(table_->retire(before[3], kNobodyUses), 0);
  EXPECT_EQ(table_->retire(before[1], kNobodyUses), 0);
  EXPECT_EQ(key_index(publish(meaning(0, 8, kRead))), key_index(before[3]));
  EXPECT_EQ(key_index(publish(meaning(0, 8, kRead))), key_index(before[1]));
}

TEST_F(Keys, ThatAreAllInUseAreNotGivenTwice) {
  for (std::uint32_t i = 1; i < kPlaces; ++i) (void)publish(meaning(0, 8, kRead));
  std::uint32_t key = 77;
  const unit::CapturedStderr says_why;
  EXPECT_EQ(table_->publish(meaning(0, 8, kRead), key), ENOMEM);
  EXPECT_EQ(key, 77u) << "outputs are written on success only";
}

TEST_F(Keys, MeanNothingWhileTheirOwnerWaitsForThoseWhoUseThem) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  KeyFault seen = KeyFault::kNone;
  EXPECT_EQ(table_->retire(key,
                           [&] {
                             seen = judge(key, kRead, 0, 8);
                             return true;
                           }),
            0);
  EXPECT_EQ(seen, KeyFault::kUnknown);
}

TEST_F(Keys, ThatSomebodyStaysInAreDeadAndCanBeRetiredAgain) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(table_->retire(key, kSomebodyStays), EBUSY);
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kUnknown);
  for (std::uint32_t i = 2; i < kPlaces; ++i) (void)publish(meaning(0, 8, kRead));
  std::uint32_t another = 0;
  {
    const unit::CapturedStderr says_why;
    EXPECT_EQ(table_->publish(meaning(0, 8, kRead), another), ENOMEM) << "its index is not free";
  }
  EXPECT_EQ(table_->retire(key, kNobodyUses), 0);
  EXPECT_EQ(key_index(publish(meaning(0, 8, kRead))), key_index(key));
}

TEST_F(Keys, ThatChangeMeanTheNewAlone) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kNone);
  const std::uint64_t before = found_.serial;
  EXPECT_EQ(table_->change(key, meaning(100, 8, kWrite), kNobodyUses), 0);
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kRight);
  EXPECT_EQ(judge(key, kWrite, 100, 8), KeyFault::kNone);
  EXPECT_NE(found_.serial, before) << "whoever kept the serial must look again";
}

TEST_F(Keys, ThatCannotChangeMeanWhatTheyMeant) {
  const std::uint32_t key = publish(meaning(0, 8, kRead));
  EXPECT_EQ(table_->change(key, meaning(100, 8, kWrite), kSomebodyStays), EBUSY);
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kNone);
}

/// A window's: reserved for life, bound under keys of the same index, closed, released.
TEST_F(Keys, ThatAreReservedMeanNothingUntilTheyAreShown) {
  std::uint32_t key = 0;
  ASSERT_EQ(table_->reserve(key), 0);
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kUnknown);
  const std::uint32_t bound = (key & ~0xffu) | ((key + 1) & 0xffu);  // what would be given next
  table_->show(bound, meaning(0, 8, kRead));
  EXPECT_EQ(judge(bound, kRead, 0, 8), KeyFault::kNone);
  EXPECT_EQ(judge(key, kRead, 0, 8), KeyFault::kUnknown);
  table_->hide(bound);
  EXPECT_EQ(judge(bound, kRead, 0, 8), KeyFault::kUnknown);
  table_->release(bound);
  for (std::uint32_t i = 1; i < kPlaces; ++i)
    EXPECT_NE(publish(meaning(0, 8, kRead)), bound) << "its last key is not the next one";
}

TEST(KeyIndices, RestWhileThereAreFreshOnesUpToABound) {
  using Numbers = KeyNumbers<4096>;
  const auto numbers = std::make_unique<Numbers>();
  const auto uncounted = [](std::uint32_t) {};
  const auto next = [&] { return key_index(numbers->take(4096, uncounted)); };
  const std::uint32_t first = numbers->take(4096, uncounted);
  numbers->give_back(first, uncounted);
  for (std::uint32_t i = 2; i <= Numbers::kRest; ++i) EXPECT_EQ(next(), i);
  EXPECT_EQ(next(), key_index(first));
  EXPECT_EQ(next(), Numbers::kRest + 1) << "nothing else was freed";
}

TEST_F(Keys, OfOurOwnFindTheBytesOfAnSge) {
  const std::uint32_t key = publish(meaning(1000, 100, IBV_ACCESS_LOCAL_WRITE));
  const KeyView<KeyRecord> view = table_->view();
  const OwnKeys<KeyRecord> ours{view.records, view.capacity, kPd};
  const OwnKeys<KeyRecord> others{view.records, view.capacity, kOtherPd};
  unsigned char* at = nullptr;
  EXPECT_TRUE(find_local_bytes(ours, key, 1010, 90, IBV_ACCESS_LOCAL_WRITE, at));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at), 0x7000'0000u + 1010);
  EXPECT_FALSE(find_local_bytes(ours, key, 1010, 91, 0, at));
  EXPECT_FALSE(find_local_bytes(ours, key, 999, 1, 0, at));
  EXPECT_FALSE(find_local_bytes(ours, key, 1010, 1, IBV_ACCESS_MW_BIND, at));
  EXPECT_FALSE(find_local_bytes(others, key, 1010, 1, 0, at));
  EXPECT_FALSE(find_local_bytes(ours, 0, 1010, 1, 0, at));
}

TEST_F(Keys, InARowAreJudgedAgainOnceTheyHaveChanged) {
  const std::uint32_t key = publish(meaning(1000, 100, 0));
  const KeyView<KeyRecord> view = table_->view();
  KeysInARow<KeyRecord> row({view.records, view.capacity, kPd});
  unsigned char* at = nullptr;
  EXPECT_TRUE(row.find_local_bytes(key, 1000, 100, 0, at));
  EXPECT_EQ(table_->change(key, meaning(1000, 50, 0), kNobodyUses), 0);
  EXPECT_FALSE(row.find_local_bytes(key, 1000, 100, 0, at));
  EXPECT_TRUE(row.find_local_bytes(key, 1000, 50, 0, at));
  EXPECT_EQ(table_->retire(key, kNobodyUses), 0);
  EXPECT_FALSE(row.find_local_bytes(key, 1000, 50, 0, at));
}

TEST_F(Keys, AreSeenWholeOrNotAtAllWhileTheyChange) {
  const std::uint32_t key = publish(meaning(1, 1, 1));
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    for (std::uint64_t n = 2; !stop.load(std::memory_order_relaxed); ++n) {
      const auto word = static_cast<std::uint32_t>(n & 0xffff) + 1;
      EXPECT_EQ(table_->change(key, {0, word, word, word, word, kPd}, kNobodyUses), 0);
    }
  });
  const KeyView<KeyRecord> view = table_->view();
  for (int whole = 0; whole < 20000;) {
    // As a message does: what was copied holds while the serial is the one that was read.
    KeyMeaning seen{};
    const KeyRecord* const record = find_key(view.records, view.capacity, key, seen);
    if (record == nullptr) continue;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (record->serial.load(std::memory_order_relaxed) != seen.serial) continue;
    ++whole;
    ASSERT_TRUE(seen.iova == seen.length && seen.iova == seen.access) << seen.serial;
  }
  stop.store(true);
  owner.join();
}

}  // namespace
}  // namespace verbatim
