// SPDX-License-Identifier: BSD-2-Clause
// Pages that are kept from forked children while anything registered lies on them: what the kernel
// says of the mappings (VmFlags: dc), and what is asked of it where it cannot be made to answer so.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "runtime/memory/fork_guard.hpp"

namespace verbatim::unit {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

/// For each page, whether a fork leaves it out.
std::string kept_pages(const unsigned char* base, std::size_t pages) {
  std::string kept(pages, '?');
  std::ifstream maps("/proc/self/smaps");
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  std::uintptr_t begin = 0, end = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    char rights[8];
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) == 3) begin = from, end = to;
    if (line.rfind("VmFlags:", 0) != 0) continue;
    const bool leaves_out = (line + " ").find(" dc ") != std::string::npos;
    for (std::size_t i = 0; i < pages; ++i) {
      const std::uintptr_t at = first + i * kPage;
      if (at >= begin && at < end) kept[i] = leaves_out ? 'x' : '.';
    }
  }
  return kept;
}

class ForkPages : public ::testing::Test {
 protected:
  static constexpr std::size_t kPages = 16;
  void SetUp() override {
    base_ = static_cast<unsigned char*>(::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(base_, MAP_FAILED);
    // An emulator of processes answers for itself, or not at all.
    ASSERT_EQ(::madvise(base_, kPage, MADV_DONTFORK), 0);
    const bool is_told = kept_pages(base_, 1) == "x";
    ASSERT_EQ(::madvise(base_, kPage, MADV_DOFORK), 0);
    if (!is_told) GTEST_SKIP() << "/proc/self/smaps does not tell what a fork leaves out";
  }
  void TearDown() override {
    guard_.clear();
    ::munmap(base_, kPages * kPage);
  }
  ForkGuard::Range hold(std::size_t first, std::size_t count) {
    ForkGuard::Range range;
    // From the middle of the first page to the middle of the last.
    const auto at = reinterpret_cast<std::uintptr_t>(base_) + first * kPage + kPage / 2;
    EXPECT_EQ(guard_.hold(at, (count - 1) * kPage, range), 0);
    return range;
  }
  std::string kept() const { return kept_pages(base_, kPages); }

  unsigned char* base_ = nullptr;
  ForkGuard guard_;
};

TEST_F(ForkPages, AreKeptWhole) {
  const auto range = hold(3, 2);
  EXPECT_EQ(kept(), "...xx...........");
  guard_.release(range);
  EXPECT_EQ(kept(), "................");
}

TEST_F(ForkPages, AreKeptUntilTheLastHasLetGoInAnyOrder) {
  const auto one = hold(2, 6);
  const auto two = hold(5, 6);
  const auto same = hold(5, 6);
  const auto inner = hold(3, 2);
  EXPECT_EQ(kept(), "..xxxxxxxxx.....");
  guard_.release(one);
  EXPECT_EQ(kept(), "...xxxxxxxx.....");
  guard_.release(two);
  guard_.release(inner);
  EXPECT_EQ(kept(), ".....xxxxxx.....");
  guard_.release(same);
  EXPECT_EQ(kept(), "................");
}

TEST_F(ForkPages, OfManyOverlapsAreAlwaysTheirUnion) {
  std::mt19937 random(7);
  std::vector<std::pair<ForkGuard::Range, std::pair<std::size_t, std::size_t>>> held;
  for (int round = 0; round < 200; ++round) {
    if (held.size() > 4 || (!held.empty() && random() % 3 == 0)) {
      const std::size_t which = random() % held.size();
      guard_.release(held[which].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const std::size_t first = random() % (kPages - 2);
      const std::size_t count = 2 + random() % (kPages - first - 1);
      held.emplace_back(hold(first, count), std::pair{first, count});
    }
    std::string all(kPages, '.');
    for (const auto& [range, pages] : held)
      all.replace(pages.first, pages.second, pages.second, 'x');
    if (round % 10 != 0) continue;
    ASSERT_EQ(kept(), all) << round;
  }
}

// What a child has is what is not kept: mincore of the others says ENOMEM there.
TEST_F(ForkPages, AreNotInAChild) {
  const auto range = hold(3, 2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    unsigned char there;
    const bool has_kept = ::mincore(base_ + 3 * kPage, kPage, &there) == 0;
    const bool has_other = ::mincore(base_, kPage, &there) == 0;
    ::_exit(!has_kept && has_other ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  guard_.release(range);
}

TEST_F(ForkPages, OfWhatIsNotMappedAreRefusedAndNothingStays) {
  ASSERT_EQ(::munmap(base_ + 8 * kPage, kPage), 0);
  const auto other = hold(4, 2);
  ForkGuard::Range range;
  EXPECT_EQ(guard_.hold(reinterpret_cast<std::uintptr_t>(base_) + 2 * kPage, 9 * kPage, range),
            ENOMEM);
  EXPECT_EQ(range.begin, range.end);
  EXPECT_EQ(kept(), "....xx..?.......");
  guard_.release(other);
  EXPECT_EQ(kept(), "........?.......");
}

TEST(ForkRange, ThatIsNoneIsHeldByNobody) {
  ForkGuard guard;
  ForkGuard::Range range;
  EXPECT_EQ(guard.hold(0x1000, 0, range), 0);
  EXPECT_EQ(range.begin, range.end);
  EXPECT_EQ(guard.hold(UINTPTR_MAX - 5, 100, range), EINVAL);
  guard.release(range);
  guard.clear();
}

/// A mapping of 2 MiB pages at 1 GiB, of which no part can be advised.
struct LargePages : ForkSystem {
  static constexpr std::uintptr_t kBase = 1 << 30;
  static constexpr std::size_t kLarge = 2 << 20;
  static inline std::vector<std::string> asked;
  static inline int pages_asked = 0;
  LargePages()
      : ForkSystem{[](std::uintptr_t begin, std::size_t bytes, bool forks) noexcept {
                     if (begin % kLarge != 0 || bytes % kLarge != 0) return EINVAL;
                     char text[64];
                     std::snprintf(text, sizeof text, "%s %zu+%zu", forks ? "do" : "dont",
                                   (begin - kBase) / kLarge, bytes / kLarge);
                     asked.emplace_back(text);
                     return 0;
                   },
                   [](std::uintptr_t) noexcept {
                     ++pages_asked;
                     return std::uint64_t{kLarge};
                   }} {
    asked.clear();
    pages_asked = 0;
  }
};

TEST(ForkRange, OfLargePagesIsHeldByWholeOnes) {
  if (kPage != 4096) GTEST_SKIP() << "a leaf is another size here";
  const LargePages system;
  ForkGuard guard(system);
  ForkGuard::Range small, across;
  ASSERT_EQ(guard.hold(LargePages::kBase + 5000, 100, small), 0);
  EXPECT_EQ(small.begin, LargePages::kBase);
  EXPECT_EQ(small.end, LargePages::kBase + LargePages::kLarge);
  ASSERT_EQ(guard.hold(LargePages::kBase + LargePages::kLarge - 8, 16, across), 0);
  EXPECT_EQ(LargePages::asked, (std::vector<std::string>{"dont 0+1", "dont 1+1"}));
  guard.release(small);
  guard.release(across);
  EXPECT_EQ(LargePages::asked.back(), "do 0+2");
  guard.clear();
}

// Registered whole first, so that nobody knew of its pages' size; then a part of it.
TEST(ForkRange, OfLargePagesGoesBackWhenNothingOfThemIsHeld) {
  if (kPage != 4096) GTEST_SKIP() << "a leaf is another size here";
  const LargePages system;
  ForkGuard guard(system);
  ForkGuard::Range whole, part;
  ASSERT_EQ(guard.hold(LargePages::kBase, LargePages::kLarge, whole), 0);
  ASSERT_EQ(guard.hold(LargePages::kBase + 4096, 4096, part), 0);
  EXPECT_EQ(LargePages::pages_asked, 0);
  guard.release(whole);
  EXPECT_EQ(LargePages::asked.size(), 1u) << "a part is held still";
  guard.release(part);
  EXPECT_EQ(LargePages::asked, (std::vector<std::string>{"dont 0+1", "do 0+1"}));
  guard.clear();
}

}  // namespace
}  // namespace verbatim::unit
