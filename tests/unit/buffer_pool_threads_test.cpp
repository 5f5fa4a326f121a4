// SPDX-License-Identifier: BSD-2-Clause
// vbt_pool between threads: each keeps some buffers to itself, and none is out of others' reach.
#include <gtest/gtest.h>
#include <pthread.h>
#include <verbatim/memory.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "runtime/memory/buffer_pool_fast.hpp"
#include "tests/unit/pools.hpp"

namespace verbatim::unit {
namespace {

class PoolThreads : public Pool {};

TEST_F(PoolThreads, AThreadThatEndsLeavesNothingBehind) {
  vbt_pool* const pool = make_pool(64, 1000);
  ASSERT_NE(pool, nullptr);
  for (int i = 0; i < 5; ++i) {
    std::thread([&] { give_all(pool, take_all(pool)); }).join();
    EXPECT_EQ(facts_of(pool).out, 0u);
    const std::vector<unsigned char*> taken = take_all(pool);
    EXPECT_EQ(taken.size(), 1000u);
    std::thread([&] { give_all(pool, taken); }).join();
  }
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

struct LateUse {
  vbt_pool* pool;
  void* buffer;
};

TEST_F(PoolThreads, AThreadMayUseItUntilItsVeryEnd) {
  vbt_pool* const pool = make_pool(64, 2);
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(vbt_pool_free(pool, vbt_pool_alloc(pool)), 0);
  // Keys are cleared in turn: this one after the library's.
  pthread_key_t late = 0;
  ASSERT_EQ(pthread_key_create(&late,
                               [](void* value) {
                                 const auto* const use = static_cast<LateUse*>(value);
                                 EXPECT_EQ(vbt_pool_free(use->pool, use->buffer), 0);
                                 void* const another = vbt_pool_alloc(use->pool);
                                 EXPECT_NE(another, nullptr);
                                 EXPECT_EQ(vbt_pool_free(use->pool, another), 0);
                               }),
            0);
  LateUse use{pool, nullptr};
  std::thread([&] {
    use.buffer = vbt_pool_alloc(pool);
    pthread_setspecific(late, &use);
  }).join();
  EXPECT_EQ(take_all(pool).size(), 2u);
  auto* const first = static_cast<unsigned char*>(facts_of(pool).memory);
  give_all(pool, {first, first + 64});
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
  EXPECT_EQ(pthread_key_delete(late), 0);
}

TEST_F(PoolThreads, WhatOtherThreadsKeepIsFound) {
  vbt_pool* const pool = make_pool(64, 1000);
  ASSERT_NE(pool, nullptr);
  constexpr int kThreads = 4;
  std::barrier full(kThreads + 1);
  std::barrier done(kThreads + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<void*> mine(100);
      for (void*& buffer : mine) buffer = vbt_pool_alloc(pool);
      for (void* const buffer : mine) EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
      full.arrive_and_wait();
      done.arrive_and_wait();
      // And works on, though others have been there.
      EXPECT_EQ(vbt_pool_free(pool, vbt_pool_alloc(pool)), 0);
    });
  }
  full.arrive_and_wait();
  const std::vector<unsigned char*> taken = take_all(pool);
  EXPECT_EQ(taken.size(), 1000u);
  give_all(pool, taken);
  done.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

TEST_F(PoolThreads, ServesMoreThreadsThanItHasCachesFor) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "half a minute, for a path on which every step is locked";
#endif
  constexpr unsigned kThreads = kMaxThreadNumbers + 50;
  vbt_pool* const pool = make_pool(64, 2 * kThreads);
  ASSERT_NE(pool, nullptr);
  std::barrier all(kThreads);
  std::atomic<unsigned> misses{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      for (int round = 0; round < 5; ++round) {
        void* const one = vbt_pool_alloc(pool);
        void* const two = vbt_pool_alloc(pool);
        if (one == nullptr || two == nullptr) ++misses;
        EXPECT_EQ(vbt_pool_free(pool, one), 0);
        EXPECT_EQ(vbt_pool_free(pool, two), 0);
      }
      all.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(misses, 0u);
  EXPECT_EQ(facts_of(pool).out, 0u);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

// All shares together are the whole pool, so whenever a thread asks there is a buffer, somewhere.
TEST_F(PoolThreads, EachThreadGetsItsShareAtAnyTime) {
  constexpr unsigned kThreads = 4;
  for (const unsigned share : {1u, 7u, 100u}) {
    vbt_pool* const pool = make_pool(sizeof(unsigned), kThreads * share);
    ASSERT_NE(pool, nullptr);
    std::vector<std::thread> threads;
    std::atomic<unsigned> misses{0};
    for (unsigned t = 1; t <= kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::vector<unsigned*> mine(share);
        for (unsigned round = 0; round < 50'000 / share; ++round) {
          for (unsigned*& buffer : mine) {
            buffer = static_cast<unsigned*>(vbt_pool_alloc(pool));
            if (buffer == nullptr) ++misses;
            if (buffer != nullptr) *buffer = t;
          }
          for (unsigned* const buffer : mine) {
            if (buffer == nullptr) continue;
            EXPECT_EQ(*buffer, t);
            EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(misses, 0u);
    EXPECT_EQ(vbt_destroy_pool(pool), 0);
  }
}

// Two threads take and two others give back, and who takes knows that there is a free one: it was
// given back before it was counted. Mostly it lies in the cache of one that gives back.
TEST_F(PoolThreads, IsNeverEmptyToWhoKnowsBetter) {
  constexpr unsigned kMessages = 3000;
  constexpr unsigned kLines = 2;
  for (const unsigned count : {1u, 3u, 40u}) {
    vbt_pool* const pool = make_pool(sizeof(unsigned), count);
    ASSERT_NE(pool, nullptr);
    std::atomic<unsigned> free_buffers{count};
    std::atomic<unsigned> misses{0};
    std::atomic<unsigned*> lines[kLines] = {};
    std::vector<std::thread> threads;
    for (std::atomic<unsigned*>& line : lines) {
      threads.emplace_back([&] {
        for (unsigned i = 0; i < kMessages; ++i) {
          unsigned known = free_buffers.load();
          while (known == 0 || !free_buffers.compare_exchange_weak(known, known - 1)) {
            if (known == 0) std::this_thread::yield();
            known = free_buffers.load();
          }
          auto* buffer = static_cast<unsigned*>(vbt_pool_alloc(pool));
          while (buffer == nullptr) {
            ++misses;
            buffer = static_cast<unsigned*>(vbt_pool_alloc(pool));
          }
          *buffer = i;
          while (line.load() != nullptr) std::this_thread::yield();
          line.store(buffer);
        }
      });
      threads.emplace_back([&] {
        for (unsigned i = 0; i < kMessages; ++i) {
          unsigned* buffer = nullptr;
          while ((buffer = line.exchange(nullptr)) == nullptr) std::this_thread::yield();
          EXPECT_EQ(*buffer, i);
          EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
          ++free_buffers;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(misses, 0u);
    EXPECT_EQ(vbt_destroy_pool(pool), 0);
  }
}

}  // namespace
}  // namespace verbatim::unit
