// SPDX-License-Identifier: BSD-2-Clause
//
// What one call of ibv_post_send, or ibv_wr_complete, holds while it performs requests: the send
// lock, the lock of the queue that it completes into, and its counts.
#pragma once

#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/transfer/send_queue.hpp"

namespace verbatim::shm {

/// Takes the send lock like SendLock, when somebody else has it.
[[gnu::cold, gnu::noinline]] void take_send_lock_slowly(Qp& qp) noexcept;
/// post_slowly() for whoever holds a PostLock.
[[gnu::noinline]] int post_slowly_locked(Qp& qp, const ibv_send_wr& wr) noexcept;

/// The send lock of a post, of a queue pair that is known to be of a thread domain or not: all that
/// it needs is in the record's word, so it costs nothing to hold.
template <bool kDomain>
class PostLock {
 public:
  explicit PostLock(Qp& qp) noexcept : qp_(qp) {
    std::atomic<std::uint64_t>& word = qp.own->active;
    if constexpr (kDomain) {
      qp.rq.domain_lock.lock_in_domain();
      // Not before: a guest may have been inside until now.
      word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      // As SendLock::mark_by_domain().
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      // Of a word that is odd already, it changes nothing.
      if ((word.fetch_or(1, std::memory_order_seq_cst) & 1) != 0) [[unlikely]]
        take_send_lock_slowly(qp);
    }
  }
  /// Takes over the lock that keep() left.
  struct Kept {};
  PostLock(Qp& qp, Kept) noexcept : qp_(qp) {}
  /// Takes the lock and leaves it taken.
  static void keep(Qp& qp) noexcept {
    union Left {
      explicit Left(Qp& of) noexcept : lock(of) {}
      ~Left() {}
      PostLock lock;
    } const left(qp);
  }
  ~PostLock() { let_go(qp_); }
  /// Release: as SendLock's. Of a lock that keep() left too.
  [[gnu::always_inline]] static void let_go(Qp& qp) noexcept {
    QpRecord& own = *qp.own;
    own.active.store(own.active.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if constexpr (kDomain) qp.rq.domain_lock.unlock();
  }
  PostLock(const PostLock&) = delete;
  PostLock& operator=(const PostLock&) = delete;

 private:
  Qp& qp_;
};

/// Stores completions of one post call under one hold of the CQ's lock.
class CompletionWriter {
 public:
  explicit CompletionWriter(Cq& cq) noexcept : cq_(cq) {}
  ~CompletionWriter() { let_go(); }
  CompletionWriter(const CompletionWriter&) = delete;
  CompletionWriter& operator=(const CompletionWriter&) = delete;

  void push(const Completion& completion) noexcept {
    if (!held_) {
      // A queue of a domain has only queue pairs of it, and we are one of their posts.
      if (cq_.in_domain.load(std::memory_order_relaxed)) [[unlikely]]
        cq_.lock.lock_in_domain();
      else
        cq_.lock.lock();
      held_ = true;
    }
    push_locked(cq_, completion);
  }
  void let_go() noexcept {
    if (held_) cq_.lock.unlock();
    held_ = false;
  }

 private:
  Cq& cq_;
  bool held_ = false;
};

/// The record's counts, in registers while a list is performed.
class Counts {
 public:
  explicit Counts(const Qp& qp) noexcept : posted_(qp.own->posted), bytes_(qp.own->sent_bytes) {}
  void put_back(Qp& qp) const noexcept {
    store_relaxed(qp.own->posted, posted_);
    store_relaxed(qp.own->sent_bytes, bytes_);
  }
  /// The next request's place in the send queue, cut.
  std::uint32_t next() const noexcept { return static_cast<std::uint32_t>(posted_); }
  std::uint32_t in_send_queue(const Qp& qp) const noexcept {
    return next() - qp.own->polled.load(std::memory_order_acquire);
  }
  void add(std::uint64_t bytes) noexcept {
    ++posted_;
    bytes_ += bytes;
  }

 private:
  std::uint64_t posted_;
  std::uint64_t bytes_;
};

}  // namespace verbatim::shm
