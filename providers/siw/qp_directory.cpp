// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/qp_directory.hpp"

#include <utility>

#include "providers/siw/objects.hpp"
#include "providers/siw/send.hpp"

namespace verbatim::siw {

void QpDirectory::add(Qp& qp) noexcept {
  const LockGuard guard(lock_);
  qp.next_in_bucket = std::exchange(bucket(qp.plain.qp_num), &qp);
}

void QpDirectory::remove(Qp& qp) noexcept {
  const LockGuard guard(lock_);
  for (Qp** at = &bucket(qp.plain.qp_num); *at != nullptr; at = &(*at)->next_in_bucket) {
    if (*at != &qp) continue;
    *at = qp.next_in_bucket;
    break;
  }
  if (qp.failed.load(std::memory_order_relaxed) &&
      qp.rings_left.load(std::memory_order_relaxed) != 0)
    unsettled_.fetch_sub(1, std::memory_order_relaxed);
}

void QpDirectory::mark_failed(std::uint32_t number) noexcept {
  const LockGuard guard(lock_);
  for (Qp* qp = bucket(number); qp != nullptr; qp = qp->next_in_bucket) {
    if (qp->plain.qp_num == number) fail(*qp);
  }
}

void QpDirectory::fail_all() noexcept {
  const LockGuard guard(lock_);
  for (Qp* qp : buckets_) {
    for (; qp != nullptr; qp = qp->next_in_bucket) fail(*qp);
  }
}

void QpDirectory::settle_failed() noexcept {
  if (!lock_.try_lock()) return;
  for (Qp* qp : buckets_) {
    for (; qp != nullptr; qp = qp->next_in_bucket) {
      if (!qp->failed.load(std::memory_order_relaxed)) continue;
      // Its holder may be this very thread, between ibv_wr_start and ibv_wr_complete.
      if (qp->send_lock.try_lock()) {
        settle_sends_locked(*qp);
        qp->send_lock.unlock();
      }
      const LockGuard guard(qp->receive_lock);
      settle_receives_locked(*qp);
    }
  }
  lock_.unlock();
}

void QpDirectory::fail(Qp& qp) noexcept {
  if (!qp.failed.exchange(true, std::memory_order_relaxed))
    context_of(qp.plain.context).queue_pairs.unsettled_.fetch_add(1, std::memory_order_relaxed);
}

void QpDirectory::settled_one(Qp& qp) noexcept {
  if (qp.rings_left.fetch_sub(1, std::memory_order_relaxed) == 1)
    context_of(qp.plain.context).queue_pairs.unsettled_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace verbatim::siw
