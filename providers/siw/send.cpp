// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/send.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "providers/siw/completion_fast.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/request_fast.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/software/request_list.hpp"

namespace verbatim::siw {
namespace {

/// Into an element that nobody sees yet: 0 and the flags to publish, or why not.
int write_request_locked(Qp& qp, siw_sqe& element, const ibv_send_wr& wr,
                         std::uint16_t& flags) noexcept {
  // Any number may stand there, and one that is no ibv_wr_opcode must not be read as one.
  unsigned opcode;
  std::memcpy(&opcode, &wr.opcode, sizeof opcode);
  if (opcode > 31 || (kOpcodes >> opcode & 1) == 0) return EINVAL;
  if ((wr.send_flags & ~kSendFlags) != 0) return EINVAL;
  if (!has_sound_list(wr, qp.max_send_sge)) return EINVAL;
  begin_request(element, wr.wr_id, opcode);
  flags = siw_flags_of(opcode, wr.send_flags, qp.sq_sig_all);
  if (opcode == IBV_WR_RDMA_READ && !may_read_locked(qp)) return EINVAL;
  if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE)
    set_remote(element, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
  if (opcode == IBV_WR_SEND_WITH_INV) element.rkey = wr.invalidate_rkey;
  if ((wr.send_flags & IBV_SEND_INLINE) == 0)
    return set_list(element, qp.max_send_sge, wr.sg_list, static_cast<std::size_t>(wr.num_sge));
  if (!may_be_inline(element.opcode)) return EINVAL;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    const auto* const bytes = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(sge.addr));
    if (const int error = append_inline(element, bytes, sge.length)) return error;
  }
  flags = static_cast<std::uint16_t>(flags | end_inline(element));
  return 0;
}

/// A list on a queue pair that has failed: checked as ever, then completed. Returns as post_send.
[[gnu::cold]] int flush_list_locked(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  return post_in_order(wr, bad, [&](const ibv_send_wr& next) noexcept {
    siw_sqe unsent{};
    std::uint16_t flags = 0;
    const int error = write_request_locked(qp, unsent, next, flags);
    return error != 0 ? error
                      : flush(qp.plain.send_cq, qp, next.wr_id, wc_opcode_of(unsent.opcode));
  });
}

/// The connection is over already, or the application wants that. When this returns the kernel
/// works on neither ring any more.
void end_in_kernel(Qp& qp) noexcept {
  const LockGuard guard(qp.ending);
  if (qp.ended) return;
  qp.ended = true;
  // A device that is gone works on nothing either.
  static_cast<void>(uverbs::lead_in_kernel(qp, IBV_QPS_ERR));
  set_state(qp, IBV_QPS_ERR);
}

}  // namespace

int ask_by_bell(Qp& qp) noexcept {
  // A state that is just being changed is answered with ENOTCONN too.
  constexpr int kTries = 64;
  int error = ENOTCONN;
  for (int i = 0; i < kTries && error == ENOTCONN; ++i) {
    if (i != 0) ::sched_yield();
    error = uverbs::context_of(qp).command_channel.ring(qp.doorbell);
  }
  return error;
}

Stand look_where_it_stands_locked(Qp& qp) noexcept {
  if (qp.failed.load(std::memory_order_relaxed) || state_of(qp) > IBV_QPS_RTS) {
    QpDirectory::fail(qp);
    settle_sends_locked(qp);
    return Stand::kFlushes;
  }
  if (const int error = ask_by_bell(qp); error != 0) {
    // Where there is no device any more there is no connection either.
    if (!uverbs::is_of_the_gone(uverbs::context_of(qp), error)) return Stand::kRefuses;
    QpDirectory::fail(qp);
    settle_sends_locked(qp);
    return Stand::kFlushes;
  }
  set_state(qp, IBV_QPS_RTS);
  return Stand::kSends;
}

bool ask_for_reads_locked(Qp& qp) noexcept {
  // On its way to flushing nothing stops any more.
  if (qp.failed.load(std::memory_order_relaxed)) return true;
  if (qp.reads == Reads::kNotAsked) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const bool known = uverbs::query_qp(qp, attr, 0, init) == 0;
    // The driver calls what we may ask for what we must answer.
    qp.reads = known && attr.max_dest_rd_atomic == 0 ? Reads::kRefused : Reads::kAllowed;
  }
  return qp.reads == Reads::kAllowed;
}

int flush(ibv_cq* handle, const Qp& qp, std::uint64_t wr_id, ibv_wc_opcode opcode) noexcept {
  Cq& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
  const LockGuard guard(cq.lock);
  return cq.flushed.add(cq.ring.capacity(), wr_id, qp.plain.qp_num, opcode);
}

void settle_sends_locked(Qp& qp) noexcept {
  if (std::exchange(qp.sends_settled, true)) return;
  end_in_kernel(qp);
  qp.send_ring.reclaim([&qp](const siw_sqe& element) noexcept {
    const ibv_wc_opcode opcode =
        is_known_opcode(element.opcode) ? wc_opcode_of(element.opcode) : IBV_WC_SEND;
    // Where there is no room the kernel has lost completions before.
    static_cast<void>(flush(qp.plain.send_cq, qp, element.id, opcode));
  });
  QpDirectory::settled_one(qp);
}

void settle_receives_locked(Qp& qp) noexcept {
  if (std::exchange(qp.receives_settled, true)) return;
  end_in_kernel(qp);
  if (qp.receive_ring.mapped()) {
    qp.receive_ring.reclaim([&qp](const siw_rqe& element) noexcept {
      static_cast<void>(flush(qp.plain.recv_cq, qp, element.id, IBV_WC_RECV));
    });
  }
  QpDirectory::settled_one(qp);
}

void bell_unheard(Qp& qp, int error) noexcept {
  if (error == ENOTCONN) error = ask_by_bell(qp);
  if (error == 0) return;
  if (error != ENOTCONN && !uverbs::is_of_the_gone(uverbs::context_of(qp), error)) {
    log_error("QP 0x%06x: the kernel hears of no requests (%s): led to ERR, where they are flushed",
              qp.plain.qp_num, std::strerror(error));
  }
  // The connection has ended, or does here; what was posted is flushed, as it would have been a
  // moment later, and not sent when anybody rings again.
  QpDirectory::fail(qp);
  const LockGuard guard(qp.send_lock);
  settle_sends_locked(qp);
}

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  Qp& qp = static_cast<Qp&>(verbatim::Qp::from(handle));
  ibv_send_wr* const first = wr;
  int error = 0;
  {
    LockGuard<SpinLock> guard(qp.send_lock);
    if (const Stand stand = stand_of_locked(qp); stand != Stand::kSends) [[unlikely]] {
      if (stand == Stand::kFlushes) return flush_list_locked(qp, wr, bad);
      *bad = wr;
      return EINVAL;
    }
    for (; wr != nullptr; wr = wr->next) {
      siw_sqe* const element = qp.send_ring.vacant();
      std::uint16_t flags = 0;
      error = element == nullptr ? ENOMEM : write_request_locked(qp, *element, *wr, flags);
      if (error != 0) break;
      qp.send_ring.publish(flags);
    }
  }
  if (error != 0) *bad = wr;
  if (wr != first) ring_bell(qp);
  return error;
}

}  // namespace verbatim::siw
