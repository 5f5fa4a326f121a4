// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/shared_posting.hpp"

#include <cerrno>

#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/shared_receive.hpp"

namespace verbatim::shm {
namespace {

/// Messages wait that found no receive: whoever polls, or sleeps, hears of them again.
[[gnu::cold, gnu::noinline]] void feed(Srq& srq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live)
    if (qp->srq == &srq && qp->xrc != XrcRole::kQueue &&
        qp->own->accepts.load(std::memory_order_relaxed) != 0)
      announce(*qp);
}

/// The only receive of a list, of one piece, in a queue that has its memory and that no message
/// waits for. False: nothing was done. REQUIRES: the queue's lock.
[[gnu::always_inline]] inline bool post_one(Srq& srq, const ibv_recv_wr& wr) noexcept {
  const std::uint64_t index = srq.posted;
  const unsigned char* place;
  if (wr.num_sge != 1 || srq.store.credits == nullptr || srq.starving ||
      waiting(srq) >= srq.store.max ||
      !find_local_bytes(srq.keys, wr.sg_list->lkey, wr.sg_list->addr, wr.sg_list->length,
                        IBV_ACCESS_LOCAL_WRITE, place)) [[unlikely]]
    return false;
  const ibv_sge& sge = *wr.sg_list;
  srq.store.fill_one(index, {sge.addr, sge.length, sge.lkey}, wr.wr_id);
  show_receive(srq.store.credits[srq.store.at(index)], srq.store.lap(index), sge.length);
  srq.posted = index + 1;
  return true;
}

[[gnu::noinline]] int post_list(Srq& srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  bool hungry = false;
  int error = 0;
  {
    LockGuard<BiasedLock> guard(srq.lock);
    error = post_in_order(wr, bad_wr, [&](const ibv_recv_wr& next) noexcept {
      if (const int refusal = srq.store.check(next, waiting(srq)); refusal != 0) return refusal;
      if (srq.store.credits == nullptr) {
        srq.offset = srq.store.make(srq.memory);
        if (srq.offset == 0) return ENOMEM;
        srq.own->store.store(extent::make(srq.offset, srq.store.log), std::memory_order_release);
      }
      const std::uint64_t credit = srq.store.fill(srq.posted, next, srq.keys);
      // Publishes the receive; pairs with the load in next_shared_credit().
      srq.store.credits[srq.store.at(srq.posted)].store(credit, std::memory_order_release);
      ++srq.posted;
      hungry = srq.starving;
      return 0;
    });
    if (hungry) srq.starving = false;
  }
  if (hungry) [[unlikely]]
    feed(srq);
  return error;
}

}  // namespace

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  return post_shared(Srq::from(handle), wr, bad_wr);
}

int post_shared(Srq& srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  if (wr != nullptr && wr->next == nullptr) {
    LockGuard<BiasedLock> guard(srq.lock);
    if (post_one(srq, *wr)) [[likely]]
      return 0;
  }
  return post_list(srq, wr, bad_wr);
}

}  // namespace verbatim::shm
