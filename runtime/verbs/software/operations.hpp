// SPDX-License-Identifier: BSD-2-Clause
// The operations as data: which of them each type of queue pair has (IBTA table 45), and which right
// each of them needs at the other side (IBTA 10.6.7.2; FLUSH and ATOMIC WRITE: annexes A19, A20).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

constexpr bool is_atomic(unsigned opcode) noexcept {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
/// Whether an opcode is a SEND of any kind, whatever it takes with it.
constexpr bool is_any_send(unsigned opcode) noexcept {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}
/// Its answer is written to the memory of who asks.
constexpr bool returns_bytes(unsigned opcode) noexcept {
  return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

/// IBV_QP_EX_WITH_*: what a queue pair of this type can be asked for.
constexpr std::uint64_t operations_of(ibv_qp_type type) noexcept {
  constexpr std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t kConnected =
      kSends | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
      return kConnected | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_FLUSH |
             IBV_QP_EX_WITH_ATOMIC_WRITE;
    case IBV_QPT_UC:
      return kConnected;
    case IBV_QPT_UD:
      return kSends;
    default:
      return 0;
  }
}

/// The bit of an operation in it; 0 of an opcode that is none.
constexpr std::uint64_t operation_bit(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_FLUSH:
      return IBV_QP_EX_WITH_FLUSH;
    case IBV_WR_ATOMIC_WRITE:
      return IBV_QP_EX_WITH_ATOMIC_WRITE;
    default:
      // The bits of the others are those of the opcodes.
      return opcode <= IBV_WR_TSO ? std::uint64_t{1} << opcode : 0;
  }
}
static_assert(operation_bit(IBV_WR_RDMA_WRITE) == IBV_QP_EX_WITH_RDMA_WRITE);
static_assert(operation_bit(IBV_WR_SEND) == IBV_QP_EX_WITH_SEND);
static_assert(operation_bit(IBV_WR_RDMA_READ) == IBV_QP_EX_WITH_RDMA_READ);
static_assert(operation_bit(IBV_WR_ATOMIC_FETCH_AND_ADD) == IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
static_assert(operation_bit(IBV_WR_BIND_MW) == IBV_QP_EX_WITH_BIND_MW);
static_assert(operation_bit(IBV_WR_SEND_WITH_INV) == IBV_QP_EX_WITH_SEND_WITH_INV);
static_assert(operation_bit(IBV_WR_TSO) == IBV_QP_EX_WITH_TSO);

/// Bit n: a queue pair of this type has the operation of opcode n.
consteval std::uint32_t opcodes_of(ibv_qp_type type) noexcept {
  std::uint32_t opcodes = 0;
  for (unsigned opcode = 0; opcode < 32; ++opcode)
    if ((operations_of(type) & operation_bit(opcode)) != 0) opcodes |= 1u << opcode;
  return opcodes;
}

constexpr bool has_opcode(std::uint32_t opcodes, unsigned opcode) noexcept {
  return opcode < 32 && (opcodes >> opcode & 1) != 0;
}

/// has_opcode() of RC, in the fewest instructions: every post asks.
constexpr bool is_of_reliable(unsigned opcode) noexcept {
  return opcode <= IBV_WR_SEND_WITH_INV || opcode == IBV_WR_FLUSH || opcode == IBV_WR_ATOMIC_WRITE;
}
static_assert([] {
  for (unsigned opcode = 0; opcode < 64; ++opcode)
    if (is_of_reliable(opcode) != has_opcode(opcodes_of(IBV_QPT_RC), opcode)) return false;
  return true;
}());

/// IBV_ACCESS_*: what it needs of the memory at the other side; 0: it names none. `flush_type`:
/// IBV_FLUSH_*, of FLUSH.
constexpr std::uint32_t remote_access_for(unsigned opcode, std::uint64_t flush_type) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
      return IBV_ACCESS_REMOTE_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_ACCESS_REMOTE_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case IBV_WR_FLUSH:
      return ((flush_type & IBV_FLUSH_GLOBAL) != 0 ? unsigned{IBV_ACCESS_FLUSH_GLOBAL} : 0u) |
             ((flush_type & IBV_FLUSH_PERSISTENT) != 0 ? unsigned{IBV_ACCESS_FLUSH_PERSISTENT}
                                                       : 0u);
    default:
      return 0;
  }
}

}  // namespace verbatim
