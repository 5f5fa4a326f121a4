// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/counted_requests.hpp"

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {
namespace {

std::uint32_t op_of(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return IBV_QP_ATTACH_COMP_CNTR_OP_SEND;
    case IBV_WR_RDMA_READ:
      return IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE;
    default:
      return 0;
  }
}

}  // namespace

void count_request(const Qp& qp, unsigned opcode, std::uint64_t bytes, bool succeeded) noexcept {
  const std::uint32_t op = op_of(opcode);
  for (const CountedQp* at = qp.sq.counted; at != nullptr; at = at->next_of_qp) {
    if ((at->ops & op) == 0) continue;
    CompCntr& counter = *at->counter;
    if (!succeeded)
      counter.errors.fetch_add(1, std::memory_order_release);
    else
      counter.successes.fetch_add(counter.of_bytes ? bytes : 1, std::memory_order_release);
  }
}

}  // namespace verbatim::shm
