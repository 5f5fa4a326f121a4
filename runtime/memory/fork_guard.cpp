// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/fork_guard.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>

#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/page_census.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {
namespace {

constexpr unsigned kBits = 9;
constexpr std::size_t kFanout = std::size_t{1} << kBits;
/// Above a leaf; with it 9 bits more, of addresses of 57.
constexpr unsigned kLevels = 4;

struct Node {
  void* child[kFanout];
};

int advise_linux(std::uintptr_t begin, std::size_t bytes, bool forks) noexcept {
  const int advice = forks ? MADV_DOFORK : MADV_DONTFORK;
  return ::madvise(reinterpret_cast<void*>(begin), bytes, advice) == 0 ? 0 : errno;
}

std::uint64_t page_size_linux(std::uintptr_t at) noexcept {
  return read_mapping_sizes(reinterpret_cast<const void*>(at), 1).most_page;
}

void free_level(void* at, unsigned level) noexcept {
  for (std::size_t i = 0; at != nullptr && level != 0 && i < kFanout; ++i)
    free_level(static_cast<Node*>(at)->child[i], level - 1);
  std::free(at);
}

}  // namespace

constinit const ForkSystem linux_fork_system{advise_linux, page_size_linux};

/// The counts of kFanout pages, 2 MiB of 4 KiB each. A larger page is a whole leaf.
struct ForkGuard::Leaf {
  std::uint32_t count[kFanout];
  std::uint64_t page;  ///< bytes of a page of the mapping, when it is larger; 0: not known to be
};

ForkGuard::Leaf* ForkGuard::leaf_of(std::uintptr_t at, bool makes) noexcept {
  std::uintptr_t place = at / page_bytes() >> kBits;
  void** link = &root_;
  for (unsigned level = kLevels;; --level) {
    if (*link == nullptr && makes) *link = std::calloc(1, level == 0 ? sizeof(Leaf) : sizeof(Node));
    if (*link == nullptr || level == 0) return static_cast<Leaf*>(*link);
    link = &static_cast<Node*>(*link)->child[place >> kBits * (level - 1) & (kFanout - 1)];
  }
}

bool ForkGuard::make_leaves(const Range& range) noexcept {
  const std::uintptr_t span = page_bytes() * kFanout;
  for (std::uintptr_t at = range.begin / span * span; at < range.end; at += span) {
    if (leaf_of(at, true) == nullptr) return false;
  }
  return true;
}

void ForkGuard::widen(Range& range) noexcept {
  const auto page_at = [this](std::uintptr_t at) {
    const Leaf* const leaf = leaf_of(at, false);
    return leaf == nullptr || leaf->page == 0 ? page_bytes() : std::uintptr_t{leaf->page};
  };
  range.begin &= ~(page_at(range.begin) - 1);
  const std::uintptr_t last = page_at(range.end - 1);
  range.end = (range.end + last - 1) & ~(last - 1);
}

/// The mapping there may turn out to have larger pages than was known.
void ForkGuard::learn_page_size(std::uintptr_t at) noexcept {
  const std::uint64_t page = system_.page_size(at);
  const std::uintptr_t span = page_bytes() * kFanout;
  if (!std::has_single_bit(page) || page < span) return;
  const std::uintptr_t begin = at & ~(static_cast<std::uintptr_t>(page) - 1);
  for (std::uintptr_t part = begin; part < begin + page; part += span) {
    Leaf* const leaf = leaf_of(part, true);
    if (leaf == nullptr) return;
    leaf->page = std::max(leaf->page, page);
  }
}

int ForkGuard::add(const Range& range) noexcept {
  const std::uintptr_t page = page_bytes();
  std::uintptr_t run = range.begin;  // of pages whose first holder this is
  for (std::uintptr_t at = range.begin;; at += page) {
    const bool is_first = at < range.end && leaf_of(at, false)->count[at / page % kFanout]++ == 0;
    if (is_first) continue;
    const int error = run < at ? system_.advise(run, at - run, false) : 0;
    if (error != 0) {
      // What was counted and advised so far goes back; this run may have been advised in part.
      static_cast<void>(subtract({range.begin, std::min(at + page, range.end)}));
      return error;
    }
    if (at == range.end) return 0;
    run = at + page;
  }
}

bool ForkGuard::subtract(const Range& range) noexcept {
  const std::uintptr_t page = page_bytes();
  std::uintptr_t run = range.begin;
  bool splits = false;
  for (std::uintptr_t at = range.begin; at <= range.end; at += page) {
    const bool was_last = at < range.end && --leaf_of(at, false)->count[at / page % kFanout] == 0;
    if (was_last) continue;
    if (run < at) splits |= system_.advise(run, at - run, true) == EINVAL;
    run = at + page;
  }
  return splits;
}

/// Pages larger than they were counted by go back when nothing of them is held any more.
void ForkGuard::return_whole_pages(Range range) noexcept {
  learn_page_size(range.begin);
  learn_page_size(range.end - 1);
  widen(range);
  const std::uintptr_t span = page_bytes() * kFanout;
  std::uintptr_t end = 0;
  for (std::uintptr_t at = range.begin; at < range.end; at = end) {
    const Leaf* const first = leaf_of(at, false);
    end = at + (first != nullptr && first->page != 0 ? first->page : span);
    bool held = false;
    for (std::uintptr_t part = at; part < end; part += span) {
      const Leaf* const leaf = leaf_of(part, false);
      held |= leaf != nullptr && std::any_of(leaf->count, leaf->count + kFanout,
                                             [](auto count) { return count != 0; });
    }
    if (!held) static_cast<void>(system_.advise(at, end - at, true));
  }
}

int ForkGuard::hold(std::uintptr_t at, std::size_t bytes, Range& out) noexcept {
  out = {};
  if (bytes == 0) return 0;
  const std::uintptr_t page = page_bytes();
  if (at > (std::uintptr_t{1} << 57) || bytes > (std::uintptr_t{1} << 57) - at) return EINVAL;
  const LockGuard guard(mutex_);
  Range range{at & ~(page - 1), (at + bytes + page - 1) & ~(page - 1)};
  for (;;) {
    widen(range);
    if (!make_leaves(range)) return ENOMEM;
    const int error = add(range);
    if (error == 0) break;
    // A part of a page cannot be advised: the mapping's are larger.
    if (error != EINVAL) return error;
    learn_page_size(range.begin);
    learn_page_size(range.end - 1);
    const Range narrow = range;
    widen(range);
    if (range.begin == narrow.begin && range.end == narrow.end) return error;
  }
  out = range;
  return 0;
}

void ForkGuard::release(const Range& range) noexcept {
  if (range.begin == range.end) return;
  const LockGuard guard(mutex_);
  if (subtract(range)) return_whole_pages(range);
}

void ForkGuard::clear() noexcept {
  const LockGuard guard(mutex_);
  free_level(root_, kLevels);
  root_ = nullptr;
}

namespace fork_safety {
namespace {

constinit ForkGuard the_guard;
constinit std::atomic<bool> needed{false};
constinit std::atomic<bool> asked{false};
/// Something was registered without the guard, where it is needed.
constinit std::atomic<bool> too_late{false};
constinit std::atomic<bool> fork_known{false};

void lock_for_fork() noexcept { the_guard.lock_for_fork(); }
void unlock_after_fork() noexcept { the_guard.unlock_after_fork(); }

/// Registers the handlers of fork() before the lock is taken for the first time; of those who come
/// together one does it.
int prepare_for_forks() noexcept {
  if (fork_known.load(std::memory_order_acquire)) return 0;
  static constinit Mutex preparing;
  const LockGuard guard(preparing);
  if (fork_known.load(std::memory_order_relaxed)) return 0;
  const int error = ::pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
  fork_known.store(error == 0, std::memory_order_release);
  return error;
}

}  // namespace

void need() noexcept { needed.store(true, std::memory_order_relaxed); }

int ask() noexcept {
  if (asked.load(std::memory_order_relaxed)) return 0;
  if (too_late.load(std::memory_order_relaxed)) return EINVAL;
  asked.store(true, std::memory_order_relaxed);
  return 0;
}

bool is_needed() noexcept { return needed.load(std::memory_order_relaxed); }
bool is_on() noexcept { return is_needed() && asked.load(std::memory_order_relaxed); }

int hold(const void* at, std::size_t bytes, ForkGuard::Range& out) noexcept {
  out = {};
  if (!is_needed()) return 0;
  if (!is_on()) {
    too_late.store(true, std::memory_order_relaxed);
    return 0;
  }
  if (const int error = prepare_for_forks(); error != 0) return error;
  return the_guard.hold(reinterpret_cast<std::uintptr_t>(at), bytes, out);
}

void release(ForkGuard::Range& range) noexcept {
  the_guard.release(range);
  range = {};
}

}  // namespace fork_safety
}  // namespace verbatim
