// SPDX-License-Identifier: BSD-2-Clause
// What posting a send request refuses at once: everything that an adapter's driver would refuse
// before the hardware sees it, but for flags (kSendFlags), in the order in which the first of
// several reasons counts. Under the send queue's lock. Spec: man ibv_post_send; IBTA 10.8.2,
// 11.4.1.1.
//
// Of the queue, which knows its limits and says what there is to tell of a refusal:
//
//   state()                   ibv_qp_state of its queue pair
//   has_operation(opcode)     of its type, at this device
//   max_sge(), max_inline()   of a request
//   max_rd_atomic()           READs and atomics that its peers have agreed on
//   check_form(wr)            0 or an errno: what only some operations or transports demand
//   is_full()
//   tell_early(), tell_long_inline(bytes), tell_full()
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/software/request_list.hpp"
#include "runtime/verbs/software/scatter_gather.hpp"

namespace verbatim {

/// All ibv_send_flags but IP_CSUM, for which there must be hardware. Providers of kernel devices
/// hold requests to it, since their drivers would see any other flag; check_send_request() does not
/// look at flags: what has no meaning in software is passed over.
inline constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

/// 0; EINVAL, or what check_form() says; or ENOMEM of a full queue.
template <class Queue>
[[nodiscard, gnu::always_inline]] inline int check_send_request(const Queue& queue,
                                                                const ibv_send_wr& wr) noexcept {
  const auto state = queue.state();
  if (state < IBV_QPS_RTS) {
    queue.tell_early();
    return EINVAL;
  }
  if (!queue.has_operation(wr.opcode)) return EINVAL;
  if (!has_sound_list(wr, queue.max_sge())) return EINVAL;
  const bool reads = returns_bytes(wr.opcode);
  // Where everything is flushed, a READ is as good as any request.
  if (reads && queue.max_rd_atomic() == 0 && state != IBV_QPS_ERR) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (reads) return EINVAL;
    const std::uint64_t bytes = bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
    if (bytes > queue.max_inline()) {
      queue.tell_long_inline(bytes);
      return EINVAL;
    }
  }
  if (const int error = queue.check_form(wr); error != 0) return error;
  if (queue.is_full()) {
    queue.tell_full();
    return ENOMEM;
  }
  return 0;
}

/// Is a datagram to go to somebody, by an address handle of `context`?
[[nodiscard]] inline bool is_addressed(const ibv_send_wr& wr, const ibv_context* context) noexcept {
  return wr.wr.ud.ah != nullptr && wr.wr.ud.ah->context == context;
}

/// Can a FLUSH be of this type (IBV_FLUSH_GLOBAL and others) and level?
[[nodiscard]] constexpr bool is_flush(std::uint64_t type, std::uint64_t level) noexcept {
  constexpr std::uint64_t kTypes = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;
  return type != 0 && (type & ~kTypes) == 0 && level <= IBV_FLUSH_MR;
}

/// What LOCAL_INV, ATOMIC_WRITE and FLUSH demand, in the words of built_requests.hpp.
[[nodiscard]] inline bool has_form_of_operation(const ibv_send_wr& wr) noexcept {
  switch (wr.opcode) {
    case IBV_WR_LOCAL_INV:
      return wr.num_sge == 0;
    case IBV_WR_ATOMIC_WRITE:
      return bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge)) == 8;
    case IBV_WR_FLUSH:
      return wr.num_sge == 0 && is_flush(wr.wr.atomic.swap & 0xff, wr.wr.atomic.swap >> 8);
    default:
      return true;
  }
}

}  // namespace verbatim
