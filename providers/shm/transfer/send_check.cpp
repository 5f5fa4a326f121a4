// SPDX-License-Identifier: BSD-2-Clause
//
// What a post refuses: everything that an adapter's driver would refuse before the hardware sees
// it.
#include <cerrno>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {
namespace {

/// What only some operations demand of a request. FLUSH stands in wr.atomic: compare_add is the
/// length, swap is type | level << 8; ibv_wr_flush puts it there.
int check_form(const ibv_send_wr& wr) noexcept {
  switch (wr.opcode) {
    case IBV_WR_BIND_MW:
      return check_bind(wr);
    case IBV_WR_LOCAL_INV:
      return wr.num_sge != 0 ? EINVAL : 0;
    case IBV_WR_ATOMIC_WRITE:
      return bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge)) != 8 ? EINVAL : 0;
    case IBV_WR_FLUSH: {
      constexpr std::uint64_t kTypes = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;
      const std::uint64_t type = wr.wr.atomic.swap & 0xff;
      const std::uint64_t level = wr.wr.atomic.swap >> 8;
      return wr.num_sge != 0 || type == 0 || (type & ~kTypes) != 0 || level > IBV_FLUSH_MR ? EINVAL
                                                                                           : 0;
    }
    default:
      return 0;
  }
}

}  // namespace

int check_request(const Qp& qp, const ibv_send_wr& wr) noexcept {
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  if (mode < IBV_QPS_RTS) {
    tell_if_inherited(Context::of(qp.plain.context), "wr_complete");
    return EINVAL;
  }
  if (!is_of_reliable(wr.opcode)) return EINVAL;
  if (qp.xrc > XrcRole::kInitiator) return EINVAL;  // they send nothing
  if (qp.plain.qp_type == IBV_QPT_UC && !has_opcode(opcodes_of(IBV_QPT_UC), wr.opcode))
    return EINVAL;
  if (static_cast<unsigned>(wr.num_sge) > qp.max_send_sge) return EINVAL;  // below 0, too
  if (wr.num_sge != 0 && wr.sg_list == nullptr) return EINVAL;
  const bool reads = returns_bytes(wr.opcode);
  if (reads && qp.attributes.max_rd_atomic == 0 && mode != IBV_QPS_ERR) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (reads) return EINVAL;
    const std::uint64_t bytes = bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
    if (bytes > qp.max_inline) {
      tell_long_inline(const_cast<Qp&>(qp), bytes, qp.max_inline);
      return EINVAL;
    }
  }
  if (const int error = check_form(wr); error != 0) return error;
  if (qp.in_send_queue() >= qp.sq_entries) {
    tell_full_queue(const_cast<Qp&>(qp), qp.sq_entries);
    return ENOMEM;
  }
  return 0;
}

}  // namespace verbatim::shm
