// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/send.hpp"

#include <cerrno>
#include <cstring>

#include "providers/rxe/hot.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/software/request_list.hpp"

namespace verbatim::rxe {
namespace {

/// What the operation needs beside its buffers: 0 or EINVAL.
int write_operation(const Qp& qp, SendElement& element, const ibv_send_wr& wr) noexcept {
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      element.wr.ex.imm_data = wr.imm_data;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      set_remote(element, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      set_atomic(element, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add, wr.wr.atomic.swap,
                 wr.wr.atomic.rkey);
      return 0;
    case IBV_WR_SEND_WITH_INV:
      element.wr.ex.invalidate_rkey = wr.invalidate_rkey;
      return 0;
    case IBV_WR_LOCAL_INV:
      element.wr.ex.invalidate_rkey = wr.invalidate_rkey;
      return wr.num_sge != 0 ? EINVAL : 0;
    case IBV_WR_BIND_MW:
      if (wr.num_sge != 0 || check_window(qp, wr.bind_mw.mw, wr.bind_mw.bind_info) != 0)
        return EINVAL;
      set_window(element, *wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
      return 0;
    case IBV_WR_SEND_WITH_IMM:
      element.wr.ex.imm_data = wr.imm_data;
      [[fallthrough]];
    default:
      if (qp.plain.qp_type != IBV_QPT_UD) return 0;
      if (wr.wr.ud.ah == nullptr) return EINVAL;
      set_destination(qp, element, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
      return 0;
  }
}

int write_buffers(const Qp& qp, SendElement& element, const ibv_send_wr& wr) noexcept {
  const SendLimits limits = limits_of(qp);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0)
    return set_list(element, limits, wr.sg_list, static_cast<std::size_t>(wr.num_sge));
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    const auto* const bytes = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(sge.addr));
    if (const int error = append_inline(element, limits, bytes, sge.length); error != 0)
      return error;
  }
  return 0;
}

/// Into a slot that nobody sees yet: 0, or why not.
int write_request(const Qp& qp, SendElement& element, const ibv_send_wr& wr) noexcept {
  // Any number may stand there, and one that is no ibv_wr_opcode must not be read as one.
  unsigned opcode;
  std::memcpy(&opcode, &wr.opcode, sizeof opcode);
  if ((requests_of(qp.plain.qp_type) & operation_bit(opcode)) == 0) return EINVAL;
  if ((wr.send_flags & ~kSendFlags) != 0 || is_barred(qp, opcode)) return EINVAL;
  if (!has_sound_list(wr, qp.max_send_sge)) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && returns_bytes(opcode)) return EINVAL;
  begin_request(element, wr.wr_id, opcode, wr.send_flags);
  if (const int error = write_operation(qp, element, wr); error != 0) return error;
  if (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW) return 0;
  if (const int error = write_buffers(qp, element, wr); error != 0) return error;
  return is_too_long(qp, element) ? EINVAL : 0;
}

/// Where it sends, what lies in its ring would be sent when anybody rings again, so it ends in ERR.
/// Elsewhere somebody moves it while we post, and goes on: whether it has been led to ERR.
[[gnu::cold]] bool fail_unheard(Qp& qp) noexcept {
  const LockGuard<SpinLock> guard(qp.receive_lock);
  Failure now;
  uverbs::ask_for_ends(qp, now);
  if (now.own_state >= 0 && now.own_state < IBV_QPS_RTS) return false;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return uverbs::modify_qp(qp, attr, IBV_QP_STATE) == 0;
}

}  // namespace

int bell_unheard(Qp& qp, int error) noexcept {
  if (uverbs::is_of_the_gone(uverbs::context_of(qp), error)) return 0;
  if (!fail_unheard(qp)) return error;
  log_error("QP 0x%06x: the kernel hears of no requests (%s): led to ERR, where they are flushed",
            qp.plain.qp_num, std::strerror(error));
  return 0;
}

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  Qp& qp = static_cast<Qp&>(verbatim::Qp::from(handle));
  ibv_send_wr* const first = wr;
  int error = 0;
  {
    LockGuard<SpinLock> guard(qp.send_lock);
    if (!takes_sends(qp)) {
      *bad = wr;
      return EINVAL;
    }
    Producer ring(qp.send_ring);
    for (; wr != nullptr; wr = wr->next) {
      error = ring.room() == 0 ? ENOMEM : write_request(qp, ring.slot<SendElement>(), *wr);
      if (error != 0) break;
      ring.advance();
    }
    if (wr != first) ring.publish();
  }
  if (error != 0) *bad = wr;
  if (wr == first) return error;
  if (const int deaf = ring_bell(qp); deaf != 0 && error == 0) {
    *bad = first;
    return deaf;
  }
  return error;
}

int bind_mw(verbatim::Qp& handle, Mw& mw, ibv_mw_bind& bind) noexcept {
  ibv_send_wr wr{};
  wr.wr_id = bind.wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind.send_flags & ~unsigned{IBV_SEND_INLINE};
  wr.bind_mw = {&mw.plain, ibv_inc_rkey(mw.plain.rkey), bind.bind_info};
  ibv_send_wr* bad;
  return post_send(&handle.plain, &wr, &bad);
}

}  // namespace verbatim::rxe
