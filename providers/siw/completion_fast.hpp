// SPDX-License-Identifier: BSD-2-Clause
// A completion as the kernel wrote it, read as the API's. The kernel's numbers come from outside:
// what cannot be becomes a general error, never an index.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "providers/siw/layout.hpp"

namespace verbatim::siw {

/// siw_wc_status to ibv_wc_status.
inline constexpr ibv_wc_status kStatus[SIW_NUM_WC_STATUS] = {
    IBV_WC_SUCCESS,         IBV_WC_LOC_LEN_ERR,  IBV_WC_LOC_PROT_ERR,   IBV_WC_LOC_QP_OP_ERR,
    IBV_WC_WR_FLUSH_ERR,    IBV_WC_BAD_RESP_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR, IBV_WC_GENERAL_ERR};
static_assert(SIW_WC_WR_FLUSH_ERR == 4 && SIW_WC_REM_INV_REQ_ERR == 8 && SIW_WC_GENERAL_ERR == 9);

[[nodiscard]] constexpr bool is_known_opcode(unsigned opcode) noexcept {
  return opcode <= SIW_OP_SEND_REMOTE_INV || opcode == SIW_OP_RECEIVE;
}

/// REQUIRES: is_known_opcode(opcode).
[[nodiscard]] constexpr ibv_wc_opcode wc_opcode_of(unsigned opcode) noexcept {
  switch (opcode) {
    case SIW_OP_WRITE:
      return IBV_WC_RDMA_WRITE;
    case SIW_OP_READ:
    case SIW_OP_READ_LOCAL_INV:
      return IBV_WC_RDMA_READ;
    case SIW_OP_RECEIVE:
      return IBV_WC_RECV;
    default:
      return IBV_WC_SEND;
  }
}

inline void read_completion(const siw_cqe& from, ibv_wc& to) noexcept {
  constexpr std::uint64_t kLargestQpn = 0xffffff;
  const bool sound =
      from.status < SIW_NUM_WC_STATUS && is_known_opcode(from.opcode) && from.qp_id <= kLargestQpn;
  to.wr_id = from.id;
  to.status = sound ? kStatus[from.status] : IBV_WC_GENERAL_ERR;
  to.opcode = sound ? wc_opcode_of(from.opcode) : IBV_WC_SEND;
  to.vendor_err = sound ? from.status : 0;
  to.byte_len = from.bytes;
  to.qp_num = static_cast<std::uint32_t>(from.qp_id & kLargestQpn);
  to.src_qp = 0;
  const bool invalidated = (from.flags & SIW_WQE_REM_INVAL) != 0;
  to.wc_flags = invalidated ? unsigned{IBV_WC_WITH_INV} : 0u;
  to.invalidated_rkey = invalidated ? from.inval_stag : 0;
  to.pkey_index = 0;
  to.slid = 0;
  to.sl = 0;
  to.dlid_path_bits = 0;
}

}  // namespace verbatim::siw
