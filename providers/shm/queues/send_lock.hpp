// SPDX-License-Identifier: BSD-2-Clause
//
// The lock of a queue pair's sending side, and the mark that other processes look for.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// The send lock is the record's active word, so that the one atomic that a thread-safe post must
/// pay is also the full fence and the mark that a peer's deregistration looks for.
///
/// In a thread domain the word is only the mark, stored plainly by the domain's thread; who may
/// store it is said by the domain's lock, which that thread takes by plain stores too.
class SendLock {
 public:
  /// Who asks: the posts and polls of the program, which are those of the domain, or anybody.
  enum class As : bool { kGuest, kUser };

  explicit SendLock(Qp& qp, As as = As::kGuest) noexcept : word_(qp.own->active), qp_(qp) {
    if (qp.in_domain) [[unlikely]]
      take_in_domain(as);
    else if (!try_take()) [[unlikely]]
      take_slowly();
  }
  /// Only if it is free now.
  SendLock(Qp& qp, bool& taken, As as) noexcept : word_(qp.own->active), qp_(qp) {
    if (qp.in_domain) [[unlikely]]
      try_take_in_domain(as);
    else if (!try_take())
      held_ = Held::kNot;
    taken = held_ != Held::kNot;
  }
  /// Takes over what keep() left.
  struct Kept {};
  SendLock(Qp& qp, Kept) noexcept
      : word_(qp.own->active), qp_(qp), value_(word_.load(std::memory_order_relaxed)) {
    if (qp.in_domain) [[unlikely]]
      held_ = Held::kByDomain;
  }
  /// Leaves the lock taken, for a later call of this thread to take over.
  void keep() noexcept { held_ = Held::kNot; }
  /// Release: whoever waits for the word sees all our copies done. Pairs with await_quiet().
  ~SendLock() {
    if (held_ == Held::kNot) return;
    word_.store(value_ + 1, std::memory_order_release);
    if (held_ != Held::kPlainly) [[unlikely]]
      qp_.rq.domain_lock.unlock();
  }
  SendLock(const SendLock&) = delete;
  SendLock& operator=(const SendLock&) = delete;

  /// Its holder is the thread of the queue pair's domain.
  bool by_domain() const noexcept { return held_ == Held::kByDomain; }

  /// Between two chunks of a long copy: tells waiting deregistrations that the last chunk is done.
  /// What it protects must be looked up again after this.
  void beat() noexcept {
    value_ += 2;
    word_.store(value_, std::memory_order_seq_cst);
  }

 private:
  enum class Held : std::uint8_t { kNot, kPlainly, kByDomain, kByGuest };

  bool try_take() noexcept {
    std::uint64_t even = word_.load(std::memory_order_relaxed) & ~std::uint64_t{1};
    value_ = even + 1;
    return word_.compare_exchange_strong(even, value_, std::memory_order_seq_cst,
                                         std::memory_order_relaxed);
  }
  [[gnu::cold, gnu::noinline]] void take_slowly() noexcept;

  void take_in_domain(As as) noexcept {
    if (as == As::kUser) [[likely]] {
      qp_.rq.domain_lock.lock_in_domain();
      mark_by_domain();
    } else {
      qp_.rq.domain_lock.lock();
      mark_by_guest();
    }
  }
  void try_take_in_domain(As as) noexcept {
    held_ = Held::kNot;
    if ((word_.load(std::memory_order_relaxed) & 1) != 0) return;  // maybe our own
    if (as == As::kUser) {
      qp_.rq.domain_lock.lock_in_domain();
      mark_by_domain();
    } else if (qp_.rq.domain_lock.try_lock()) {
      mark_by_guest();
    }
  }
  void mark_by_domain() noexcept {
    held_ = Held::kByDomain;
    value_ = word_.load(std::memory_order_relaxed) + 1;
    word_.store(value_, std::memory_order_relaxed);
    // The compiler keeps the order; the processor is made to by whoever looks
    // (QpRecord::kUnfenced).
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void mark_by_guest() noexcept {
    held_ = Held::kByGuest;
    value_ = word_.load(std::memory_order_relaxed) + 1;
    word_.store(value_, std::memory_order_seq_cst);
  }

  std::atomic<std::uint64_t>& word_;
  Qp& qp_;
  std::uint64_t value_ = 0;
  Held held_ = Held::kPlainly;
};

}  // namespace verbatim::shm
