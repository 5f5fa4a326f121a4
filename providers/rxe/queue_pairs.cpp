// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/queue_pairs.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "providers/rxe/hidden_error.hpp"
#include "providers/rxe/send.hpp"
#include "providers/uverbs/made_queues.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::rxe {
namespace {

bool is_supported(ibv_qp_type type) noexcept {
  return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

/// The driver tells what was asked, and makes rings as large as their slots come: `attr` becomes
/// what they hold.
int map_rings(const rxe_create_qp_resp& reply, int fd, ibv_qp_init_attr_ex& attr, Qp& qp) noexcept {
  if (const int error = qp.send_ring.map(fd, reply.sq_mi, sizeof(SendElement))) return error;
  const std::size_t size = qp.send_ring.element_size();
  qp.max_send_sge = std::min(attr.cap.max_send_sge, sges_in<SendElement>(size));
  qp.max_inline =
      std::min(attr.cap.max_inline_data, static_cast<std::uint32_t>(size - sizeof(SendElement)));
  attr.cap.max_send_wr = qp.send_ring.capacity();
  if (attr.srq != nullptr) return 0;
  if (const int error = qp.receive_ring.map(fd, reply.rq_mi, sizeof(ReceiveElement))) return error;
  qp.max_recv_sge =
      std::min(attr.cap.max_recv_sge, sges_in<ReceiveElement>(qp.receive_ring.element_size()));
  attr.cap.max_recv_wr = qp.receive_ring.capacity();
  return 0;
}

/// Linux 6.12's driver drains in a thread of its own, and refuses RESET until it is through; what a
/// peer does not answer is given up by way of ERR.
[[gnu::cold]] int reset_while_draining(Qp& qp, ibv_qp_attr& attr) noexcept {
  constexpr int kTries = 1000;
  int error = EINVAL;
  for (int i = 0; i < kTries && error == EINVAL; ++i) {
    ::sched_yield();
    error = uverbs::modify_qp(qp, attr, IBV_QP_STATE);
  }
  if (error != EINVAL) return error;
  ibv_qp_attr failed{};
  failed.qp_state = IBV_QPS_ERR;
  if (const int refused = uverbs::modify_qp(qp, failed, IBV_QP_STATE)) return refused;
  return uverbs::modify_qp(qp, attr, IBV_QP_STATE);
}

/// The driver completes a request in error first, and moves the queue pair to ERR then, in a thread
/// of its own: it may forget a RESET that is ordered in between. Never a second one, since that
/// leaves nothing which could fail. That move may also come later than we look here: then the step
/// to INIT finds it (step_out_of_reset).
[[gnu::cold]] int reset_until_it_lasts(Qp& qp) noexcept {
  if (!is_in_error(qp)) return 0;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  return uverbs::modify_qp(qp, attr, IBV_QP_STATE);
}

/// Refused from RESET, as we know it.
[[gnu::cold]] int step_out_of_reset(Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
  if (!is_in_error(qp)) return EINVAL;
  ibv_qp_attr again{};
  again.qp_state = IBV_QPS_RESET;
  if (const int error = uverbs::modify_qp(qp, again, IBV_QP_STATE)) return error;
  return uverbs::modify_qp(qp, attr, mask);
}

/// Posting receives in ERR leads the queue pair to ERR once more: not while it is led elsewhere.
int modify_between_receives(Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
  const LockGuard guard(qp.receive_lock);
  const ibv_qp_state before = qp.plain.state;
  if ((mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_SQD) clean_free_slots(qp);
  const bool orders =
      (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_ERR && !is_in_error(qp);
  int error = uverbs::modify_qp(qp, attr, mask);
  // With anything beside the state it is refused for that.
  if (error == EINVAL && before == IBV_QPS_SQD && mask == IBV_QP_STATE &&
      attr.qp_state == IBV_QPS_RESET)
    error = reset_while_draining(qp, attr);
  if (error == EINVAL && before == IBV_QPS_RESET && (mask & IBV_QP_STATE) != 0 &&
      attr.qp_state == IBV_QPS_INIT)
    error = step_out_of_reset(qp, attr, mask);
  const bool resets = (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RESET;
  if (error == 0 && resets && before != IBV_QPS_RESET && before != IBV_QPS_INIT)
    error = reset_until_it_lasts(qp);
  if (error != 0) return error;
  if (orders) uverbs::note_ordered(qp);
  if (resets) uverbs::forget_failures(qp);
  if (before == IBV_QPS_SQD && qp.plain.state == IBV_QPS_RTS) {
    // What was posted while it drained: the driver does not look by itself. Who does not hear says
    // so to the next post.
    static_cast<void>(uverbs::context_of(qp).command_channel.ring(qp.doorbell));
  }
  remember_for_posting(qp, attr, mask);
  return 0;
}

}  // namespace

bool is_in_error(Qp& qp) noexcept {
  Failure now;
  uverbs::ask_for_ends(qp, now);
  return now.own_state == IBV_QPS_ERR;
}

void remember_for_posting(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    qp.barred.store(attr.max_rd_atomic == 0 ? kReadsAndAtomics : 0, std::memory_order_relaxed);
  if (qp.plain.qp_type != IBV_QPT_UD) return;
  if ((mask & IBV_QP_QKEY) != 0) qp.qkey.store(attr.qkey, std::memory_order_relaxed);
  if ((mask & IBV_QP_STATE) == 0 || attr.qp_state != IBV_QPS_RTR) return;
  // The driver's devices have one port.
  ibv_port_attr port{};
  if (uverbs::query_port(uverbs::context_of(qp), 1, port) == 0)
    qp.max_datagram.store(128u << port.active_mtu, std::memory_order_relaxed);
}

int create_qp(verbatim::Context& plain, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
  auto& context = static_cast<Context&>(plain);
  if (!is_supported(attr.qp_type)) {
    log_refusal("rxe: queue pairs are RC, UC or UD: the driver has no other type");
    return EOPNOTSUPP;
  }
  if (const int error = check_work_calls(context, attr)) return error;
  Qp* qp = nullptr;
  const auto map = [&attr](Qp& made, const rxe_create_qp_resp& reply, int fd) noexcept {
    return map_rings(reply, fd, attr, made);
  };
  if (const int error = uverbs::make_qp<Qp, rxe_create_qp_resp>(context, attr, &qp, map))
    return error;
  qp->troubles_seen = context.troubles.load(std::memory_order_relaxed);
  wire_work_calls(*qp, attr);
  begin_life(*qp, attr.send_cq, attr.recv_cq);
  context.objects.name(qp->number, qp->plain.qp_num);
  *out = qp;
  return 0;
}

int modify_qp(verbatim::Qp& plain, ibv_qp_attr& attr, int mask) noexcept {
  auto& qp = static_cast<Qp&>(plain);
  const int error = modify_between_receives(qp, attr, mask);
  // Without the lock of receives, for which others spin: here the kernel may be waited for.
  if (error != 0 || (mask & IBV_QP_STATE) == 0) return error;
  if (attr.qp_state == IBV_QPS_RESET)
    forget_hidden_errors(qp);
  else if (attr.qp_state != IBV_QPS_ERR)
    forget_the_rest(qp);
  return 0;
}

int destroy_qp(verbatim::Qp& plain) noexcept {
  auto& qp = static_cast<Qp&>(plain);
  uverbs::Context& context = uverbs::context_of(qp);
  context.objects.name(qp.number, 0);  // whoever polls an old error finds it no more
  if (const int error = uverbs::destroy_qp(qp)) {
    context.objects.name(qp.number, qp.plain.qp_num);
    return error;
  }
  destroy_nothrow(&qp);
  return 0;
}

}  // namespace verbatim::rxe
