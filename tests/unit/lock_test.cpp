// SPDX-License-Identifier: BSD-2-Clause
// SpinLock, futex, clock.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "runtime/sync/futex.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim {
namespace {

// More threads than cores, so that holders are preempted and waiters must yield.
TEST(SpinLock, ExcludesAllOthers) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20000;
  SpinLock lock;
  long plain_counter = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const LockGuard guard(lock);
        ++plain_counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain_counter, long{kThreads} * kRounds);
}

TEST(SpinLock, TryLockDoesNotWait) {
  SpinLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(SpinLock, IsAByteMadeAtCompileTime) {
  static constinit SpinLock lock;
  EXPECT_EQ(sizeof lock, 1u);
  const LockGuard guard(lock);
}

TEST(Futex, ReturnsWhenTheWordHasChangedAlready) {
  std::atomic<std::uint32_t> word{1};
  EXPECT_EQ(futex_wait(word, 0), 0);
}

TEST(Futex, WakesASleeper) {
  std::atomic<std::uint32_t> word{0};
  std::thread sleeper([&] {
    while (word.load() == 0) EXPECT_EQ(futex_wait(word, 0), 0);
  });
  word.store(1);
  futex_wake(word);
  sleeper.join();
}

// The reason why blocking verbs sleep here: a handler without SA_RESTART ends the wait.
TEST(Futex, IsInterruptedByAHandlerThatDoesNotRestart) {
  static std::atomic<bool> handled{false};
  struct sigaction action {};
  action.sa_handler = [](int) { handled.store(true); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<std::uint32_t> word{0};
  std::atomic<int> answer{-1};
  std::thread sleeper([&] { answer.store(futex_wait(word, 0)); });
  // Again and again, because the first signal may come before the sleep.
  while (answer.load() == -1) {
    ::pthread_kill(sleeper.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_TRUE(handled.load());
  EXPECT_EQ(answer.load(), EINTR);
}

TEST(Clock, GoesForward) {
  const std::uint64_t before = now_ns();
  std::uint64_t after = before;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t next = now_ns();
    EXPECT_GE(next, after);
    after = next;
  }
  EXPECT_GT(after, before);
}

}  // namespace
}  // namespace verbatim
