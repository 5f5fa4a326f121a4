// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/cq_create.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "providers/shm/calls/cursor.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/domain.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/queue_limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/software/completion_ring.hpp"
#include "runtime/verbs/software/soft_comp_channel.hpp"

namespace verbatim::shm {
namespace {

/// Its words in the segment, as nobody has used them.
int take_words(Cq& cq, std::uint32_t number) noexcept {
  OwnSegment& segment = Process::get().segment();
  cq.number = number;
  cq.doorbells = &segment.doorbells().cqs[number];
  CqRecord& record = segment.cqs()[number];
  cq.armed = &record.armed;
  cq.has_events = &record.has_events;
  int error = segment.back(cq.doorbells, sizeof(CqDoorbells));
  if (error == 0) error = segment.back(&record, sizeof(CqRecord));
  if (error != 0) return error;
  cq.doorbells->silence_all();
  cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  cq.has_events->store(0, std::memory_order_relaxed);
  return 0;
}

int take_number(Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  SegmentHeader& head = Process::get().segment().head();
  for (std::uint32_t i = 0; i < head.cq_capacity; ++i) {
    if (live.cqs[i] != nullptr) continue;
    // Before the service thread may look at it.
    if (const int error = take_words(cq, i); error != 0) return error;
    live.cqs[i] = &cq;
    if (i >= live.cq_end) live.cq_end = i + 1;
    head.cq_count.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  log_error("shm: all %u completion queues of this process are in use", head.cq_capacity);
  return ENOMEM;
}

Completion* make_completions(const Cq& cq, std::size_t count) noexcept {
  return static_cast<Completion*>(cq.memory.take(count * sizeof(Completion), alignof(Completion)));
}

}  // namespace

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, verbatim::CompChannel*,
              verbatim::Cq** out) noexcept {
  if (const int error = check_completions(kQueueLimits, "create_cq", attr.cqe); error != 0)
    return error;
  (void)context;
  Cq* cq = make_nothrow<Cq>();
  if (cq == nullptr) return ENOMEM;
  const std::uint32_t size = completion_places(attr.cqe);
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    cq->memory = QueueMemory(attr.parent_domain, VBT_RESOURCE_CQ);
    join_domain(*cq, attr.parent_domain);
  }
  cq->ring = make_completions(*cq, size);
  cq->mask = size - 1;
  int error = cq->ring == nullptr ? ENOMEM : wire_cursor(*cq, attr);
  if (error == 0) error = take_number(*cq);
  if (error != 0) {
    free_cq(*cq);
    return error;
  }
  cq->ignores_overrun = (attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  cq->plain.cqe = static_cast<int>(size);
  *out = cq;
  return 0;
}

int destroy_cq(verbatim::Cq& handle) noexcept {
  Cq& cq = static_cast<Cq&>(handle);
  {
    LockGuard<BiasedLock> guard(cq.lock);
    cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  }
  if (cq.overruns != 0 && !cq.ignores_overrun)
    log_warn("shm: the completion queue that overran lost %llu completions in all",
             static_cast<unsigned long long>(cq.overruns));
  hide_cq(cq);
  SoftCompChannel::retire(cq);
  Context::of(cq.plain.context).events.retire(cq);
  free_cq(cq);
  return 0;
}

void hide_cq(Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  live.cqs[cq.number] = nullptr;
  if (OwnSegment& segment = Process::get().segment(); segment.holds(cq.armed))
    segment.head().cq_count.fetch_sub(1, std::memory_order_relaxed);
}

void free_cq(Cq& cq) noexcept {
  cq.memory.give(cq.ring);
  cq.memory.give(cq.times);
  std::free(cq.members);
  destroy_nothrow(&cq);
}

int resize_cq(verbatim::Cq& handle, int cqe) noexcept {
  Cq& cq = static_cast<Cq&>(handle);
  if (const int error = check_completions(kQueueLimits, "resize_cq", cqe); error != 0) return error;
  const std::uint32_t size = completion_places(static_cast<std::uint32_t>(cqe));
  Completion* ring = make_completions(cq, size);
  CompletionTime* times = cq.times == nullptr ? nullptr : make_times(cq, size);
  if (ring == nullptr || (cq.times != nullptr && times == nullptr)) {
    cq.memory.give(ring);
    cq.memory.give(times);
    return ENOMEM;
  }
  bool fits;
  {
    LockGuard<BiasedLock> guard(cq.lock);
    const std::uint32_t stored = completions::count(cq);
    const auto most = static_cast<std::uint32_t>(cqe);  // rounded up it may hold more
    fits = stored <= most && stored + count_unpolled(cq, most - stored + 1) <= most;
    if (fits) {
      completions::move_to(cq, ring, size, [&](std::uint32_t from, std::uint32_t to) noexcept {
        if (times != nullptr) times[to] = cq.times[from];
      });
      std::swap(cq.times, times);
      cq.told.stored = 0;
      cq.plain.cqe = static_cast<int>(size);
    }
  }
  cq.memory.give(ring);
  cq.memory.give(times);
  if (fits) return 0;
  log_refusal("ibv_resize_cq: %d entries asked, more completions than that wait to be polled", cqe);
  return EINVAL;
}

}  // namespace verbatim::shm
