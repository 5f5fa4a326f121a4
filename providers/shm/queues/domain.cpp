// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/domain.hpp"

#include "providers/shm/queues/qp.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/software/soft_domains.hpp"

namespace verbatim::shm {

int alloc_parent_domain(verbatim::Context& context, const ibv_parent_domain_init_attr& attr,
                        verbatim::Pd** out) noexcept {
  static constinit LogOnce once;
  if ((attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0 && once.first()) {
    log_info(
        "ibv_alloc_parent_domain: the program's allocators are asked for what is private of shm's "
        "queues; what peers map of them (rings, posted receives) is the library's");
  }
  return SoftDomainVerbs::alloc_parent_domain(context, attr, out);
}

void join_domain(Cq& cq, ibv_pd* pd) noexcept {
  cq.domain = thread_domain_of(pd);
  cq.in_domain.store(cq.domain != nullptr && cq.lock.declare(), std::memory_order_relaxed);
}

void join_domain(Qp& qp, ibv_pd* pd) noexcept {
  const verbatim::Td* const domain = thread_domain_of(pd);
  for (Cq* cq : {qp.send_cq, qp.recv_cq}) {
    // Somebody from outside the domain will store completions there, or take them.
    if (cq->domain == domain || !cq->in_domain.load(std::memory_order_relaxed)) continue;
    cq->in_domain.store(false, std::memory_order_relaxed);
    cq->lock.undeclare();
  }
  qp.in_domain = domain != nullptr && qp.rq.lock.declare() && qp.rq.domain_lock.declare();
  qp.set_slow_path(Qp::kInDomain, qp.in_domain);
  // Peers that wait for us learn that our mark comes without a fence.
  std::uint64_t word = qp.own->active.load(std::memory_order_relaxed) & ~QpRecord::kUnfenced;
  if (qp.in_domain) word |= QpRecord::kUnfenced;
  qp.own->active.store(word, std::memory_order_seq_cst);
}

}  // namespace verbatim::shm
