// SPDX-License-Identifier: BSD-2-Clause
// The memory of requests that wait in a send queue.
#include "providers/shm/queues/send_store.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kMost = 100;
constexpr std::uint32_t kSges = 3;

class SendStoreTest : public ::testing::Test {
 protected:
  ~SendStoreTest() override { store_.free(memory_); }
  bool has_place(std::uint32_t head, std::uint32_t tail) {
    return store_.has_place(memory_, kMost, kSges, head, tail);
  }
  /// Request `i`, with all that a place holds; every third is inline.
  void fill(std::uint32_t i) {
    PendingSend& send = store_.at(i);
    send.clear();
    send.wr_id = i;
    send.is_inline = i % 3 == 0;
    unsigned char* const bytes = store_.inline_bytes_of(i);
    if (send.is_inline) std::memset(bytes, static_cast<int>(i), kMaxInline);
    for (std::uint32_t j = 0; j < kSges; ++j) store_.sges_of(i)[j] = {i, j, i + j};
    if (send.is_inline) store_.sges_of(i)->addr = reinterpret_cast<std::uint64_t>(bytes);
  }
  void expect_filled(std::uint32_t i) const {
    const PendingSend& send = store_.at(i);
    EXPECT_EQ(send.wr_id, i);
    EXPECT_EQ(store_.sges_of(i)[kSges - 1].lkey, i + kSges - 1);
    if (!send.is_inline) {
      EXPECT_EQ(store_.sges_of(i)->addr, i);
      return;
    }
    const auto* const bytes = reinterpret_cast<const unsigned char*>(store_.sges_of(i)->addr);
    EXPECT_EQ(bytes, store_.inline_bytes_of(i));
    EXPECT_EQ(bytes[0], static_cast<unsigned char>(i));
    EXPECT_EQ(bytes[kMaxInline - 1], static_cast<unsigned char>(i));
  }

  QueueMemory memory_;
  SendStore store_;
};

TEST_F(SendStoreTest, HasNoMemoryBeforeTheFirstRequestWaits) { EXPECT_FALSE(store_.is_made()); }

TEST_F(SendStoreTest, WhatWaitsStaysWhatItWasWhileTheStoreGrows) {
  for (std::uint32_t tail = 0; tail < kMost; ++tail) {
    ASSERT_TRUE(has_place(0, tail));
    fill(tail);
    for (std::uint32_t i = 0; i <= tail; ++i) expect_filled(i);
  }
}

TEST_F(SendStoreTest, NumbersMayBeginAnywhereAndPassTheEndOfTheirRange) {
  std::uint32_t head = ~std::uint32_t{0} - 5, tail = head;
  for (int waiting = 0; waiting < 40; ++waiting) {
    ASSERT_TRUE(has_place(head, tail));
    fill(tail++);
    if (waiting % 4 == 3) ++head;
    for (std::uint32_t i = head; i != tail; ++i) expect_filled(i);
  }
}

TEST_F(SendStoreTest, AQueueInWhichNothingPilesUpNeverGrows) {
  ASSERT_TRUE(has_place(0, 0));
  const PendingSend* const first = &store_.at(0);
  for (std::uint32_t i = 0; i < 3 * kMost; ++i) {
    ASSERT_TRUE(has_place(i, i + 1));
    EXPECT_LT(&store_.at(i + 1), first + 64) << "of the few places that it began with";
  }
}

TEST_F(SendStoreTest, MadeWholeItDoesNotMoveAgain) {
  ASSERT_TRUE(store_.make(memory_, kMost, kSges));
  const PendingSend* const first = &store_.at(0);
  for (std::uint32_t tail = 0; tail < kMost; ++tail) {
    ASSERT_TRUE(has_place(0, tail));
    fill(tail);
  }
  EXPECT_EQ(&store_.at(0), first);
  for (std::uint32_t i = 0; i < kMost; ++i) expect_filled(i);
}

}  // namespace
}  // namespace verbatim::shm
