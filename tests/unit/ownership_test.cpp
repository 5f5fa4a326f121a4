// SPDX-License-Identifier: BSD-2-Clause
// UniqueFd, KeptFd, ScopeExit, make_nothrow, container_of.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "runtime/base/cache_line.hpp"
#include "runtime/base/container_of.hpp"
#include "runtime/base/kept_fd.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/base/scope_exit.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
int new_fd() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(KeptFd, IsLookedAtWhoeverHasItsNumberByNow) {
  // Under ThreadSanitizer a look by libc's fstat is a race with whoever opened the file.
  std::atomic<int> number{-1};
  std::thread opens([&] { number.store(new_fd(), std::memory_order_relaxed); });
  while (number.load(std::memory_order_relaxed) < 0) {
  }
  const KeptFd kept{UniqueFd(number.load(std::memory_order_relaxed))};
  EXPECT_TRUE(kept.is_ours());
  opens.join();
}

TEST(UniqueFd, ClosesWithItsScope) {
  const int number = new_fd();
  {
    const UniqueFd fd(number);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), number);
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovesAndReleasesWithoutClosing) {
  UniqueFd first(new_fd());
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.release(), number);
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(UniqueFd, AssigningClosesWhatWasHeld) {
  UniqueFd held(new_fd());
  const int old_number = held.get();
  UniqueFd other(new_fd());
  const int new_number = other.get();
  held = std::move(other);
  EXPECT_FALSE(is_open(old_number));
  EXPECT_EQ(held.get(), new_number);
  held.reset(new_number);
  EXPECT_TRUE(is_open(new_number)) << "resetting to itself keeps it";
}

TEST(ScopeExit, RunsUnlessDismissed) {
  int runs = 0;
  {
    const ScopeExit undo([&] { ++runs; });
  }
  EXPECT_EQ(runs, 1);
  {
    ScopeExit undo([&] { ++runs; });
    undo.dismiss();
  }
  EXPECT_EQ(runs, 1);
}

struct alignas(kCacheLine * 2) Tracked {
  explicit Tracked(int& alive) : count(alive) { ++count; }
  ~Tracked() { --count; }
  int& count;
};

TEST(MakeNothrow, ConstructsAlignedAndDestroys) {
  int alive = 0;
  auto* const object = make_nothrow<Tracked>(alive);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object) % alignof(Tracked), 0u);
  destroy_nothrow(object);
  EXPECT_EQ(alive, 0);
  destroy_nothrow<Tracked>(nullptr);
}

struct Outer {
  int first;
  long inner;
};

TEST(ContainerOf, LeadsBackToTheWhole) {
  Outer outer{1, 2};
  EXPECT_EQ(container_of<Outer>(&outer.inner, offsetof(Outer, inner)), &outer);
}

}  // namespace
}  // namespace verbatim
