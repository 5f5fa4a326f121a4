// SPDX-License-Identifier: BSD-2-Clause
// A ring of messages between two processes: here both of its ends are in one.
#include "mpi_shim/core/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace {

using vmpi::RingMemory;
using vmpi::RingPlaces;
using vmpi::RingReader;
using vmpi::RingSlot;
using vmpi::RingWriter;

class Ring : public testing::Test {
 protected:
  bool write(std::size_t bytes, unsigned char seed) {
    unsigned char* const out = writer.reserve(bytes);
    if (out == nullptr) return false;
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(seed + i);
    writer.publish(bytes);
    return true;
  }
  void expect(std::size_t bytes, unsigned char seed) {
    const unsigned char* message = nullptr;
    std::size_t length = 0;
    ASSERT_EQ(reader.next(message, length), RingReader::Found::kMessage);
    ASSERT_EQ(length, bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(message[i], static_cast<unsigned char>(seed + i)) << i << " of " << bytes;
    reader.take();
  }
  void expect_nothing() {
    const unsigned char* message = nullptr;
    std::size_t length = 0;
    EXPECT_EQ(reader.next(message, length), RingReader::Found::kNothing);
    EXPECT_FALSE(reader.has_message());
  }
  /// As the writer's header would be, of its first message.
  void say(std::uint64_t place, std::uint64_t bytes) {
    memory->slots[0].header = std::uint64_t{1} << 32 | place << 16 | bytes;
  }

  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  RingWriter writer{*memory};
  RingReader reader{*memory};
};

TEST_F(Ring, GivesMessagesOfAnySizeInTheirOrder) {
  std::mt19937 random(7);
  std::deque<std::pair<std::size_t, unsigned char>> under_way;
  unsigned char seed = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (random() % 2 == 0) {
      const std::size_t bytes = random() % 3 == 0 ? random() % 20'000 : random() % 80;
      if (write(bytes, ++seed)) under_way.emplace_back(bytes, seed);
    } else if (!under_way.empty()) {
      ASSERT_NO_FATAL_FAILURE(expect(under_way.front().first, under_way.front().second));
      under_way.pop_front();
    } else {
      expect_nothing();
    }
  }
}

TEST_F(Ring, IsFullWhenItsSlotsAre) {
  for (std::uint32_t i = 0; i < RingMemory::kSlots; ++i) ASSERT_TRUE(write(8, 1));
  EXPECT_FALSE(write(8, 1));
  EXPECT_EQ(writer.room(), 0u);
  expect(8, 1);
  EXPECT_TRUE(write(8, 1));
  EXPECT_FALSE(write(8, 1));
}

TEST_F(Ring, IsFullWhenItsBytesAre) {
  constexpr std::size_t kLong = RingMemory::kBytes / 4;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(write(kLong, 3));
  EXPECT_FALSE(write(57, 3));
  EXPECT_TRUE(write(RingSlot::kInline, 4)) << "this needs none";
  expect(kLong, 3);
  EXPECT_TRUE(write(kLong, 5));
  EXPECT_FALSE(write(57, 3));
  for (int i = 0; i < 3; ++i) expect(kLong, 3);
  expect(RingSlot::kInline, 4);
  expect(kLong, 5);
  expect_nothing();
}

TEST_F(Ring, ReservingAgainWritesTheSameMessage) {
  ASSERT_NE(writer.reserve(5000), nullptr);
  ASSERT_NE(writer.reserve(20), nullptr);
  EXPECT_TRUE(write(20, 1));
  EXPECT_TRUE(write(5000, 2));
  expect(20, 1);
  expect(5000, 2);
}

TEST(RingOfBytes, IsFreeAgainHoweverManyShortMessagesCameBetween) {
  for (const std::uint64_t taken : {1ull, 1ull << 31, 3ull << 30, 1ull << 32, 5ull << 32}) {
    RingPlaces places(RingMemory::kBytes, true);
    ASSERT_TRUE(places.find(RingMemory::kBytes, 0));
    places.use(0);
    EXPECT_FALSE(places.find(64, 0));
    EXPECT_TRUE(places.find(RingMemory::kBytes, taken)) << taken;
  }
}

TEST_F(Ring, IsNotReadBeyondItsEnd) {
  const unsigned char* message = nullptr;
  std::size_t bytes = 0;
  constexpr std::uint64_t kUnits = RingMemory::kBytes / RingMemory::kUnit;
  for (const auto& [place, length] :
       {std::pair<std::uint64_t, std::uint64_t>{kUnits, 57}, {0xffff, 0xffff}, {kUnits - 1, 65}}) {
    say(place, length);
    EXPECT_EQ(reader.next(message, bytes), RingReader::Found::kNonsense) << place;
  }
  say(kUnits - 1, 64);
  EXPECT_EQ(reader.next(message, bytes), RingReader::Found::kMessage);
  say(0xffff, RingSlot::kInline);
  EXPECT_EQ(reader.next(message, bytes), RingReader::Found::kMessage);
  EXPECT_EQ(message, memory->slots[0].bytes);
}

TEST_F(Ring, AReceiverThatLiesAboutWhatItHasTakenMakesNoRoom) {
  for (std::uint32_t i = 0; i < RingMemory::kSlots; ++i) ASSERT_TRUE(write(8, 1));
  for (const std::uint32_t lie : {RingMemory::kSlots + 1, 0xffffffffu, 0x80000000u}) {
    memory->taken = lie;
    EXPECT_FALSE(write(8, 1)) << lie;
  }
}

}  // namespace
