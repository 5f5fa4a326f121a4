// SPDX-License-Identifier: BSD-2-Clause
//
// What a UD queue pair does with a request, and its receiver with what came. Under the send lock,
// or the receive CQ's.
#pragma once

#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/transfer/send_queue.hpp"

namespace verbatim::shm {

struct Ah : verbatim::Ah {
  bool is_plain = false;   ///< it leads to this host on the usual path, without a routing header
  std::uint64_t path = 0;  ///< what the receivers of its datagrams are shown of it

  static Ah& from(ibv_ah* ah) noexcept { return *reinterpret_cast<Ah*>(ah); }
};

// The plug's slot.
int create_ah(verbatim::Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept;

/// Refuses what is no datagram: 0 or EINVAL.
int check_datagram(const Qp& qp, const ibv_send_wr& wr) noexcept;
/// A small one to somebody who has been reached before: sent, or lost, and complete. False: it must
/// be queued.
bool send_datagram_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr) noexcept;

/// How requests are sent, and what comes is taken.
extern const QpKind kDatagramKind;

inline const Context& context_of(const Qp& qp) noexcept { return Context::of(qp.plain.context); }

}  // namespace verbatim::shm
