// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/qp_state.hpp"

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/qp_kind.hpp"

namespace verbatim::shm {

void enter_error(Qp& qp) noexcept {
  qp.mode.store(IBV_QPS_ERR, std::memory_order_release);
  __atomic_store_n(&qp.plain.state, IBV_QPS_ERR, __ATOMIC_RELAXED);  // query_qp may look
  store_relaxed(qp.own->state, IBV_QPS_ERR);
  qp.own->accepts.store(0, std::memory_order_seq_cst);
  qp.link.fast = false;
  if (qp.kind != nullptr && qp.kind->stop_accepting != nullptr) qp.kind->stop_accepting(qp);
  announce(qp);
}

void stop_sending(Qp& qp) noexcept {
  qp.mode.store(IBV_QPS_SQE, std::memory_order_release);
  __atomic_store_n(&qp.plain.state, IBV_QPS_SQE, __ATOMIC_RELAXED);
  store_relaxed(qp.own->state, IBV_QPS_SQE);
  qp.strict_unsignaled = 0;
  qp.link.fast = false;
}

}  // namespace verbatim::shm
