// SPDX-License-Identifier: BSD-2-Clause
// A completion as the kernel wrote it, read as the API's. The kernel's numbers come from outside:
// what cannot be becomes a general error, never an index.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

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
  return opcode <= IBV_WC_ATOMIC_WRITE || opcode == IBV_WC_RECV ||
         opcode == IBV_WC_RECV_RDMA_WITH_IMM;
}

inline void read_completion(const ib_uverbs_wc& from, ibv_wc& to) noexcept {
  const bool sound = from.status <= IBV_WC_TM_RNDV_INCOMPLETE && is_known_wc_opcode(from.opcode);
  to.wr_id = from.wr_id;
  to.status = sound ? static_cast<ibv_wc_status>(from.status) : IBV_WC_GENERAL_ERR;
  to.opcode = sound ? static_cast<ibv_wc_opcode>(from.opcode) : IBV_WC_SEND;
  to.vendor_err = from.vendor_err;
  to.byte_len = from.byte_len;
  to.imm_data = from.ex.imm_data;
  to.qp_num = from.qp_num;
  to.src_qp = from.src_qp;
  to.wc_flags = wc_flags_of(from);
  to.pkey_index = from.pkey_index;
  to.slid = from.slid;
  to.sl = from.sl;
  to.dlid_path_bits = from.dlid_path_bits;
}

/// An error that moves its queue pair to ERR. Those that are flushed come of a move that is known,
/// or of such an error before them.
[[nodiscard]] constexpr bool tells_of_trouble(ibv_wc_status status) noexcept {
  return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

}  // namespace verbatim::rxe
