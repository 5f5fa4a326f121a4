// SPDX-License-Identifier: BSD-2-Clause
// A send request, written where the kernel will read it: by ibv_post_send in one go, by ibv_wr_*
// call by call. The kernel sees none of the request before the ring's index moves. One thread,
// under the send lock. What a slot held before is overwritten in every field that the kernel reads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>

#include "providers/rxe/layout.hpp"
#include "runtime/verbs/rights.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/software/request_checks.hpp"
#include "runtime/verbs/software/scatter_gather.hpp"

namespace verbatim::rxe {

/// What a send queue takes, and whom it may serve: known at create.
struct SendLimits {
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
};

// The kernel's numbers are the API's.
static_assert(IBV_WR_RDMA_WRITE == int{IB_UVERBS_WR_RDMA_WRITE});
static_assert(IBV_WR_RDMA_WRITE_WITH_IMM == int{IB_UVERBS_WR_RDMA_WRITE_WITH_IMM});
static_assert(IBV_WR_SEND == int{IB_UVERBS_WR_SEND});
static_assert(IBV_WR_SEND_WITH_IMM == int{IB_UVERBS_WR_SEND_WITH_IMM});
static_assert(IBV_WR_RDMA_READ == int{IB_UVERBS_WR_RDMA_READ});
static_assert(IBV_WR_ATOMIC_CMP_AND_SWP == int{IB_UVERBS_WR_ATOMIC_CMP_AND_SWP});
static_assert(IBV_WR_ATOMIC_FETCH_AND_ADD == int{IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD});
static_assert(IBV_WR_LOCAL_INV == int{IB_UVERBS_WR_LOCAL_INV});
static_assert(IBV_WR_BIND_MW == int{IB_UVERBS_WR_BIND_MW});
static_assert(IBV_WR_SEND_WITH_INV == int{IB_UVERBS_WR_SEND_WITH_INV});
// IB_UVERBS_WR_FLUSH and IB_UVERBS_WR_ATOMIC_WRITE of Linux 6.2.
static_assert(IBV_WR_FLUSH == 14 && IBV_WR_ATOMIC_WRITE == 15);

/// No message is longer; keeps sums in their 32 bits.
inline constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 31;

/// The head of a request without data.
inline void begin_request(SendElement& element, std::uint64_t wr_id, unsigned opcode,
                          unsigned flags) noexcept {
  element.wr.wr_id = wr_id;
  element.wr.reserved = 0;
  element.wr.opcode = opcode;
  element.wr.send_flags = flags;
  element.wr.ex.imm_data = 0;
  element.status = 0;
  element.state = 0;
  element.iova = 0;
  element.mask = 0;
  element.first_psn = 0;
  element.last_psn = 0;
  element.ack_length = 0;
  element.ssn = 0;
  element.has_rd_atomic = 0;
  element.dma = {};
}

inline void set_remote(SendElement& element, std::uint64_t address, std::uint32_t rkey) noexcept {
  element.iova = address;
  element.wr.wr.rdma.remote_addr = address;
  element.wr.wr.rdma.rkey = rkey;
  element.wr.wr.rdma.reserved = 0;
}

inline void set_atomic(SendElement& element, std::uint64_t address, std::uint64_t compare_add,
                       std::uint64_t swap, std::uint32_t rkey) noexcept {
  element.iova = address;
  element.wr.wr.atomic.remote_addr = address;
  element.wr.wr.atomic.compare_add = compare_add;
  element.wr.wr.atomic.swap = swap;
  element.wr.wr.atomic.rkey = rkey;
  element.wr.wr.atomic.reserved = 0;
}

/// `value`: 8 bytes. The driver takes them from where they lie, without a flag that says so.
inline void set_atomic_write(SendElement& element, std::uint64_t address, std::uint32_t rkey,
                             const void* value) noexcept {
  set_remote(element, address, rkey);
  std::memcpy(element.tail(), value, 8);
  element.dma.length = element.dma.resid = 8;
}

/// The driver sends as the range what the request has of data.
inline void set_flush(SendElement& element, const FlushWords& words) noexcept {
  element.iova = words.remote_addr;
  std::memcpy(&element.wr.wr, &words, sizeof words);
  element.dma.length = element.dma.resid = words.length;
}

[[nodiscard]] inline FlushWords flush_of(const SendElement& element) noexcept {
  FlushWords words;
  std::memcpy(&words, &element.wr.wr, sizeof words);
  return words;
}

/// `ah_number`: the kernel finds the path by it.
inline void set_datagram(SendElement& element, std::uint32_t ah_number, std::uint32_t qpn,
                         std::uint32_t qkey) noexcept {
  element.wr.wr.ud.remote_qpn = qpn & 0xffffff;
  element.wr.wr.ud.remote_qkey = qkey;
  element.wr.wr.ud.pkey_index = 0;
  element.wr.wr.ud.reserved = 0;
  element.wr.wr.ud.ah_num = ah_number;
}

/// The driver wants the key that the window has when it comes to the request: from here on it is
/// the one that this request gives it.
inline void set_window(SendElement& element, ibv_mw& mw, std::uint32_t rkey,
                       const ibv_mw_bind_info& info) noexcept {
  element.wr.wr.mw.addr = info.addr;
  element.wr.wr.mw.length = info.length;
  element.wr.wr.mw.mr_lkey = info.mr != nullptr ? info.mr->lkey : 0;
  element.wr.wr.mw.mw_rkey = mw.rkey;
  element.wr.wr.mw.rkey = rkey;
  element.wr.wr.mw.access = info.mw_access_flags & ~kRightsOfRegions;
  mw.rkey = rkey;
}

/// A list behind a head. REQUIRES: `count` of them fit behind `element`.
template <class Element>
inline void write_list(Element& element, const ibv_sge* list, std::size_t count) noexcept {
  static_assert(sizeof(ibv_sge) == sizeof(rxe_sge));
  static_assert(offsetof(ibv_sge, lkey) == offsetof(rxe_sge, lkey));
  if (count != 0) std::memcpy(element.tail(), list, count * sizeof(ibv_sge));
  element.dma.num_sge = static_cast<std::uint32_t>(count);
}

/// The request's buffers: 0, or EINVAL.
[[nodiscard]] inline int set_list(SendElement& element, const SendLimits& limits,
                                  const ibv_sge* list, std::size_t count) noexcept {
  std::uint64_t bytes = 0;
  if (count > limits.max_sge || (bytes = bytes_of(list, count)) > kMostMessageBytes) return EINVAL;
  if (is_atomic(element.wr.opcode)) {
    // What comes back has a size of its own, however long the buffer is.
    if (bytes < 8) return EINVAL;
    bytes = 8;
  }
  write_list(element, list, count);
  element.dma.length = element.dma.resid = static_cast<std::uint32_t>(bytes);
  return 0;
}

/// One more piece of the request's own bytes: 0, or EINVAL.
[[nodiscard]] inline int append_inline(SendElement& element, const SendLimits& limits,
                                       const void* bytes, std::size_t length) noexcept {
  if (length > limits.max_inline - element.dma.length) return EINVAL;
  if (length != 0) std::memcpy(element.tail() + element.dma.length, bytes, length);
  element.dma.length += static_cast<std::uint32_t>(length);
  element.dma.resid = element.dma.length;
  return 0;
}

}  // namespace verbatim::rxe
