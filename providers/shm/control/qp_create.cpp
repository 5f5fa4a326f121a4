// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/qp_create.hpp"

#include <cerrno>

#include "providers/shm/calls/work_calls.hpp"
#include "providers/shm/control/xrc_target.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/cq_members.hpp"
#include "providers/shm/queues/domain.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_make.hpp"
#include "providers/shm/queues/queue_limits.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/ud/datagram.hpp"
#include "providers/shm/xrc/xrc_send.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {
namespace {

static_assert(kMaxWr <=
              1u << (ReceiveQueue::kFirstLog + ReceiveQueue::kMostLeft * ReceiveQueue::kGrowthLog));

/// Where its receives come from. Entries of the ring in which senders put messages for it.
std::uint32_t prepare_receiving(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (qp.datagrams != nullptr) {
    qp.srq = attr.srq != nullptr ? &Srq::from(attr.srq) : qp.datagrams->inbox;
    return 1;  // nothing comes here but through endpoints
  }
  if (attr.srq == nullptr) {
    // A program's allocators are asked once.
    qp.rq.size(attr.cap.max_recv_wr, attr.cap.max_recv_sge, qp.memory.is_of_program());
    return std::uint32_t{1} << qp.rq.last_log;
  }
  return share_receives(qp, Srq::from(attr.srq));
}

int prepare_datagrams(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  qp.kind = &kDatagramKind;
  qp.endpoints = qp.datagrams = make_nothrow<Datagrams>();
  if (qp.datagrams == nullptr) return ENOMEM;
  if (attr.srq != nullptr) return 0;
  qp.datagrams->inbox =
      make_srq(attr.cap.max_recv_wr, attr.cap.max_recv_sge, qp.pd_number, qp.memory);
  return qp.datagrams->inbox == nullptr ? ENOMEM : 0;
}

int prepare_endpoints(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (attr.qp_type == IBV_QPT_UD) return prepare_datagrams(qp, attr);
  if (attr.qp_type != IBV_QPT_XRC_SEND) return 0;
  qp.xrc = XrcRole::kInitiator;
  qp.kind = &kXrcInitiatorKind;
  qp.endpoints = make_nothrow<EndpointTable>();
  return qp.endpoints == nullptr ? ENOMEM : 0;
}

int refuse_type(ibv_qp_type type) noexcept {
  log_refusal("shm: create_qp: queue pairs are RC, UC, UD or XRC; type %d is not supported",
              static_cast<int>(type));
  return EOPNOTSUPP;
}

/// Room for receives is reserved. What else comes with its first use: a program's allocators are
/// asked while a queue is created.
bool take_queues(Qp& qp) noexcept {
  const bool has_receives = qp.srq == nullptr && qp.xrc == XrcRole::kNone;
  if (has_receives && !qp.rq.reserve()) return false;
  if (!qp.memory.is_of_program()) return true;
  if (!qp.sq.store.make(qp.memory, qp.sq_entries, qp.max_send_sge)) return false;
  return !has_receives || qp.rq.store.make_own(qp.memory);
}

}  // namespace

int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
  if (Process::get().has_failed()) return EIO;
  Process::get().await_names();
  switch (attr.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
      break;
    case IBV_QPT_XRC_SEND:  // it receives nothing
      attr.srq = nullptr;
      attr.recv_cq = attr.send_cq;
      attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
      break;
    case IBV_QPT_XRC_RECV:
      return create_target(context, attr, out);
    default:  // RAW_PACKET and DRIVER: whatever is no type was refused before
      return refuse_type(attr.qp_type);
  }
  if (const int error = refuse_lacking_extras("shm", attr, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
                                              "of create_flags there is BLOCK_SELF_MCAST_LB");
      error != 0)
    return error;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  if (const int error = grant_queue_pair_sizes(kQueueLimits, attr); error != 0) return error;
  if (const int error = check_work_calls(attr); error != 0) return error;

  retire_parked();
  Qp* qp = make_nothrow<Qp>();
  if (qp == nullptr) return ENOMEM;
  if (const int error = take_number(*qp); error != 0) {
    destroy_nothrow(qp);
    return error;
  }
  qp->send_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.send_cq));
  qp->recv_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.recv_cq));
  qp->pd_number = attr.pd->handle;
  qp->memory = QueueMemory(attr.pd, VBT_RESOURCE_QP);
  qp->sq_entries = attr.cap.max_send_wr;
  qp->max_send_sge = static_cast<std::uint16_t>(attr.cap.max_send_sge);
  qp->signal_all = attr.sq_sig_all != 0;
  qp->plain.qp_type = attr.qp_type;
  qp->plain.context = context.handle();
  set_constants(*qp);
  int error = prepare_endpoints(*qp, attr);
  const std::uint32_t entries = prepare_receiving(*qp, attr);
  if (qp->srq != nullptr && qp->in.held == nullptr && qp->datagrams == nullptr) error = ENOMEM;
  reset_record(*qp);
  fill_record(*qp, entries, 0);
  join_domain(*qp, attr.pd);
  qp->set_slow_path(Qp::kToShared, qp->datagrams != nullptr);
  if (error == 0) error = wire_work_calls(*qp, attr);
  if (error == 0 && !take_queues(*qp)) error = ENOMEM;
  if (error == 0) error = add_member(*qp->recv_cq, *qp);
  if (error != 0) {
    give_up(*qp);
    return error;
  }
  enlist(*qp);
  *out = qp;
  return 0;
}

}  // namespace verbatim::shm
