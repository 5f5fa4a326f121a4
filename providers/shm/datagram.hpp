// SPDX-License-Identifier: BSD-2-Clause
//
// What a UD queue pair does with a request, and its receiver with what came. Under the send lock,
// or the receive CQ's.
#pragma once

#include <cstring>

#include "providers/shm/device.hpp"
#include "providers/shm/send_queue.hpp"

namespace verbatim::shm {

/// One packet: UD has no more (IBTA 9.8.4).
inline constexpr std::uint64_t kMaxDatagram = 4096;

struct Ah : verbatim::Ah {
  bool is_plain = false;   ///< it leads to this host on the usual path, without a routing header
  std::uint64_t path = 0;  ///< what the receivers of its datagrams are shown of it

  static Ah& from(ibv_ah* ah) noexcept { return *reinterpret_cast<Ah*>(ah); }
};

// The plug's slots.
int create_ah(verbatim::Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept;
int destroy_ah(verbatim::Ah& ah) noexcept;

/// Refuses what is no datagram: 0 or EINVAL.
int check_datagram(const Qp& qp, const ibv_send_wr& wr) noexcept;
/// A small one to somebody who has been reached before: sent, or lost, and complete. False: it must
/// be queued.
bool send_datagram_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr) noexcept;
/// Keeps whom it is for: the address handle may be gone when its turn comes.
void address_datagram(const Qp& qp, const ibv_send_wr& wr, PendingSend& send) noexcept;
/// What a slot with header::kPath carries beside its message.
inline void say_path(Slot& slot, std::uint64_t path) noexcept {
  std::memcpy(slot.data + Slot::kPathAt, &path, sizeof path);
}
/// One step of what waits at the head of the queue.
Step send_datagram(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept;

inline const Context& context_of(const Qp& qp) noexcept { return Context::of(qp.plain.context); }

/// Says the service level, writes the routing header before a message that was sent with one, in
/// front of the receive's room, and says so. False: there is no memory. The receive CQ's lock is held.
bool show_path(const Qp& lane, const LocalRange* room, std::uint32_t count, const Slot& slot,
               std::uint64_t h, ibv_wc& wc) noexcept;

}  // namespace verbatim::shm
