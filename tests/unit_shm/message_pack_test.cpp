// SPDX-License-Identifier: BSD-2-Clause
// A slot that brings several messages: what a receiver believes of it, and keeps.
#include "providers/shm/wire/message_pack.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace verbatim::shm {
namespace {

std::uint64_t pack_of(std::uint32_t count, std::uint32_t bytes) {
  return header::make(1, SlotKind::kPack, 0, bytes, count);
}

TEST(MessagePackTest, HoldsNoMoreThanASlotHasRoomFor) {
  EXPECT_EQ(messages_in(pack_of(7, 8)), 7u);
  EXPECT_EQ(messages_in(pack_of(2, 28)), 2u);
  EXPECT_EQ(messages_in(pack_of(7, 1)), 7u);
  EXPECT_EQ(messages_in(pack_of(7, 9)), 0u);
  EXPECT_EQ(messages_in(pack_of(2, 29)), 0u);
  EXPECT_EQ(messages_in(pack_of(8, 1)), 0u);
  EXPECT_EQ(messages_in(pack_of(0x80000000u, 2)), 0u);
}

TEST(MessagePackTest, HoldsTwoMessagesAtLeastAndNoneThatIsEmpty) {
  EXPECT_EQ(messages_in(pack_of(0, 8)), 0u);
  EXPECT_EQ(messages_in(pack_of(1, 8)), 0u);
  EXPECT_EQ(messages_in(pack_of(7, 0)), 0u);
}

TEST(MessagePackTest, ShowsItsMessagesAsTheSlotsThatTheyWouldHaveHad) {
  Slot slot{};
  for (std::uint64_t i = 0; i < 7; ++i) {
    const std::uint64_t value = 100 + i;
    std::memcpy(slot.data + i * 8, &value, 8);
  }
  MessagePack pack;
  ASSERT_TRUE(open_pack(pack, 5, slot, pack_of(7, 8)));
  EXPECT_FALSE(pack.has(12));
  for (std::uint64_t i = 5; i < 12; ++i) {
    ASSERT_TRUE(pack.has(i));
    Slot own;
    pack.show(i, own);
    std::uint64_t value;
    std::memcpy(&value, own.data, 8);
    EXPECT_EQ(value, 95 + i);
    EXPECT_TRUE(header::is_simple_of(own.header, 0));
    EXPECT_EQ(header::inline_length(own.header), 8u);
  }
}

TEST(MessagePackTest, OfNoMessagesIsNotKept) {
  const Slot slot{};
  MessagePack pack;
  EXPECT_FALSE(open_pack(pack, 5, slot, pack_of(9, 8)));
  EXPECT_FALSE(pack.has(5));
}

}  // namespace
}  // namespace verbatim::shm
