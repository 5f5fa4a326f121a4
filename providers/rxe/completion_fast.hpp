// SPDX-License-Identifier: BSD-2-Clause
// A completion as the kernel wrote it, read as the API's. The kernel's numbers come from outside:
// what cannot be becomes a general error, never an index.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "providers/rxe/layout.hpp"

namespace verbatim::rxe {

/// The kernel's own flags. Two of them are the API's with their bits exchanged.
enum KernelWcFlags : std::uint32_t {
  kWcGrh = 1,
  kWcWithImm = 2,
  kWcWithInvalidate = 4,
  kWcChecksumOk = 8,
};
static_assert(int{IBV_WC_GRH} == kWcGrh && int{IBV_WC_WITH_IMM} == kWcWithImm);

/// The driver says of every receive that a routing header came; it lies in the buffer of datagrams
/// only, and those are what has a sender's number.
[[nodiscard]] inline unsigned wc_flags_of(const ib_uverbs_wc& from) noexcept {
  unsigned flags = from.wc_flags & kWcWithImm;
  if ((from.wc_flags & kWcGrh) != 0 && from.src_qp != 0) flags |= IBV_WC_GRH;
  if ((from.wc_flags & kWcWithInvalidate) != 0) flags |= IBV_WC_WITH_INV;
  if ((from.wc_flags & kWcChecksumOk) != 0) flags |= IBV_WC_IP_CSUM_OK;
  return flags;
}

[[nodiscard]] constexpr bool is_known_wc_opcode(std::uint32_t opcode) noexcept {
  constexpr std::uint32_t kFirstReceive = IBV_WC_RECV;
  static_assert(IBV_WC_RECV_RDMA_WITH_IMM == kFirstReceive + 1);
  return opcode <= IBV_WC_ATOMIC_WRITE || opcode - kFirstReceive <= 1;
}

/// Both have the same members at the same places, so that all of them move at once; what of them
/// may not be taken as it is follows.
inline void read_completion(const ib_uverbs_wc& from, ibv_wc& to) noexcept {
  static_assert(sizeof(ib_uverbs_wc) == sizeof(ibv_wc));
  static_assert(offsetof(ib_uverbs_wc, status) == offsetof(ibv_wc, status) &&
                offsetof(ib_uverbs_wc, opcode) == offsetof(ibv_wc, opcode) &&
                offsetof(ib_uverbs_wc, vendor_err) == offsetof(ibv_wc, vendor_err) &&
                offsetof(ib_uverbs_wc, byte_len) == offsetof(ibv_wc, byte_len) &&
                offsetof(ib_uverbs_wc, ex) == offsetof(ibv_wc, imm_data) &&
                offsetof(ib_uverbs_wc, qp_num) == offsetof(ibv_wc, qp_num) &&
                offsetof(ib_uverbs_wc, src_qp) == offsetof(ibv_wc, src_qp) &&
                offsetof(ib_uverbs_wc, wc_flags) == offsetof(ibv_wc, wc_flags) &&
                offsetof(ib_uverbs_wc, pkey_index) == offsetof(ibv_wc, pkey_index) &&
                offsetof(ib_uverbs_wc, slid) == offsetof(ibv_wc, slid) &&
                offsetof(ib_uverbs_wc, sl) == offsetof(ibv_wc, sl) &&
                offsetof(ib_uverbs_wc, dlid_path_bits) == offsetof(ibv_wc, dlid_path_bits));
  // A copy of our own: what is judged does not change any more.
  const ib_uverbs_wc seen = from;
  std::memcpy(&to, &seen, sizeof to);
  if (seen.wc_flags != 0) to.wc_flags = wc_flags_of(seen);
  if (seen.status > IBV_WC_TM_RNDV_INCOMPLETE || !is_known_wc_opcode(seen.opcode)) [[unlikely]] {
    to.status = IBV_WC_GENERAL_ERR;
    to.opcode = IBV_WC_SEND;
  }
}

/// An error that moves its queue pair to ERR. Those that are flushed come of a move that is known,
/// or of such an error before them.
[[nodiscard]] constexpr bool tells_of_trouble(ibv_wc_status status) noexcept {
  return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

}  // namespace verbatim::rxe
