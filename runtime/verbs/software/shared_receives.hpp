// SPDX-License-Identifier: BSD-2-Clause
// The verbs that ask and change a shared receive queue. Control code, any thread. Spec: man
// ibv_modify_srq, ibv_query_srq; IBTA 10.2.9.3, 11.2.3.4.
//
//   Shared     a provider's Srq, with the members
//     lock     that orders posts, and messages that take receives, with these verbs
//     store    its PostedReceives
//     limit    the number of receives of which SRQ_LIMIT_REACHED is owed when fewer are left; 0: none
//   and beside it, found by its namespace:
//     std::uint64_t waiting(const Shared&)       receives that are posted and not taken; the lock is held
//     int resize(Shared&, std::uint32_t max_wr)  0 or errno; takes the lock
//     SoftEvents& events_of(const Shared&)       those of its context
#pragma once

#include <cerrno>

#include "runtime/base/log.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/software/posted_receives.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim {

/// For whoever takes a receive: makes the event that the queue owes, if it does. REQUIRES: its lock.
template <class Shared>
void tell_if_low_locked(Shared& srq) noexcept {
  if (falls_below(srq.limit, waiting(srq))) events_of(srq).raise(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/// The slots.
template <class Shared>
struct SharedReceiveVerbs {
  static int modify_srq(Srq& handle, ibv_srq_attr& attr, int mask) noexcept {
    auto& srq = static_cast<Shared&>(handle);
    const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
    const bool arms = (mask & IBV_SRQ_LIMIT) != 0;
    if (resizes) {
      // Before anything has changed.
      if (arms && attr.srq_limit > attr.max_wr) return refuse_limit(attr.srq_limit, attr.max_wr);
      if (const int error = resize(srq, attr.max_wr); error != 0) return error;
    }
    if (!arms) return 0;
    std::uint32_t max_wr;
    {
      const LockGuard guard(srq.lock);
      // Another thread may have resized it since.
      max_wr = srq.store.max;
      if (attr.srq_limit <= max_wr) {
        srq.limit = attr.srq_limit;
        // Nothing else may come to tell of it: with no receive left no message uses one up.
        tell_if_low_locked(srq);
        return 0;
      }
    }
    return refuse_limit(attr.srq_limit, max_wr);
  }
  static int query_srq(Srq& handle, ibv_srq_attr& attr) noexcept {
    auto& srq = static_cast<Shared&>(handle);
    const LockGuard guard(srq.lock);
    attr = {srq.store.max, srq.store.max_sge, srq.limit};
    return 0;
  }

 private:
  [[gnu::cold]] static int refuse_limit(std::uint32_t limit, std::uint32_t max_wr) noexcept {
    log_refusal("modify_srq: the limit %u is more than the queue can hold, %u", limit, max_wr);
    return EINVAL;
  }
};

}  // namespace verbatim
