// SPDX-License-Identifier: BSD-2-Clause
// What posting in one go and posting call by call share. Under the send lock, but for ring_bell().
#pragma once

#include <infiniband/verbs.h>

#include "abi/kernel/placement.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/request_fast.hpp"
#include "runtime/verbs/software/operations.hpp"

namespace verbatim::rxe {

/// The ibv_wr_* calls that one device has and another has not: ibv_send_wr has no words for them.
inline constexpr std::uint64_t kPlacementCalls = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;

/// IBV_QP_EX_WITH_*: what the driver sends from this type of queue pair, however it is asked.
/// Unreliable connections could invalidate and bind by IBTA's table 45; this driver fails them.
[[nodiscard]] constexpr std::uint64_t requests_of(ibv_qp_type type) noexcept {
  constexpr std::uint64_t kOfKeys =
      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UD:
      return operations_of(type) & ~kPlacementCalls;
    case IBV_QPT_UC:
      return operations_of(type) & ~kOfKeys;
    default:
      return 0;
  }
}

/// IBV_QP_EX_WITH_*: what a queue pair of this type may be asked for, on a device with these
/// device_cap_flags_ex.
[[nodiscard]] constexpr std::uint64_t calls_of(ibv_qp_type type, std::uint64_t device) noexcept {
  std::uint64_t calls = requests_of(type);
  if (type != IBV_QPT_RC) return calls;
  if ((device & (kernel::kDeviceFlushGlobal | kernel::kDeviceFlushPersistent)) != 0)
    calls |= IBV_QP_EX_WITH_FLUSH;
  if ((device & kernel::kDeviceAtomicWrite) != 0) calls |= IBV_QP_EX_WITH_ATOMIC_WRITE;
  return calls;
}

/// What needs a number of outstanding requests to be agreed on, by max_rd_atomic. Of FLUSH this
/// driver does not count them, but a responder that agreed on none has no place to remember one.
inline constexpr std::uint32_t kReadsAndAtomics =
    1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD |
    1u << IBV_WR_FLUSH | 1u << IBV_WR_ATOMIC_WRITE;
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

/// A window request that can be one, of a window, a region and a queue pair of one domain (IBTA
/// 10.6.7): 0 or EINVAL. The driver asks whose the region is of no window, and whose the queue pair
/// is not of those of type 1.
[[nodiscard]] inline int check_window(const Qp& qp, const ibv_mw* mw,
                                      const ibv_mw_bind_info& info) noexcept {
  if (mw == nullptr || mw->pd != qp.plain.pd) return EINVAL;
  if (info.mr == nullptr) return info.length != 0 ? EINVAL : 0;
  return info.mr->pd != mw->pd ? EINVAL : 0;
}

/// A FLUSH that can be one: 0 or EINVAL. REQUIRES of a whole region (IBV_FLUSH_MR): no length.
[[nodiscard]] inline int check_flush(std::size_t length, std::uint8_t type,
                                     std::uint8_t level) noexcept {
  return is_flush(type, level) && length <= kMostMessageBytes ? 0 : EINVAL;
}

/// Tells the kernel that the ring moved; it works on it before the call returns. Under no lock of
/// the queue pair: others may post meanwhile. What lies in the ring cannot be taken back, since the
/// driver may be reading it: where nobody hears it is flushed, by the kernel in ERR, by us where
/// the device is gone (left_behind.hpp), and the answer is 0. An errno of a queue pair that
/// somebody moves to where it does not send, and where not even ERR can be ordered.
[[gnu::cold, gnu::noinline, nodiscard]] int bell_unheard(Qp& qp, int error) noexcept;
[[nodiscard]] inline int ring_bell(Qp& qp) noexcept {
  const int error = uverbs::context_of(qp).command_channel.ring(qp.doorbell);
  return error == 0 ? 0 : bell_unheard(qp, error);
}

}  // namespace verbatim::rxe
