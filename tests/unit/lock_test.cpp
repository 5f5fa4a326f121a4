// SPDX-License-Identifier: BSD-2-Clause
// SpinLock, BiasedLock, futex, clock.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "runtime/sync/biased_lock.hpp"
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

// What its owner writes with the lock held, one look at a time.
struct Guarded {
  BiasedLock lock;
  long first = 0;
  long second = 0;

  /// False: somebody else is in the middle.
  bool visit() {
    const LockGuard guard(lock);
    const bool whole = first == second;
    ++first;
    ++second;
    return whole;
  }
};

void take_until_owned(Guarded& guarded) {
  while (!guarded.lock.is_owned()) ASSERT_TRUE(guarded.visit());
}

class BiasedLockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!register_for_membarrier()) GTEST_SKIP() << "membarrier is refused here";
  }
};

TEST_F(BiasedLockTest, BelongsToTheThreadThatTakesItAgainAndAgain) {
  Guarded guarded;
  for (std::uint32_t i = 0; i < BiasedLock::kFirstStreak; ++i) {
    ASSERT_FALSE(guarded.lock.is_owned());
    ASSERT_TRUE(guarded.visit());
  }
  ASSERT_TRUE(guarded.visit());
  EXPECT_TRUE(guarded.lock.is_owned());
}

TEST_F(BiasedLockTest, TakesMoreToBelongToAThreadAgain) {
  Guarded guarded;
  take_until_owned(guarded);
  std::thread([&] { EXPECT_TRUE(guarded.visit()); }).join();
  for (std::uint32_t i = 0; i < BiasedLock::kStreak; ++i) {
    ASSERT_FALSE(guarded.lock.is_owned());
    ASSERT_TRUE(guarded.visit());
  }
  ASSERT_TRUE(guarded.visit());
  EXPECT_TRUE(guarded.lock.is_owned());
}

TEST_F(BiasedLockTest, IsNeverThatOfAThreadThatOwnsNone) {
  Guarded guarded;
  std::thread([&] {
    BiasedLock::own_none();
    for (std::uint32_t i = 0; i < 2 * BiasedLock::kStreak; ++i) EXPECT_TRUE(guarded.visit());
  }).join();
  EXPECT_FALSE(guarded.lock.is_owned());
  for (std::uint32_t i = 0; i <= BiasedLock::kFirstStreak; ++i) EXPECT_TRUE(guarded.visit());
  EXPECT_TRUE(guarded.lock.is_owned()) << "who comes first is not who takes it most";
}

TEST_F(BiasedLockTest, IsNobodysWhileThreadsTakeTurns) {
  Guarded guarded;
  std::atomic<int> turn{0};
  const auto take_turns = [&](int self) {
    for (std::uint32_t i = 0; i < 2 * BiasedLock::kStreak; ++i) {
      while (turn.load() != self) std::this_thread::yield();
      EXPECT_TRUE(guarded.visit());
      turn.store(1 - self);
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
  EXPECT_FALSE(guarded.lock.is_owned());
}

// The owner pays no fence, so its store may be late: whoever takes the bias away must not believe
// that it is outside.
TEST_F(BiasedLockTest, ExcludesItsOwnerFromOthersAndOthersFromItsOwner) {
  Guarded guarded;
  constexpr int kVisits = 100;
  std::atomic<int> visitors{2};
  std::atomic<long> owners_visits{0};
  std::atomic<bool> always_whole{true};
  std::thread owner([&] {
    while (visitors.load(std::memory_order_relaxed) != 0) {
      if (!guarded.visit()) always_whole = false;
      owners_visits.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const auto visitor = [&] {
    for (int i = 0; i < kVisits; ++i) {
      // It is worth a visit when the owner has come to own it again.
      for (int looks = 0; looks < 1000000 && !guarded.lock.is_owned(); ++looks) cpu_pause();
      if (!guarded.visit()) always_whole = false;
    }
    --visitors;
  };
  std::thread one(visitor), two(visitor);
  owner.join();
  one.join();
  two.join();
  EXPECT_TRUE(always_whole);
  EXPECT_EQ(guarded.first, owners_visits + 2 * kVisits);
  EXPECT_EQ(guarded.second, guarded.first);
}

TEST_F(BiasedLockTest, ANewThreadTakesWhatADeadOwnerLeft) {
  Guarded guarded;
  std::thread([&] { take_until_owned(guarded); }).join();
  ASSERT_TRUE(guarded.lock.is_owned());
  std::thread([&] {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(guarded.visit());
  }).join();
  EXPECT_TRUE(guarded.visit());
  EXPECT_EQ(guarded.first, guarded.second);
}

/// By a thread of the domain that has declared itself the owner.
bool visit_by_domain(Guarded& guarded) {
  const DomainGuard guard(guarded.lock, true);
  const bool whole = guarded.first == guarded.second;
  ++guarded.first;
  ++guarded.second;
  return whole;
}

TEST_F(BiasedLockTest, BelongsToADomainAtOnceAndAgainWhenAGuestHasLeft) {
  Guarded guarded;
  ASSERT_TRUE(guarded.lock.declare());
  EXPECT_TRUE(guarded.lock.is_owned());
  EXPECT_TRUE(visit_by_domain(guarded));
  std::thread([&] { EXPECT_TRUE(guarded.visit()); }).join();
  EXPECT_TRUE(guarded.lock.is_owned());
  EXPECT_TRUE(visit_by_domain(guarded));
  guarded.lock.undeclare();
  EXPECT_FALSE(guarded.lock.is_owned());
  EXPECT_TRUE(visit_by_domain(guarded));
  EXPECT_TRUE(guarded.visit());
}

TEST_F(BiasedLockTest, AGuestThatTriesDoesNotWaitForTheDomain) {
  Guarded guarded;
  ASSERT_TRUE(guarded.lock.declare());
  guarded.lock.lock_in_domain();
  std::thread([&] { EXPECT_FALSE(guarded.lock.try_lock()); }).join();
  EXPECT_TRUE(guarded.lock.is_owned());
  guarded.lock.unlock();
  std::thread([&] {
    ASSERT_TRUE(guarded.lock.try_lock());
    EXPECT_FALSE(guarded.lock.is_owned());
    guarded.lock.unlock();
  }).join();
  EXPECT_TRUE(guarded.lock.is_owned());
}

TEST_F(BiasedLockTest, ExcludesADomainFromItsGuests) {
  constexpr int kVisits = 300;
  Guarded guarded;
  ASSERT_TRUE(guarded.lock.declare());
  std::atomic<int> guests{2};
  std::atomic<bool> always_whole{true};
  long visits = 0;
  std::thread domain([&] {
    for (; guests.load(std::memory_order_relaxed) != 0; ++visits)
      if (!visit_by_domain(guarded)) always_whole = false;
  });
  const auto guest = [&](bool tries) {
    for (int i = 0; i < kVisits; ++i) {
      if (!tries) {
        if (!guarded.visit()) always_whole = false;
        continue;
      }
      while (!guarded.lock.try_lock()) cpu_pause();
      if (guarded.first++ != guarded.second++) always_whole = false;
      guarded.lock.unlock();
    }
    --guests;
  };
  std::thread one(guest, false), two(guest, true);
  domain.join();
  one.join();
  two.join();
  EXPECT_TRUE(always_whole);
  EXPECT_EQ(guarded.first, visits + 2 * kVisits);
  EXPECT_EQ(guarded.second, guarded.first);
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
