// SPDX-License-Identifier: BSD-2-Clause
// What posting in one go and posting call by call share: where a queue pair stands, the doorbell,
// and what is done with requests on one that has failed. `_locked`: under the send lock.
//
// The kernel makes and ends connections, and tells a queue pair's state to nobody. The doorbell
// does: ENOTCONN until there is a connection. So a queue pair that we think is not connected is
// asked by ringing without a request; later the state is known, and posting asks nobody.
#pragma once

#include <infiniband/verbs.h>

#include "providers/siw/objects.hpp"

namespace verbatim::siw {

enum class Stand : std::uint8_t { kSends, kRefuses, kFlushes };

[[gnu::cold, gnu::noinline, nodiscard]] Stand look_where_it_stands_locked(Qp& qp) noexcept;

[[nodiscard]] inline Stand stand_of_locked(Qp& qp) noexcept {
  if (state_of(qp) == IBV_QPS_RTS && !qp.failed.load(std::memory_order_relaxed)) [[likely]]
    return Stand::kSends;
  return look_where_it_stands_locked(qp);
}

/// Asks by the doorbell: 0, ENOTCONN, or the errno of a device that is gone.
[[gnu::cold, nodiscard]] int ask_by_bell(Qp& qp) noexcept;

/// Whether the connection lets us READ at all: a READ that it does not would stop the queue.
[[gnu::cold, gnu::noinline, nodiscard]] bool ask_for_reads_locked(Qp& qp) noexcept;
[[nodiscard]] inline bool may_read_locked(Qp& qp) noexcept {
  return qp.reads == Reads::kAllowed || ask_for_reads_locked(qp);
}

/// Completes a request that the kernel will not see. 0, or ENOMEM.
[[gnu::cold, nodiscard]] int flush(ibv_cq* cq, const Qp& qp, std::uint64_t wr_id,
                                   ibv_wc_opcode opcode) noexcept;
/// Settles a queue pair that has failed: leads the kernel's half to ERR, where it works on nothing
/// any more, and completes what the kernel has not taken from the ring. Each is called once; the
/// second under the receive lock.
[[gnu::cold, gnu::noinline]] void settle_sends_locked(Qp& qp) noexcept;
[[gnu::cold, gnu::noinline]] void settle_receives_locked(Qp& qp) noexcept;

/// Tells the kernel that there are requests; it works on them before the call returns. Without the
/// lock: others may post meanwhile. What nobody hears of is flushed, since it lies in the ring.
[[gnu::cold, gnu::noinline]] void bell_unheard(Qp& qp, int error) noexcept;
inline void ring_bell(Qp& qp) noexcept {
  const int error = uverbs::context_of(qp).command_channel.ring(qp.doorbell);
  if (error != 0) [[unlikely]]
    bell_unheard(qp, error);
}

}  // namespace verbatim::siw
