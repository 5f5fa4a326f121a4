// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/segment_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace verbatim::shm {
namespace {

TEST(SegmentHeap, SizesGoUpByHalvesOfPowersOfTwo) {
  EXPECT_EQ(SegmentHeap::piece_bytes(1), 64u);
  EXPECT_EQ(SegmentHeap::piece_bytes(64), 64u);
  EXPECT_EQ(SegmentHeap::piece_bytes(65), 128u);
  EXPECT_EQ(SegmentHeap::piece_bytes(129), 192u);
  EXPECT_EQ(SegmentHeap::piece_bytes(193), 256u);
  EXPECT_EQ(SegmentHeap::piece_bytes(8192), 8192u);
  EXPECT_EQ(SegmentHeap::piece_bytes(8193), 12288u);
  EXPECT_EQ(SegmentHeap::piece_bytes(12289), 16384u);
  for (std::size_t bytes = 1; bytes < (1u << 20); bytes += 37) {
    const std::uint64_t piece = SegmentHeap::piece_bytes(bytes);
    ASSERT_GE(piece, bytes);
    ASSERT_LE(piece, bytes <= 64 ? 64 : 2 * bytes);
    ASSERT_EQ(piece % 64, 0u);
  }
}

TEST(SegmentHeap, LivePiecesNeverOverlap) {
  constexpr std::uint64_t kFirst = 4096;
  constexpr std::uint64_t kEnd = 8u << 20;
  SegmentHeap heap;
  heap.open(kFirst, kEnd);
  std::mt19937 random(7);
  std::map<std::uint64_t, std::size_t> live;  // offset -> bytes asked for
  bool filled = false;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 100 < 55) {
      const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 65536 : 1024);
      bool recycled = false;
      const std::uint64_t offset = heap.take(bytes, recycled);
      if (offset == 0) {
        filled = true;
        continue;
      }
      ASSERT_EQ(offset % 64, 0u);
      ASSERT_GE(offset, kFirst);
      ASSERT_LE(offset + SegmentHeap::piece_bytes(bytes), kEnd);
      const auto after = live.lower_bound(offset);
      if (after != live.end()) {
        ASSERT_LE(offset + SegmentHeap::piece_bytes(bytes), after->first);
      }
      if (after != live.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + SegmentHeap::piece_bytes(before->second), offset);
      }
      live[offset] = bytes;
    } else {
      auto victim = live.begin();
      std::advance(victim, random() % std::min<std::size_t>(live.size(), 16));
      heap.give(victim->first, victim->second);
      live.erase(victim);
    }
  }
  EXPECT_TRUE(filled) << "the test should also meet a full heap";
  heap.close();
}

TEST(SegmentHeap, AFreedPieceServesItsClassAgain) {
  SegmentHeap heap;
  heap.open(64, 1u << 20);
  bool recycled = true;
  const std::uint64_t first = heap.take(8192, recycled);
  EXPECT_FALSE(recycled);
  heap.give(first, 8192);
  EXPECT_EQ(heap.take(7000, recycled), first);
  EXPECT_TRUE(recycled);
  heap.close();
}

TEST(SegmentHeap, RingsStartAtDifferentPlacesOfTheirPages) {
  SegmentHeap heap;
  heap.open(4096, 64u << 20);
  std::set<std::uint64_t> colours;
  for (int i = 0; i < 32; ++i) {
    bool recycled = false;
    colours.insert(heap.take(8192, recycled) % 4096);
  }
  EXPECT_EQ(colours.size(), 32u);
  heap.close();
}

TEST(SegmentHeap, WhatWasPromisedIsThereWhateverElseWasTakenMeanwhile) {
  SegmentHeap heap;
  heap.open(4096, 1u << 20);
  std::mt19937 random(11);
  std::multimap<std::uint64_t, std::size_t> live;  // offset -> bytes asked for
  std::vector<std::size_t> promised;
  int redeemed = 0, refused = 0, untaken = 0;
  for (int i = 0; i < 50000; ++i) {
    const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 65536 : 8192);
    bool recycled = false;
    switch (random() % 5) {
      case 0:
        if (const std::uint64_t offset = heap.take(bytes, recycled); offset != 0)
          live.emplace(offset, bytes);
        else
          ++untaken;
        break;
      case 1:
        if (heap.promise(bytes))
          promised.push_back(bytes);
        else
          ++refused;
        break;
      case 2:
      case 3: {
        if (promised.empty()) break;
        std::swap(promised[random() % promised.size()], promised.back());
        const std::size_t due = promised.back();
        promised.pop_back();
        heap.take_back(due);
        if (random() % 4 == 0) break;  // given up
        const std::uint64_t offset = heap.take(due, recycled);
        ASSERT_NE(offset, 0u) << "round " << i << ", " << due << " bytes";
        ASSERT_LE(offset + SegmentHeap::piece_bytes(due), 1u << 20);
        live.emplace(offset, due);
        ++redeemed;
        break;
      }
      default: {
        if (live.empty()) break;
        const auto one = std::next(live.begin(), static_cast<int>(random() % live.size()));
        heap.give(one->first, one->second);
        if (random() % 4 == 0) {
          ASSERT_TRUE(heap.promise(one->second)) << "the piece was just given";
          promised.push_back(one->second);
        }
        live.erase(one);
        break;
      }
    }
  }
  EXPECT_GT(redeemed, 100);
  EXPECT_GT(refused, 100);
  EXPECT_GT(untaken, 100);
  heap.close();
}

TEST(SegmentHeap, MoreThanThereIsIsRefused) {
  SegmentHeap heap;
  heap.open(64, 64 + 4096);
  bool recycled = false;
  EXPECT_EQ(heap.take(8192, recycled), 0u);
  EXPECT_EQ(heap.take(~std::size_t{0}, recycled), 0u);
  EXPECT_NE(heap.take(4096, recycled), 0u);
  EXPECT_EQ(heap.take(64, recycled), 0u);
  heap.close();
}

}  // namespace
}  // namespace verbatim::shm
