// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/srq_create.hpp"

#include <cerrno>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/queue_limits.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/xrc/xrc_queue.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {

int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept {
  const bool is_xrc = attr.srq_type == IBV_SRQT_XRC;
  if (attr.srq_type != IBV_SRQT_BASIC && !is_xrc) {
    log_refusal("shm: create_srq: shared receive queues are basic or XRC; type %d is not supported",
                static_cast<int>(attr.srq_type));
    return EOPNOTSUPP;
  }
  if (const int error =
          check_shared_queue_sizes(kQueueLimits, "create_srq", attr.attr.max_wr, attr.attr.max_sge);
      error != 0)
    return error;
  Srq* srq = make_srq(attr.attr.max_wr, attr.attr.max_sge, attr.pd->handle,
                      QueueMemory(attr.pd, VBT_RESOURCE_SRQ));
  if (srq == nullptr) return ENOMEM;
  srq->limit = attr.attr.srq_limit;
  srq->attributes = {srq->store.max, srq->store.max_sge, srq->limit};
  if (is_xrc) {
    const int error =
        present_queue(*srq, context.handle(), Cq::from(attr.cq), Xrcd::from(attr.xrcd).id);
    if (error != 0) {
      free_srq(*srq);
      return error;
    }
  }
  *out = srq;
  Process::get().segment().head().srq_count.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

int destroy_srq(verbatim::Srq& handle) noexcept {
  Srq& srq = static_cast<Srq&>(handle);
  if (srq.presence != nullptr)
    if (const int error = withdraw_queue(srq); error != 0) return error;
  Context::of(srq.plain.context).events.retire(srq);
  if (OwnSegment& segment = Process::get().segment(); segment.holds(srq.own))
    segment.head().srq_count.fetch_sub(1, std::memory_order_relaxed);
  free_srq(srq);
  return 0;
}

}  // namespace verbatim::shm
