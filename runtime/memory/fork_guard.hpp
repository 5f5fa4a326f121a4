// SPDX-License-Identifier: BSD-2-Clause
//
// Keeps registered pages from forked children (madvise(2), MADV_DONTFORK), for kernels that do not
// copy pinned pages at a fork (before Linux 5.12): there, a parent that writes to a page which it
// shares with a child is given another one, and the device goes on with the first. Pages are
// counted, because registrations share them in any way; a page is kept from children while its
// count is not 0.
//
// Any thread (one mutex); control code. Counts lie in a tree by address, as page tables do: nodes
// are made when a range is first held, and stay.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/sync/mutex.hpp"

namespace verbatim {

/// The kernel's answers, or a test's.
struct ForkSystem {
  int (*advise)(std::uintptr_t begin, std::size_t bytes, bool forks) noexcept;  ///< 0 or errno
  /// The page size of the mapping at an address; 0: unknown.
  std::uint64_t (*page_size)(std::uintptr_t at) noexcept;
};
extern const ForkSystem linux_fork_system;

class ForkGuard {
 public:
  /// What one registration holds: whole pages of their mappings. Empty: nothing.
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };

  constexpr explicit ForkGuard(const ForkSystem& system = linux_fork_system) noexcept
      : system_(system) {}
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// 0 and what to release; or ENOMEM, or the errno of madvise, and then nothing has changed.
  [[nodiscard]] int hold(std::uintptr_t at, std::size_t bytes, Range& out) noexcept;
  /// What was unmapped meanwhile is nobody's to give back.
  void release(const Range& range) noexcept;
  /// Around a fork, so that a child finds neither the lock held nor a range half counted.
  void lock_for_fork() noexcept { mutex_.lock(); }
  void unlock_after_fork() noexcept { mutex_.unlock(); }
  /// Frees the tree. REQUIRES: nobody holds anything. (The process's own lives until it ends.)
  void clear() noexcept;

 private:
  struct Leaf;
  [[nodiscard]] Leaf* leaf_of(std::uintptr_t at, bool makes) noexcept;
  [[nodiscard]] bool make_leaves(const Range& range) noexcept;
  void widen(Range& range) noexcept;
  void learn_page_size(std::uintptr_t at) noexcept;
  [[nodiscard]] int add(const Range& range) noexcept;
  /// Whether parts of larger pages were to go back.
  [[nodiscard]] bool subtract(const Range& range) noexcept;
  void return_whole_pages(Range range) noexcept;

  const ForkSystem& system_;
  Mutex mutex_;
  void* root_ = nullptr;
};

/// The process's, and whether it is used: that takes a device that needs it, and a program that
/// asks for it (ibv_fork_init, or RDMAV_FORK_SAFE or IBV_FORK_SAFE when the device is opened).
namespace fork_safety {
/// A kernel device is opened whose kernel does not copy.
void need() noexcept;
/// 0, or EINVAL: something is registered already that forks would harm.
[[nodiscard]] int ask() noexcept;
[[nodiscard]] bool is_needed() noexcept;
[[nodiscard]] bool is_on() noexcept;
/// Keeps a registration's pages from forked children, and ends that; both do nothing while the
/// guard is off.
[[nodiscard]] int hold(const void* at, std::size_t bytes, ForkGuard::Range& out) noexcept;
void release(ForkGuard::Range& range) noexcept;
}  // namespace fork_safety

}  // namespace verbatim
