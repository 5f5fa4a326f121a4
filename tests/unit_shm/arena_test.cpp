// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/arena.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "runtime/memory/memory_file.hpp"
#include "tests/support/child.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"

namespace verbatim {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

unsigned char* allocate(std::size_t bytes) {
  int error = 0;
  auto* const memory = static_cast<unsigned char*>(alloc_shared(bytes, error));
  EXPECT_NE(memory, nullptr) << error;
  return memory;
}

std::uint64_t backed(int fd) {
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

bool all_zero(const unsigned char* bytes, std::size_t count) {
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0;
}

TEST(Arena, MemoryIsPageAlignedZeroedAndBacked) {
  for (const std::size_t bytes :
       {std::size_t{1}, 4096 * kKiB / 1024, 100 * kKiB, 1 * kMiB, 5 * kMiB + 1}) {
    unsigned char* const memory = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % page_bytes(), 0u);
    EXPECT_TRUE(all_zero(memory, bytes < 2 ? 2 : bytes));
    ArenaView view;
    ASSERT_TRUE(arena_of(memory, bytes, view));
    EXPECT_GE(backed(view.fd), bytes);
    std::memset(memory, 0xa5, bytes);
    EXPECT_EQ(free_shared(memory), 0);
  }
}

TEST(Arena, LargeOnesHaveTheirOwnFileAtAHugePageBoundary) {
  unsigned char* const memory = allocate(4 * kMiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2 * kMiB), 0u);
  ArenaView view;
  ASSERT_TRUE(arena_of(memory, 4 * kMiB, view));
  EXPECT_EQ(view.offset, 0u);
  EXPECT_EQ(view.size, 4 * kMiB);
  EXPECT_EQ(free_shared(memory), 0);
  EXPECT_FALSE(arena_of(memory, 1, view));
}

TEST(Arena, SmallOnesShareAFile) {
  unsigned char* const a = allocate(10 * kKiB);
  unsigned char* const b = allocate(10 * kKiB);
  ArenaView view_a;
  ArenaView view_b;
  ASSERT_TRUE(arena_of(a, 10 * kKiB, view_a));
  ASSERT_TRUE(arena_of(b + 5, 100, view_b));
  EXPECT_EQ(view_a.number, view_b.number);
  EXPECT_EQ(view_b.offset - view_a.offset, static_cast<std::uint64_t>(b + 5 - a));
  EXPECT_EQ(free_shared(a), 0);
  EXPECT_EQ(free_shared(b), 0);
}

TEST(Arena, TheFileShowsTheSameBytesAtTheOffset) {
  unsigned char* const skip = allocate(3 * page_bytes());
  unsigned char* const memory = allocate(page_bytes());
  std::memcpy(memory + 100, "verbatim", 8);
  ArenaView view;
  ASSERT_TRUE(arena_of(memory, page_bytes(), view));
  char seen[8];
  ASSERT_EQ(pread(view.fd, seen, 8, static_cast<off_t>(view.offset + 100)), 8);
  EXPECT_EQ(std::memcmp(seen, "verbatim", 8), 0);
  EXPECT_EQ(free_shared(memory), 0);
  EXPECT_EQ(free_shared(skip), 0);
}

TEST(Arena, RangesThatLeaveTheAllocationAreNotInAnArena) {
  unsigned char* const memory = allocate(2 * kMiB);
  ArenaView view;
  EXPECT_TRUE(arena_of(memory, 2 * kMiB, view));
  EXPECT_FALSE(arena_of(memory, 2 * kMiB + 1, view));
  EXPECT_FALSE(arena_of(memory + 1, 2 * kMiB, view));
  EXPECT_FALSE(arena_of(memory, ~std::uint64_t{0}, view));
  EXPECT_FALSE(arena_of(memory - 1, 1, view));
  int elsewhere = 0;
  EXPECT_FALSE(arena_of(&elsewhere, 4, view));
  unsigned char* const small = allocate(page_bytes());
  EXPECT_FALSE(arena_of(small, kMiB, view)) << "the pages behind are nobody's";
  EXPECT_EQ(free_shared(small), 0);
  EXPECT_EQ(free_shared(memory), 0);
}

TEST(Arena, RegisteredMemoryCannotBeFreed) {
  for (const std::size_t bytes : {64 * kKiB, 3 * kMiB}) {
    unsigned char* const memory = allocate(bytes);
    unsigned char* const neighbour = allocate(bytes);
    ArenaView view;
    ASSERT_TRUE(arena_hold(memory + 10, bytes - 10, view));
    ASSERT_TRUE(arena_hold(memory, 1, view));
    EXPECT_EQ(free_shared(memory), EBUSY);
    EXPECT_EQ(free_shared(neighbour), 0) << "the neighbour is not registered";
    arena_drop(memory + 10, bytes - 10);
    EXPECT_EQ(free_shared(memory), EBUSY);
    arena_drop(memory, 1);
    EXPECT_EQ(free_shared(memory), 0);
  }
}

TEST(Arena, OnlyWhatWasAllocatedCanBeFreed) {
  unsigned char* const large = allocate(kMiB);
  unsigned char* const small = allocate(2 * page_bytes());
  int elsewhere = 0;
  EXPECT_EQ(free_shared(&elsewhere), EINVAL);
  EXPECT_EQ(free_shared(large + page_bytes()), EINVAL);
  EXPECT_EQ(free_shared(small + page_bytes()), EINVAL);
  EXPECT_EQ(free_shared(small + 1), EINVAL);
  EXPECT_EQ(free_shared(small), 0);
  EXPECT_EQ(free_shared(small), EINVAL);
  EXPECT_EQ(free_shared(large), 0);
  EXPECT_EQ(free_shared(nullptr), 0);
}

TEST(Arena, NothingAndTooMuchAreRefused) {
  const harness::AllowedLog expected("needs");
  int error = 0;
  EXPECT_EQ(alloc_shared(0, error), nullptr);
  EXPECT_EQ(error, EINVAL);
  EXPECT_EQ(alloc_shared(~std::size_t{0}, error), nullptr);
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(alloc_shared(std::size_t{1} << 45, error), nullptr);
  EXPECT_EQ(error, ENOMEM);
}

TEST(Arena, PeersGetOnlyWhatIsShared) {
  ArenaView view;
  UniqueFd fd;
  std::uint64_t size = 0;
  // Files that other sentences have shared wait to be used again, and come first.
  std::vector<unsigned char*> shared;
  unsigned char* memory = allocate(kMiB);
  while (arena_of(memory, kMiB, view) && arena_give(view.number, fd, size) == 0) {
    shared.push_back(memory);
    ASSERT_LT(shared.size(), 100u);
    memory = allocate(kMiB);
  }
  for (unsigned char* const each : shared) EXPECT_EQ(free_shared(each), 0);
  EXPECT_EQ(arena_give(view.number, fd, size), EACCES);
  EXPECT_EQ(arena_give(kMaxArenaNumbers, fd, size), ENOENT);
  EXPECT_EQ(arena_give(kMaxArenaNumbers - 1, fd, size), ENOENT);
  arena_share(view.number);
  ASSERT_EQ(arena_give(view.number, fd, size), 0);
  EXPECT_GE(size, kMiB) << "a larger file that waits is used again";
  EXPECT_EQ(fcntl(fd.get(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_EQ(free_shared(memory), 0);
}

TEST(Arena, ANumberThatWasGivenAwayNeverMeansAnotherFile) {
  unsigned char* const memory = allocate(3 * kMiB);
  ArenaView view;
  ASSERT_TRUE(arena_of(memory, 1, view));
  arena_share(view.number);
  UniqueFd given;
  std::uint64_t size = 0;
  ASSERT_EQ(arena_give(view.number, given, size), 0);
  struct stat first {};
  ASSERT_EQ(fstat(given.get(), &first), 0);
  std::memset(memory, 0x77, 3 * kMiB);
  ASSERT_EQ(free_shared(memory), 0);
  EXPECT_EQ(backed(given.get()), 0u) << "freed memory goes back to the system at once";

  // The waiting file serves again, zeroed; whatever bears the number is that file.
  std::vector<unsigned char*> others;
  for (int i = 0; i < 20; ++i)
    others.push_back(allocate((1 + static_cast<std::size_t>(i) % 4) * kMiB));
  for (unsigned char* const other : others) {
    EXPECT_TRUE(all_zero(other, kMiB));
    ArenaView there;
    ASSERT_TRUE(arena_of(other, 1, there));
    if (there.number != view.number) continue;
    struct stat now {};
    ASSERT_EQ(fstat(there.fd, &now), 0);
    EXPECT_EQ(now.st_ino, first.st_ino);
  }
  for (unsigned char* const other : others) EXPECT_EQ(free_shared(other), 0);
}

TEST(Arena, ALoopOfAllocationsLeavesNothingBehind) {
  (void)free_shared(allocate(page_bytes()));
  const auto before = harness::ProcessCensus::take();
  std::mt19937 random(3);
  std::vector<unsigned char*> live;
  for (int i = 0; i < 400; ++i) {
    if (live.size() < 30 && random() % 3 != 0) {
      live.push_back(allocate(1 + random() % (random() % 10 == 0 ? 2 * kMiB : 200 * kKiB)));
      *live.back() = 1;
    } else if (!live.empty()) {
      const std::size_t victim = random() % live.size();
      ASSERT_EQ(free_shared(live[victim]), 0);
      live[victim] = live.back();
      live.pop_back();
    }
  }
  for (unsigned char* const memory : live) ASSERT_EQ(free_shared(memory), 0);
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
}

TEST(Arena, ManyThreadsAllocateLookUpAndFree) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 150; ++i) {
        const std::size_t bytes = 1 + random() % (random() % 20 == 0 ? 2 * kMiB : 64 * kKiB);
        int error = 0;
        auto* const memory = static_cast<unsigned char*>(alloc_shared(bytes, error));
        if (memory == nullptr) {
          ++wrong;
          continue;
        }
        std::memset(memory, t + 1, bytes);
        ArenaView view;
        wrong += !arena_hold(memory, bytes, view);
        wrong += free_shared(memory) != EBUSY;
        arena_drop(memory, bytes);
        wrong += memory[bytes - 1] != t + 1;
        wrong += free_shared(memory) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Allocates, forks, and lets the child free and allocate: what the parent sees stays its own.
VBT_ROLE(arena_fork) {
  int error = 0;
  auto* const small = static_cast<unsigned char*>(alloc_shared(64 * kKiB, error));
  auto* const large = static_cast<unsigned char*>(alloc_shared(2 * kMiB, error));
  std::memset(small, 0x11, 64 * kKiB);
  std::memset(large, 0x22, 2 * kMiB);
  const pid_t child = fork();
  if (child == 0) {
    bool good = free_shared(small) == 0 && free_shared(large) == 0;
    for (int i = 0; i < 50; ++i) {
      auto* const own = static_cast<unsigned char*>(alloc_shared(60 * kKiB, error));
      good = good && own != nullptr;
      if (own != nullptr) std::memset(own, 0x33, 60 * kKiB);
    }
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  bool intact = true;
  for (std::size_t i = 0; i < 64 * kKiB; ++i) intact = intact && small[i] == 0x11;
  for (std::size_t i = 0; i < 2 * kMiB; ++i) intact = intact && large[i] == 0x22;
  control.send_value(static_cast<std::int32_t>(WIFEXITED(status) && WEXITSTATUS(status) == 0));
  control.send_value(static_cast<std::int32_t>(intact));
  return 0;
}

TEST(Arena, AForkedChildDoesNotTouchItsParentsMemory) {
  harness::Child child("arena_fork");
  EXPECT_EQ(child.control().receive_value<std::int32_t>(), 1);
  EXPECT_EQ(child.control().receive_value<std::int32_t>(), 1);
  EXPECT_EQ(child.wait().exit_status, 0);
}

}  // namespace
}  // namespace verbatim
