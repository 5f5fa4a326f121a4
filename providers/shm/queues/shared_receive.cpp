// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/shared_receive.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/queue_limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "runtime/verbs/software/shared_receives.hpp"

namespace verbatim::shm {
namespace {

/// All queues of the process, for its forked children.
struct Queues {
  SpinLock lock;
  Srq* first = nullptr;

  void add(Srq& srq) noexcept {
    LockGuard<SpinLock> guard(lock);
    srq.next = first;
    if (first != nullptr) first->prev = &srq;
    first = &srq;
  }
  void remove(Srq& srq) noexcept {
    LockGuard<SpinLock> guard(lock);
    (srq.prev != nullptr ? srq.prev->next : first) = srq.next;
    if (srq.next != nullptr) srq.next->prev = srq.prev;
  }
};
constinit Queues queues;

/// Makes `bigger` the store, with what waits in the old one. The queue's lock is held.
void move_receives(Srq& srq, ReceiveStore& bigger, std::uint64_t offset) noexcept {
  ReceiveStore& old = srq.store;
  bigger.copy_from(old, srq.posted - waiting(srq), srq.posted);
  // Publishes the new place; pairs with the load in next_shared_credit(), which looks at this word
  // before and after, so the old place may be given back.
  srq.own->store.store(extent::make(offset, bigger.log), std::memory_order_seq_cst);
  old.release(srq.offset, false);
  old = bigger;
  srq.offset = offset;
}

/// `bigger`: a store for more receives than it has now, or one that has nothing. In the end it is
/// what is left over. EAGAIN: another call has shortened the queue meanwhile, so that it has to grow
/// after all. REQUIRES: the queue's lock.
int resize_locked(Srq& srq, std::uint32_t max_wr, ReceiveStore& bigger) noexcept {
  if (max_wr < waiting(srq)) {
    log_refusal("modify_srq: %u receives asked for, but %llu are posted", max_wr,
                static_cast<unsigned long long>(waiting(srq)));
    return EINVAL;
  }
  const bool grows = bigger.wr_ids != nullptr;
  if (!grows && places_log(max_wr) > srq.store.log) return EAGAIN;
  const ReceiveStore before = srq.store;
  if (grows && before.credits != nullptr) {
    const std::uint64_t offset = bigger.make(srq.memory);
    if (offset == 0) return ENOMEM;
    move_receives(srq, bigger, offset);
    bigger = before;
  } else if (grows) {
    std::swap(srq.store, bigger);
  }
  srq.store.max = max_wr;
  srq.attributes.max_wr = max_wr;
  return 0;
}

}  // namespace

Srq* make_srq(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t pd,
              const QueueMemory& memory) noexcept {
  Srq* srq = make_nothrow<Srq>();
  if (srq == nullptr) return nullptr;
  OwnSegment& segment = Process::get().segment();
  srq->own_offset = segment.allocate(sizeof(SrqRecord));
  if (srq->own_offset == 0) {
    destroy_nothrow(srq);
    return nullptr;
  }
  srq->own = segment.at<SrqRecord>(srq->own_offset);
  srq->own->store.store(0, std::memory_order_relaxed);
  srq->own->taken.store(0, std::memory_order_relaxed);
  srq->keys = {segment.regions(), segment.head().mr_capacity, pd};
  srq->store.max = max_wr;
  srq->store.max_sge = static_cast<std::uint16_t>(max_sge == 0 ? 1 : max_sge);
  srq->store.resize(places_log(max_wr));
  srq->memory = memory;
  queues.add(*srq);
  // What only we know comes with the first receive else.
  if (!srq->store.reserve() || (memory.is_of_program() && !srq->store.make_own(memory))) {
    free_srq(*srq);
    return nullptr;
  }
  return srq;
}

void retire_shared_queues_in_child() noexcept {
  ::new (&queues.lock) SpinLock;
  for (Srq* srq = queues.first; srq != nullptr; srq = srq->next) {
    ::new (&srq->lock) BiasedLock;
    leave_events_to_parent(*srq);
    srq->store.max = 0;
    srq->store.max_sge = 0;
  }
}

void empty_srq(Srq& srq) noexcept {
  LockGuard<BiasedLock> guard(srq.lock);
  srq.own->taken.store(srq.posted, std::memory_order_release);
  srq.starving = false;
}

void free_srq(Srq& srq) noexcept {
  queues.remove(srq);
  srq.own->store.store(0, std::memory_order_seq_cst);
  srq.store.release(srq.offset, false);
  srq.store.give_up(srq.own);
  srq.store.free(srq.memory);
  if (OwnSegment& segment = Process::get().segment(); segment.holds(srq.own))
    segment.release(srq.own_offset, sizeof(SrqRecord));
  destroy_nothrow(&srq);
}

int resize(Srq& srq, std::uint32_t max_wr) noexcept {
  if (const int error = check_shared_queue_sizes(kQueueLimits, "modify_srq", max_wr, 0); error != 0)
    return error;
  int error;
  do {
    // A program's allocators are not asked under the lock.
    ReceiveStore bigger;
    bool grows;
    {
      LockGuard<BiasedLock> guard(srq.lock);
      grows = places_log(max_wr) > srq.store.log;
      bigger.max_sge = srq.store.max_sge;
    }
    bigger.resize(places_log(max_wr));
    error = grows && (!bigger.reserve() || !bigger.make_own(srq.memory)) ? ENOMEM : 0;
    if (error == 0) {
      LockGuard<BiasedLock> guard(srq.lock);
      error = resize_locked(srq, max_wr, bigger);
    }
    bigger.free(srq.memory);
    bigger.give_up(srq.own);
  } while (error == EAGAIN);
  return error;
}

SoftEvents& events_of(const Srq& srq) noexcept { return Context::of(srq.plain.context).events; }

bool take_receive(Qp& qp, TakenReceive& out) noexcept {
  Srq& srq = *qp.srq;
  LockGuard<BiasedLock> guard(srq.lock);
  const std::uint64_t index = srq.own->taken.load(std::memory_order_relaxed);
  if (index == srq.posted) {
    srq.starving = true;
    return false;
  }
  const Receive receive = srq.store.receive(index);
  out.wr_id = receive.wr_id;
  out.num_sge = receive.num_sge;
  for (std::uint32_t i = 0; i < out.num_sge; ++i) out.sges[i] = receive.sges[i];
  use_up_locked(srq, qp, index);
  tell_if_low_locked(srq);
  return true;
}

HeldReceive* make_held(std::uint32_t capacity) noexcept {
  auto* held = static_cast<HeldReceive*>(std::malloc(capacity * sizeof(HeldReceive)));
  for (std::uint32_t i = 0; held != nullptr && i < capacity; ++i)
    held[i].index = HeldReceive::kNone;
  return held;
}

bool has_receive(Srq& srq) noexcept {
  LockGuard<BiasedLock> guard(srq.lock);
  if (waiting(srq) != 0) return true;
  srq.starving = true;
  return false;
}

}  // namespace verbatim::shm
