// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/queue_pairs.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "providers/siw/send.hpp"
#include "providers/uverbs/made_queues.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::siw {
namespace {

/// The driver tells what was asked, and makes rings as large as powers of two come: `attr` becomes
/// what they hold.
int map_rings(const siw_uresp_create_qp& reply, int fd, ibv_qp_init_attr_ex& attr,
              Qp& qp) noexcept {
  if (reply.qp_id != qp.plain.qp_num || reply.num_sqe < attr.cap.max_send_wr) return EPROTO;
  if (const int error = qp.send_ring.map(fd, reply.sq_key, reply.num_sqe)) return error;
  qp.max_send_sge = std::min(attr.cap.max_send_sge, kMostSges);
  attr.cap.max_send_wr = qp.send_ring.capacity();
  attr.cap.max_inline_data = kMostInline;
  if (attr.send_ops_flags != 0) {
    qp.pending_flags =
        static_cast<std::uint16_t*>(std::calloc(qp.send_ring.capacity(), sizeof(std::uint16_t)));
    if (qp.pending_flags == nullptr) return ENOMEM;
  }
  if (attr.srq != nullptr || attr.cap.max_recv_wr == 0) return 0;
  if (reply.num_rqe < attr.cap.max_recv_wr) return EPROTO;
  if (const int error = qp.receive_ring.map(fd, reply.rq_key, reply.num_rqe)) return error;
  qp.max_recv_sge = std::min(attr.cap.max_recv_sge, kMostSges);
  attr.cap.max_recv_wr = qp.receive_ring.capacity();
  return 0;
}

}  // namespace

int create_qp(verbatim::Context& plain, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
  auto& context = static_cast<Context&>(plain);
  if (attr.qp_type != IBV_QPT_RC) {
    log_refusal("siw: queue pairs are RC: iWARP has no other type");
    return EOPNOTSUPP;
  }
  if (const int error = check_work_calls(attr)) return error;
  Qp* qp = nullptr;
  const auto map = [&attr](Qp& made, const siw_uresp_create_qp& reply, int fd) noexcept {
    return map_rings(reply, fd, attr, made);
  };
  if (const int error = uverbs::make_qp<Qp, siw_uresp_create_qp>(context, attr, &qp, map))
    return error;
  wire_work_calls(*qp, attr);
  context.queue_pairs.add(*qp);
  context.objects.name(qp->number, qp->plain.qp_num);
  *out = qp;
  return 0;
}

int modify_qp(verbatim::Qp& plain, ibv_qp_attr& attr, int mask) noexcept {
  auto& qp = static_cast<Qp&>(plain);
  const LockGuard send(qp.send_lock);
  const LockGuard receive(qp.receive_lock);
  const bool moves = (mask & IBV_QP_STATE) != 0;
  if (moves && attr.qp_state != IBV_QPS_ERR && qp.failed.load(std::memory_order_relaxed)) {
    log_refusal("ibv_modify_qp: QP 0x%06x: siw leads no queue pair out of ERR: destroy it",
                qp.plain.qp_num);
    return EINVAL;
  }
  // The driver takes this for no move at all, and goes on with the connection.
  if (moves && attr.qp_state < IBV_QPS_RTS && state_of(qp) == IBV_QPS_RTS) return EINVAL;
  if (const int error = uverbs::modify_qp(plain, attr, mask)) return error;
  if (!moves || attr.qp_state != IBV_QPS_ERR) return 0;
  if (!qp.failed.load(std::memory_order_relaxed)) uverbs::note_ordered(qp);
  QpDirectory::fail(qp);
  settle_sends_locked(qp);
  settle_receives_locked(qp);
  return 0;
}

int query_qp(verbatim::Qp& plain, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) noexcept {
  auto& qp = static_cast<Qp&>(plain);
  // The state that a kernel's answer would bring is always RESET.
  if (const int error = uverbs::query_qp(plain, attr, mask & ~int{IBV_QP_STATE}, init))
    return error;
  if (uverbs::has_gone(uverbs::context_of(qp))) QpDirectory::fail(qp);
  {
    const LockGuard guard(qp.send_lock);
    static_cast<void>(stand_of_locked(qp));
    attr.qp_state = attr.cur_qp_state = state_of(qp);
  }
  // The driver tells what each side may ask for in the other one's place.
  std::swap(attr.max_rd_atomic, attr.max_dest_rd_atomic);
  return 0;
}

/// Its number is the kernel's to give away as soon as it is gone, and completions that still bear
/// it would be believed of the next one: so it is brought to an end before, and they are dropped.
int destroy_qp(verbatim::Qp& plain) noexcept {
  auto& qp = static_cast<Qp&>(plain);
  Context& context = context_of(qp.plain.context);
  QpDirectory& queue_pairs = context.queue_pairs;
  context.objects.name(qp.number, 0);  // whoever polls an old error finds it no more
  {
    const LockGuard send(qp.send_lock);
    const LockGuard receive(qp.receive_lock);
    QpDirectory::fail(qp);
    settle_sends_locked(qp);
    settle_receives_locked(qp);
  }
  queue_pairs.remove(qp);
  for (ibv_cq* const handle : {qp.plain.send_cq, qp.plain.recv_cq}) {
    if (handle == nullptr) continue;
    Cq& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
    const LockGuard guard(cq.lock);
    cq.ring.drop(qp.plain.qp_num);
    cq.flushed.drop(qp.plain.qp_num);
  }
  if (const int error = uverbs::destroy_qp(qp)) {
    queue_pairs.add(qp);
    context.objects.name(qp.number, qp.plain.qp_num);
    return error;
  }
  destroy_nothrow(&qp);
  return 0;
}

}  // namespace verbatim::siw
