// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/cq_events.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "runtime/base/log.hpp"
#include "runtime/sync/membarrier.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/arming.hpp"

namespace verbatim::shm {
namespace {

static_assert(CqRecord::kIdle == armed::kForNothing && CqRecord::kArmed == armed::kForAll &&
              CqRecord::kArmedSolicited == armed::kForSolicited);

/// After arming, so many filled polls pass before a ring is made hot again.
constexpr std::uint32_t kEventModePolls = 64;

/// Whether there is a completion that no program has seen and no event told of, which is told of
/// now; `solicited_only`: of the kind that a queue armed for solicited ones tells of. Of those that
/// the cursor has taken nobody knows it any more.
bool tells_of_unpolled_locked(Cq& cq, bool solicited_only) noexcept {
  // Of a stored receive it is not known any more, and nobody is harmed by an early event.
  const auto makes_event = [solicited_only](const Completion& stored) noexcept {
    return !solicited_only || stored.status != IBV_WC_SUCCESS || !stored.frees_send_queue;
  };
  if (completions::tell_next(cq, cq.told.stored, makes_event)) return true;
  if (cq.doorbells->is_any_rung()) {
    if (const Qp* const qp = find_untold_whole(cq, solicited_only); qp != nullptr) {
      note_told(cq, *qp);
      return true;
    }
  }
  return cq.cursor.has_more();
}

/// From the first time on that the queue is armed its senders look at the armed word, behind a
/// fence. One that has yet to see that passes a fence here, and has rung before it: nobody pays for
/// it per message of a queue that is only polled.
void show_events(const Cq& cq) noexcept {
  if (cq.has_events->load(std::memory_order_relaxed) != 0) return;
  cq.has_events->store(1, std::memory_order_relaxed);
  // Where the kernel refuses that they have a fence of their own.
  if (membarrier_registered.load(std::memory_order_acquire))
    (void)fence_or_outwait_registered_threads();
}

}  // namespace

void tell_stored_locked(Cq& cq, bool failed) noexcept {
  if (!armed::is_met(armed_for_locked(cq), failed)) return;
  cq.told.stored = completions::first_untold(cq, cq.told.stored) + 1;
  if (is_moderated(cq) && !failed)
    hold_stored_locked(cq);
  else
    raise_locked(cq);
}

void tell_announced_locked(Cq& cq, bool solicited) noexcept {
  if (!armed::is_met(armed_for_locked(cq), solicited)) return;
  if (is_moderated(cq))
    hold_announced_locked(cq);
  else
    raise_locked(cq);
}

void tell_of_locked(Cq& cq, const Qp& qp) noexcept {
  const std::uint32_t armed = armed_for_locked(cq);
  if (armed == CqRecord::kIdle || (armed == CqRecord::kArmedSolicited && !has_solicited(qp)) ||
      !has_untold_whole(cq, qp))
    return;
  note_told(cq, qp);
  tell_announced_locked(cq, true);
}

int req_notify_cq(ibv_cq* handle, int solicited_only) noexcept {
  Cq& cq = Cq::from(handle);
  DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
  const std::uint32_t kind = armed::again(armed_for_locked(cq), solicited_only != 0);
  cq.event_mode = kEventModePolls;
  if (CqRecord::kind(cq.armed->load(std::memory_order_relaxed)) == CqRecord::kHeld) {
    // Its event is under way.
    cq.moderation.asked = kind;
    return 0;
  }
  const bool moderated = is_moderated(cq);
  // Who sleeps there is woken for an event, not for each message that may be one's reason.
  const std::uint32_t channel =
      cq.plain.channel != nullptr && !moderated
          ? static_cast<ShmCompChannel&>(CompChannel::from(cq.plain.channel)).shown_record()
          : 0;
  cq.armed->store(kind | channel << CqRecord::kKindBits, std::memory_order_relaxed);
  show_events(cq);
  // A sender must ring to see the armed word; those who are polled do not, so nobody is polled now.
  cool_all(cq);
  if (moderated) begin_count_locked(cq);
  // Between the armed word and the look that the program takes next, and our own.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // What lies there unpolled makes an event at once, as with adapters whose doorbell carries how far
  // the program has polled: one that polls a completion for each event would wait for good. Not what
  // an event told of: one that polls after arming would be told twice of each.
  if (tells_of_unpolled_locked(cq, kind == CqRecord::kArmedSolicited))
    tell_announced_locked(cq, true);
  return 0;
}

void report_overrun_locked(Cq& cq) noexcept {
  ++cq.overruns;
  if (cq.overrun_reported || cq.ignores_overrun) return;
  cq.overrun_reported = true;
  Context::of(cq.plain.context).events.raise(cq, IBV_EVENT_CQ_ERR);
  log_error(
      "shm: completion queue with %d entries overran: completions are lost; make it as large as "
      "the send and receive queues that use it together",
      cq.plain.cqe);
}

void announce(Qp& qp) noexcept {
  Cq& cq = *qp.recv_cq;
  cq.doorbells->ring(qp.own->cq_bit);
  LockGuard<BiasedLock> guard(cq.lock);
  // Errors are what every event is for. Only if there is one: an empty receive queue has nothing to
  // flush.
  if (cq.armed->load(std::memory_order_relaxed) != CqRecord::kIdle && has_message(qp)) {
    note_told(cq, qp);
    raise_locked(cq);
  }
  say_last_receive(qp);
}

CompletionTime completion_time(const Cq& cq) noexcept {
  CompletionTime time;
  if ((cq.clocks & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) time.raw = now_ns();
  if ((cq.clocks & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0)
    time.wallclock = wall_clock_ns();
  return time;
}

void stamp_stored(Cq& cq, std::uint32_t index) noexcept {
  cq.times[index & cq.mask] = completion_time(cq);
}

CompletionTime* make_times(const Cq& cq, std::size_t count) noexcept {
  return static_cast<CompletionTime*>(
      cq.memory.take(count * sizeof(CompletionTime), alignof(CompletionTime)));
}

}  // namespace verbatim::shm
