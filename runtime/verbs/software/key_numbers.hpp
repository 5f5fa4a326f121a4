// SPDX-License-Identifier: BSD-2-Clause
// Which keys are given. A key is index << 8 | generation: an index that comes back has another
// generation, and freed indices wait in a queue, so that a stale key stays wrong for as long as
// possible. Index 0 is never given, so key 0 is none. Any thread; a spin lock guards the queue.
#pragma once

#include <cstdint>
#include <new>

#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

template <std::uint32_t kMost>
class KeyNumbers {
 public:
  /// So many fresh indices are given before one that was freed.
  static constexpr std::uint32_t kRest = 1024;

  /// A key whose index is below `capacity`; 0: all are in use. `counted(keys in use)` is called
  /// under the lock, for owners who show the count.
  template <class Counted>
  [[nodiscard]] std::uint32_t take(std::uint32_t capacity, Counted counted) noexcept {
    const LockGuard<SpinLock> guard(lock_);
    std::uint32_t index = 0;
    if ((free_head_ == 0 || used_ < kRest) && used_ + 1 < capacity) {
      index = ++used_;
    } else if (free_head_ != 0) {
      index = free_head_;
      free_head_ = next_[index];
      if (free_head_ == 0) free_tail_ = 0;
    }
    if (index == 0) return 0;
    counted(++in_use_);
    return index << 8 | ++generation_[index];
  }

  /// `key` is the last that was given of its index, or one whose low byte its user has changed: the
  /// next one of the index differs from it.
  template <class Counted>
  void give_back(std::uint32_t key, Counted counted) noexcept {
    const std::uint32_t index = key >> 8;
    const LockGuard<SpinLock> guard(lock_);
    counted(--in_use_);
    generation_[index] = static_cast<std::uint8_t>(key);
    next_[index] = 0;
    if (free_tail_ != 0)
      next_[free_tail_] = index;
    else
      free_head_ = index;
    free_tail_ = index;
  }

  /// Never the same twice.
  [[nodiscard]] std::uint64_t next_serial() noexcept {
    const LockGuard<SpinLock> guard(lock_);
    return ++serials_;
  }

  /// Forgets which are given, but not their generations.
  void reset() noexcept {
    const LockGuard<SpinLock> guard(lock_);
    used_ = in_use_ = free_head_ = free_tail_ = 0;
  }
  /// In a forked child: whoever had the lock was a thread of the parent's. An index that it was in
  /// the middle of taking or giving back may be lost, none is given twice.
  void remake_lock() noexcept {
    ::new (&lock_) SpinLock;
    // The end of the queue may be that of another moment than its head.
    free_tail_ = 0;
    for (std::uint32_t i = free_head_; i != 0; i = next_[i]) free_tail_ = i;
  }

 private:
  SpinLock lock_;
  std::uint32_t used_ = 0;       ///< indices ever given
  std::uint32_t in_use_ = 0;     ///< of those, also a forked child's inherited ones
  std::uint32_t free_head_ = 0;  ///< queue of freed indices, linked through next_
  std::uint32_t free_tail_ = 0;
  std::uint32_t next_[kMost] = {};  // zero pages until touched
  std::uint8_t generation_[kMost] = {};
  std::uint64_t serials_ = 0;
};

}  // namespace verbatim
