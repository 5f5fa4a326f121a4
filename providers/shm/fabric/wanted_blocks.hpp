// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks of queue pair numbers whose owners somebody wants to meet. Any thread asks; the service
// thread tries, and forgets what has not been asked for a while. Bounded: the one asked longest ago
// gives way.
#pragma once

#include <cstdint>

#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {

class WantedBlocks {
 public:
  static constexpr std::uint64_t kRetryNs = 2'000'000;
  static constexpr std::uint64_t kForgetNs = 100'000'000;

  /// True when the block was not wanted before: the service thread should be woken.
  [[nodiscard]] bool ask(std::uint32_t block, std::uint64_t now) noexcept {
    const LockGuard guard(lock_);
    Want* oldest = &wants_[0];
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (wants_[i].block == block) {
        wants_[i].asked_at = now;
        return false;
      }
      if (wants_[i].asked_at < oldest->asked_at) oldest = &wants_[i];
    }
    Want& place = count_ < kCapacity ? wants_[count_++] : *oldest;
    place = {.block = block, .asked_at = now, .next_try = now, .nobody = false};
    return true;
  }

  /// What came of a try: whether somebody listens there.
  void note(std::uint32_t block, bool somebody) noexcept {
    const LockGuard guard(lock_);
    if (Want* want = find(block)) want->nobody = !somebody;
  }

  [[nodiscard]] bool has(std::uint32_t block) noexcept {
    const LockGuard guard(lock_);
    return find(block) != nullptr;
  }

  /// Wanted, and not known to be nobody's.
  [[nodiscard]] bool hopeful(std::uint32_t block) noexcept {
    const LockGuard guard(lock_);
    const Want* want = find(block);
    return want != nullptr && !want->nobody;
  }

  /// Takes the blocks to be tried now into `due`, forgets the stale ones, and tells when to come
  /// again (~0: not).
  static constexpr std::uint32_t kCapacity = 64;
  [[nodiscard]] std::uint32_t take_due(std::uint64_t now, std::uint32_t (&due)[kCapacity],
                                       std::uint64_t& next) noexcept {
    const LockGuard guard(lock_);
    std::uint32_t taken = 0;
    next = ~std::uint64_t{0};
    for (std::uint32_t i = 0; i < count_;) {
      Want& want = wants_[i];
      if (now > want.asked_at && now - want.asked_at > kForgetNs) {
        want = wants_[--count_];
        continue;
      }
      if (want.next_try <= now) {
        due[taken++] = want.block;
        want.next_try = now + kRetryNs;
      }
      if (want.next_try < next) next = want.next_try;
      ++i;
    }
    return taken;
  }

  void forget(std::uint32_t block) noexcept {
    const LockGuard guard(lock_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (wants_[i].block != block) continue;
      wants_[i] = wants_[--count_];
      return;
    }
  }

  void lock_for_fork() noexcept { lock_.lock(); }
  void unlock_after_fork() noexcept { lock_.unlock(); }

 private:
  struct Want {
    std::uint32_t block;
    std::uint64_t asked_at;
    std::uint64_t next_try;
    bool nobody;
  };
  Want* find(std::uint32_t block) noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (wants_[i].block == block) return &wants_[i];
    return nullptr;
  }
  SpinLock lock_;
  std::uint32_t count_ = 0;
  Want wants_[kCapacity] = {};
};

}  // namespace verbatim::shm
