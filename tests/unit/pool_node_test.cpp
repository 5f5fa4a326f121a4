// SPDX-License-Identifier: BSD-2-Clause
// A pool over memory that is spread over nodes: a thread gets what is near it. On a map of nodes
// that the tests make up; that the memory lies there is asked in a machine that has two
// (tests/vm/memory.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/memory/buffer_pool_fast.hpp"

namespace verbatim::unit {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr std::uint64_t kStride = 64;
constexpr std::uint64_t kPage = 4096;

thread_local std::uint32_t node_here = kNoNode;

constexpr PoolMap kMap{[]() noexcept { return node_here; },
                       // Nodes on a line: the farther their numbers, the farther they are.
                       [](std::uint32_t from, std::uint32_t to) noexcept {
                         return from == kNoNode || to == kNoNode ? kNoNode
                                : from < to                      ? 10 + to - from
                                                                 : 10 + from - to;
                       }};

/// Over addresses that nobody has: a pool touches no buffer.
struct SpreadPool {
  SpreadPool(std::uint32_t count, const std::vector<std::uint32_t>& nodes,
             std::uint64_t stride = kStride)
      : each(stride) {
    SpreadParts parts;
    parts.bytes = (count * stride + kPage - 1) / kPage * kPage;
    parts.granule = kPage;
    parts.count = static_cast<std::uint32_t>(nodes.size());
    std::copy(nodes.begin(), nodes.end(), parts.nodes);
    EXPECT_EQ(pool.create(reinterpret_cast<unsigned char*>(kFirst), {stride, count}, parts, kMap),
              0);
  }
  ~SpreadPool() { EXPECT_EQ(BufferPool::unlist(&pool), 0); }
  SpreadPool(const SpreadPool&) = delete;
  SpreadPool& operator=(const SpreadPool&) = delete;

  /// The numbers of up to `most` buffers.
  std::vector<std::uint32_t> take(std::size_t most) {
    std::vector<std::uint32_t> taken;
    while (taken.size() < most) {
      void* const buffer = pool.alloc();
      if (buffer == nullptr) break;
      taken.push_back(
          static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(buffer) - kFirst) / each));
    }
    return taken;
  }
  void give(const std::vector<std::uint32_t>& numbers) {
    for (const std::uint32_t number : numbers)
      EXPECT_EQ(pool.free(reinterpret_cast<unsigned char*>(kFirst + number * each)), 0);
  }

  static constexpr std::uint64_t kFirst = std::uint64_t{1} << 40;
  std::uint64_t each;
  BufferPool pool;
};

/// Runs as a thread on that node. (A thread begins with what one that has ended has kept, so those
/// of one test live side by side.)
template <class Do>
void on_node(std::uint32_t node, Do what) {
  std::thread([&] {
    node_here = node;
    what();
  }).join();
}

// 640 buffers on two nodes, 320 on each.
TEST(PoolNodes, AThreadGetsTheBuffersOfItsNode) {
  SpreadPool spread(640, {4, 7});
  on_node(7, [&] {
    const auto near = spread.take(320);
    EXPECT_THAT(near, AllOf(SizeIs(320), Each(Ge(320u))));
    const auto far = spread.take(1000);
    EXPECT_THAT(far, AllOf(SizeIs(320), Each(Lt(320u))));
    spread.give(near);
    spread.give(far);
    on_node(4, [&] {
      const auto others = spread.take(320);
      EXPECT_THAT(others, AllOf(SizeIs(320), Each(Lt(320u))));
      spread.give(others);
    });
  });
  EXPECT_EQ(spread.pool.out(), 0u);
}

TEST(PoolNodes, WhenThoseAreOutTheNearestOthersFollow) {
  SpreadPool spread(3 * 64, {9, 0, 2});  // (as the parts lie)
  on_node(0, [&] {
    const auto own = spread.take(64);
    EXPECT_THAT(own, Each(AllOf(Ge(64u), Lt(128u))));
    const auto next = spread.take(64);
    EXPECT_THAT(next, Each(Ge(128u)));
    const auto last = spread.take(64);
    EXPECT_THAT(last, AllOf(SizeIs(64), Each(Lt(64u))));
    EXPECT_TRUE(spread.take(1).empty());
    spread.give(own);
    spread.give(next);
    spread.give(last);
  });
}

TEST(PoolNodes, WhatComesFromElsewhereGoesBackThere) {
  SpreadPool spread(640, {0, 1});
  on_node(1, [&] {
    const auto foreign = spread.take(100);
    on_node(0, [&] {
      const auto own = spread.take(100);
      const auto more = spread.take(10);
      // When there is room for them among what the thread keeps: they would come first again.
      spread.give(own);
      spread.give(foreign);
      spread.give(more);
      // None of them comes while there are others.
      const auto again = spread.take(320);
      EXPECT_THAT(again, AllOf(SizeIs(320), Each(Lt(320u))));
      spread.give(again);
    });
    const auto all = spread.take(320);
    EXPECT_THAT(all, AllOf(SizeIs(320), Each(Ge(320u))));
    spread.give(all);
  });
}

TEST(PoolNodes, AThreadThatMovesGetsWhatIsNearItThen) {
  SpreadPool spread(6400, {0, 1});
  on_node(0, [&] {
    const auto before = spread.take(1);
    node_here = 1;
    // At most what it kept from before.
    const auto kept = spread.take(2 * kMaxPoolBatch);
    const auto after = spread.take(500);
    EXPECT_THAT(after, Each(Ge(3200u)));
    spread.give(before);
    spread.give(kept);
    spread.give(after);
    const auto again = spread.take(500);
    EXPECT_THAT(again, Each(Ge(3200u)));
    spread.give(again);
  });
}

TEST(PoolNodes, AThreadOnAnotherNodeOrOnNoneGetsAll) {
  for (const std::uint32_t node : {5u, kNoNode}) {
    SpreadPool spread(640, {0, 1});
    on_node(node, [&] {
      auto all = spread.take(1000);
      EXPECT_THAT(all, SizeIs(640));
      spread.give(all);
      std::sort(all.begin(), all.end());
      EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
    });
  }
}

TEST(PoolNodes, PartsMayBeSmallerThanABuffer) {
  std::vector<std::uint32_t> nodes(64);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = i;
  for (const std::uint32_t count : {1u, 2u, 7u, 100u}) {
    SpreadPool spread(count, nodes, 10'000);
    on_node(3, [&] {
      auto all = spread.take(1000);
      EXPECT_THAT(all, SizeIs(count));
      spread.give(all);
      std::sort(all.begin(), all.end());
      EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
    });
  }
}

TEST(PoolNodes, BetweenThreadsOfAllNodesNoneIsLostOrInTwoHands) {
  constexpr std::uint32_t kCount = 200;
  SpreadPool spread(kCount, {0, 1, 2});
  std::mutex lock;
  std::set<std::uint32_t> out;
  std::vector<std::uint32_t> handed;  // from whoever took it to whoever comes next
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        node_here = random() % 50 == 0 ? random() % 4 : t % 3;
        const std::vector<std::uint32_t> taken = spread.take(random() % 60);
        std::vector<std::uint32_t> given;
        {
          const std::lock_guard guard(lock);
          for (const std::uint32_t number : taken) EXPECT_TRUE(out.insert(number).second);
          handed.insert(handed.end(), taken.begin(), taken.end());
          std::shuffle(handed.begin(), handed.end(), random);
          while (handed.size() > kCount / 2) {
            given.push_back(handed.back());
            handed.pop_back();
          }
          for (const std::uint32_t number : given) out.erase(number);
        }
        spread.give(given);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  spread.give(handed);
  EXPECT_EQ(spread.pool.out(), 0u);
  const auto all = spread.take(kCount + 1);
  EXPECT_THAT(all, SizeIs(kCount));
  spread.give(all);
}

}  // namespace
}  // namespace verbatim::unit
