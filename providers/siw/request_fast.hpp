// SPDX-License-Identifier: BSD-2-Clause
// A send request, written where the kernel will read it: by ibv_post_send in one go, by ibv_wr_*
// call by call. The kernel sees none of the request before its flags are published. One thread,
// under the send lock. The driver stops at an element that it finds wrong and never passes it, so
// everything that it would refuse is refused here.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "providers/siw/layout.hpp"
#include "runtime/verbs/software/request_checks.hpp"
#include "runtime/verbs/software/scatter_gather.hpp"

namespace verbatim::siw {

/// No message is longer; keeps sums in their 32 bits.
inline constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 31;

/// Bit n: the driver sends requests of the API's opcode n. iWARP has no immediate data, and this
/// driver no atomics; it invalidates and binds for the kernel alone.
inline constexpr std::uint32_t kOpcodes = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_SEND |
                                          1u << IBV_WR_RDMA_READ | 1u << IBV_WR_SEND_WITH_INV;

/// REQUIRES: one of kOpcodes.
[[nodiscard]] constexpr std::uint8_t siw_opcode_of(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return SIW_OP_WRITE;
    case IBV_WR_RDMA_READ:
      return SIW_OP_READ;
    case IBV_WR_SEND_WITH_INV:
      return SIW_OP_SEND_REMOTE_INV;
    default:
      return SIW_OP_SEND;
  }
}

/// The driver's flags for the API's, without INLINE. A READ is fenced as it is: a connection
/// answers READs in order, and the driver refuses to do more.
[[nodiscard]] constexpr std::uint16_t siw_flags_of(unsigned opcode, unsigned flags,
                                                   bool signal_all) noexcept {
  unsigned to = SIW_WQE_VALID;
  if (signal_all || (flags & IBV_SEND_SIGNALED) != 0) to |= SIW_WQE_SIGNALLED;
  if ((flags & IBV_SEND_SOLICITED) != 0) to |= SIW_WQE_SOLICITED;
  if ((flags & IBV_SEND_FENCE) != 0 && opcode != IBV_WR_RDMA_READ) to |= SIW_WQE_READ_FENCE;
  return static_cast<std::uint16_t>(to);
}

/// The head of a request without data. Its flags are not touched.
inline void begin_request(siw_sqe& element, std::uint64_t wr_id, unsigned opcode) noexcept {
  element.id = wr_id;
  element.num_sge = 0;
  element.opcode = siw_opcode_of(opcode);
  element.rkey = 0;
  element.raddr = 0;
  element.sge[0] = {};
}

inline void set_remote(siw_sqe& element, std::uint64_t address, std::uint32_t rkey) noexcept {
  element.raddr = address;
  element.rkey = rkey;
}

/// REQUIRES: `count` of them fit. Empty pieces are left out: the driver looks up no memory for
/// them, and then goes there.
template <class Element>
inline void write_list(Element& element, const ibv_sge* list, std::size_t count) noexcept {
  std::uint8_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].length == 0) continue;
    element.sge[used++] = {list[i].addr, list[i].length, list[i].lkey};
  }
  element.num_sge = used;
}

/// The request's buffers: 0, or EINVAL. What a READ brings goes to one place (RFC 5040, 5.2).
[[nodiscard]] inline int set_list(siw_sqe& element, std::uint32_t max_sge, const ibv_sge* list,
                                  std::size_t count) noexcept {
  const bool reads = element.opcode == SIW_OP_READ;
  if (count > (reads && max_sge > 1 ? 1 : max_sge)) return EINVAL;
  if (bytes_of(list, count) > kMostMessageBytes) return EINVAL;
  write_list(element, list, count);
  // The driver takes one of a READ, whatever stands here.
  if (reads) element.num_sge = 1;
  return 0;
}

/// One more piece of the request's own bytes: 0, or EINVAL.
[[nodiscard]] inline int append_inline(siw_sqe& element, const void* bytes,
                                       std::size_t length) noexcept {
  if (length > kMostInline - element.sge[0].length) return EINVAL;
  auto* const tail = reinterpret_cast<unsigned char*>(&element.sge[1]);
  if (length != 0) std::memcpy(tail + element.sge[0].length, bytes, length);
  element.sge[0].length += static_cast<std::uint32_t>(length);
  return 0;
}

/// The driver's inline messages have an operation of two, and at least a byte.
[[nodiscard]] constexpr bool may_be_inline(std::uint8_t opcode) noexcept {
  return opcode == SIW_OP_SEND || opcode == SIW_OP_WRITE;
}
/// Ends the inline data after the last piece. The flag, if there is any data.
[[nodiscard]] inline std::uint16_t end_inline(siw_sqe& element) noexcept {
  element.num_sge = element.sge[0].length != 0 ? 1 : 0;
  return element.num_sge != 0 ? std::uint16_t{SIW_WQE_INLINE} : std::uint16_t{0};
}

}  // namespace verbatim::siw
