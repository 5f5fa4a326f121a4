// SPDX-License-Identifier: BSD-2-Clause
// What posting in one go and posting call by call share. Under the send lock, but for ring_bell().
#pragma once

#include <infiniband/verbs.h>

#include "providers/rxe/objects.hpp"
#include "providers/rxe/request_fast.hpp"

namespace verbatim::rxe {

/// Bit n: the driver sends requests of opcode n from this type of queue pair. Unreliable
/// connections could invalidate and bind by IBTA's table 45; this driver fails them.
[[nodiscard]] constexpr std::uint32_t opcodes_of(ibv_qp_type type) noexcept {
  constexpr std::uint32_t kSends = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM;
  constexpr std::uint32_t kWrites = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM;
  switch (type) {
    case IBV_QPT_RC:
      return kSends | kWrites | 1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP |
             1u << IBV_WR_ATOMIC_FETCH_AND_ADD | 1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_BIND_MW |
             1u << IBV_WR_SEND_WITH_INV;
    case IBV_QPT_UC:
      return kSends | kWrites;
    case IBV_QPT_UD:
      return kSends;
    default:
      return 0;
  }
}

/// What needs a number of outstanding requests to be agreed on, by max_rd_atomic.
inline constexpr std::uint32_t kReadsAndAtomics =
    1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD;
/// REQUIRES: opcode < 32.
[[nodiscard]] inline bool is_barred(const Qp& qp, unsigned opcode) noexcept {
  return (qp.barred.load(std::memory_order_relaxed) >> opcode & 1) != 0;
}

[[nodiscard]] inline SendLimits limits_of(const Qp& qp) noexcept {
  return {qp.max_send_sge, qp.max_inline};
}

/// IBTA 10.8.2: a send queue takes requests from RTS on.
[[nodiscard]] inline bool takes_sends(const Qp& qp) noexcept {
  return qp.plain.state >= IBV_QPS_RTS && qp.plain.state <= IBV_QPS_ERR;
}

/// Where to a datagram goes. A key with its highest bit set stands for the sender's own (IBTA
/// 10.2.5), which the driver does not know of.
inline void set_destination(const Qp& qp, SendElement& element, ibv_ah* ah, std::uint32_t qpn,
                            std::uint32_t qkey) noexcept {
  constexpr std::uint32_t kOfSender = 0x80000000;
  set_datagram(element, static_cast<Ah&>(verbatim::Ah::from(ah)).number, qpn,
               (qkey & kOfSender) != 0 ? qp.qkey.load(std::memory_order_relaxed) : qkey);
}

/// A datagram is one packet; of a longer one the driver says that it was sent.
[[nodiscard]] inline bool is_too_long(const Qp& qp, const SendElement& element) noexcept {
  return qp.plain.qp_type == IBV_QPT_UD &&
         element.dma.length > qp.max_datagram.load(std::memory_order_relaxed);
}

/// A window request that can be one: 0 or EINVAL.
[[nodiscard]] inline int check_window(const ibv_mw* mw, const ibv_mw_bind_info& info) noexcept {
  return mw == nullptr || (info.mr == nullptr && info.length != 0) ? EINVAL : 0;
}

/// Tells the kernel that the ring moved; it works on it before the call returns. Without the lock:
/// others may post meanwhile. 0, or the errno of a device that is gone.
[[nodiscard]] inline int ring_bell(Qp& qp) noexcept {
  return uverbs::context_of(qp).channel.ring(qp.doorbell);
}

}  // namespace verbatim::rxe
