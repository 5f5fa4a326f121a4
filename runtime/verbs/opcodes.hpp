// SPDX-License-Identifier: BSD-2-Clause
// How the completion of a request names what was asked for. Spec: man ibv_poll_cq, ibv_post_send.
#pragma once

#include <infiniband/verbs.h>

namespace verbatim {

/// The completion's opcode for an ibv_wr_opcode; also of a request that failed, whose completion
/// need not say it.
[[nodiscard]] inline ibv_wc_opcode completed_as(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_ATOMIC_WRITE:
      return IBV_WC_ATOMIC_WRITE;
    case IBV_WR_FLUSH:
      return IBV_WC_FLUSH;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace verbatim
