// SPDX-License-Identifier: BSD-2-Clause
//
// What a UD queue pair does with a request, and its receiver with what came. Under the send lock,
// or the receive CQ's.
#pragma once

#include "providers/shm/device.hpp"
#include "providers/shm/send_queue.hpp"

namespace verbatim::shm {

/// One packet: UD has no more (IBTA 9.8.4).
inline constexpr std::uint64_t kMaxDatagram = 4096;

/// Refuses what is no datagram: 0 or EINVAL.
int check_datagram(const Qp& qp, const ibv_send_wr& wr) noexcept;
/// A small one to somebody who has been reached before: sent, or lost, and complete. False: it must
/// be queued.
bool send_datagram_now(Qp& qp, const ibv_send_wr& wr) noexcept;
/// Keeps whom it is for: the address handle may be gone when its turn comes.
void address_datagram(const Qp& qp, const ibv_send_wr& wr, PendingSend& send) noexcept;
/// One step of what waits at the head of the queue.
Step send_datagram(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept;

inline const Context& context_of(const Qp& qp) noexcept { return Context::of(qp.plain.context); }

/// Makes the completion of a message of `lane` what UD says of it: its sender (IBTA 11.4.1.2). The
/// receive CQ's lock is held.
inline void describe_datagram(const Qp& lane, ibv_wc& wc) noexcept {
  wc.src_qp = peek(lane.rx_remote->speaks_for);
  wc.byte_len += lane.headroom;
  if (!context_of(lane).ethernet) wc.slid = lid_of_device(peek(lane.rx_remote->device));
}
/// And the routing header before a message that was sent with one; before the others' words.
void add_routing_header(const Qp& lane, const LocalRange* room, std::uint32_t count,
                        const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept;

}  // namespace verbatim::shm
