// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/cq.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/channel.hpp"
#include "providers/shm/queues/hot_ring.hpp"
#include "providers/shm/queues/live.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/soft_channel.hpp"

namespace verbatim::shm {
namespace {

/// After arming, so many filled polls pass before a ring is made hot again.
constexpr std::uint32_t kEventModePolls = 64;
/// A ring is hot from its so many-eth look on that a doorbell asked for: a single message per QP,
/// as many connections bring at start, makes none hot.
constexpr std::uint32_t kHeatAfter = 4;
/// And at most, where that brought nothing.
constexpr std::uint32_t kMostReplaceAfter = 1u << 14;

/// Ends the hot time of rings that were dropped: a sender that has read the old word has its
/// message in the ring after the fence, one that reads later rings. Nobody pays for it per message.
void settle(Cq& cq, Qp* const* cooled, std::uint32_t count) noexcept {
  if (count == 0) return;
  Node::get().fence_everyone();
  for (std::uint32_t i = 0; i < count; ++i)
    if (has_message(*cooled[i])) cq.doorbells->ring(cooled[i]->own->cq_bit);
}

/// The first stored completion that no event told of.
std::uint32_t first_untold(const Cq& cq) noexcept {
  const std::uint32_t head = cq.head.load(std::memory_order_relaxed);
  const std::uint32_t stored = cq.tail.load(std::memory_order_relaxed) - head;
  // Numbers come round: what was told long ago is before the head, wherever it seems to be.
  return cq.told.stored - head <= stored ? cq.told.stored : head;
}

}  // namespace

void tell_stored_locked(Cq& cq, bool failed) noexcept {
  if (armed_for_locked(cq) == CqRecord::kArmedSolicited && !failed) return;
  cq.told.stored = first_untold(cq) + 1;
  if (is_moderated(cq) && !failed)
    hold_stored_locked(cq);
  else
    raise_locked(cq);
}

void tell_announced_locked(Cq& cq, bool solicited) noexcept {
  const std::uint32_t armed = armed_for_locked(cq);
  if (armed == CqRecord::kIdle || (armed == CqRecord::kArmedSolicited && !solicited)) return;
  if (is_moderated(cq))
    hold_announced_locked(cq);
  else
    raise_locked(cq);
}

void raise_locked(Cq& cq) noexcept {
  cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  if (cq.plain.channel != nullptr)
    static_cast<SoftChannel&>(CompChannel::from(cq.plain.channel)).notify(cq);
}

namespace {

/// Whether there is a completion that no program has seen and no event told of, which is told of
/// now; `solicited_only`: of the kind that a queue armed for solicited ones tells of. Of those that
/// the cursor has taken nobody knows it any more.
bool tells_of_unpolled_locked(Cq& cq, bool solicited_only) noexcept {
  const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
  for (std::uint32_t i = first_untold(cq); i != tail; ++i) {
    const Completion& stored = cq.ring[i & cq.mask];
    // Of a stored receive it is not known any more, and nobody is harmed by an early event.
    if (solicited_only && stored.status == IBV_WC_SUCCESS && stored.frees_send_queue) continue;
    cq.told.stored = i + 1;
    return true;
  }
  if (cq.doorbells->summary.load(std::memory_order_relaxed) != 0) {
    if (const Qp* const qp = find_untold_whole(cq, solicited_only); qp != nullptr) {
      note_told(cq, *qp);
      return true;
    }
  }
  return cq.cursor.has_more();
}

}  // namespace

int req_notify_cq(ibv_cq* handle, int solicited_only) noexcept {
  Cq& cq = Cq::from(handle);
  DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
  // Armed for all stays so: a solicited-only request on top of it asks for less.
  const bool for_all = solicited_only == 0 || armed_for_locked(cq) == CqRecord::kArmed;
  const std::uint32_t kind = for_all ? CqRecord::kArmed : CqRecord::kArmedSolicited;
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
          ? static_cast<Channel&>(CompChannel::from(cq.plain.channel)).shown_record()
          : 0;
  cq.armed->store(kind | channel << CqRecord::kKindBits, std::memory_order_relaxed);
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
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &cq.plain;
  Context::of(cq.plain.context).events.raise(event);
  log_error(
      "shm: completion queue with %d entries overran: completions are lost; make it as large as "
      "the send and receive queues that use it together",
      cq.plain.cqe);
}

int add_member(Cq& cq, Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  std::uint32_t bit = cq.member_next;
  for (std::uint32_t i = 0; i < cq.member_capacity; ++i) {
    if (cq.members[(bit + i) % cq.member_capacity] == nullptr) {
      bit = (bit + i) % cq.member_capacity;
      break;
    }
  }
  if (bit >= cq.member_capacity || cq.members[bit] != nullptr) {
    if (cq.member_capacity < DoorbellBlock::kBits) {
      const std::uint32_t capacity = cq.member_capacity == 0 ? 16 : 2 * cq.member_capacity;
      auto* members = static_cast<Qp**>(std::calloc(capacity, sizeof(Qp*)));
      if (members == nullptr) return ENOMEM;
      if (cq.members != nullptr) std::memcpy(members, cq.members, cq.member_capacity * sizeof(Qp*));
      std::free(cq.members);
      bit = cq.member_capacity;
      cq.members = members;
      cq.member_capacity = capacity;
    } else {
      bit = cq.member_next % DoorbellBlock::kBits;  // bits are shared from here on
    }
  }
  poke(qp.own->cq, cq.number);
  poke(qp.own->cq_bit, bit);
  qp.in.next_same_bit = cq.members[bit];
  cq.members[bit] = &qp;
  cq.member_next = bit + 1;
  return 0;
}

void remove_member(Cq& cq, Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  if (qp.in.hot_index != Responder::kNotHot) drop_hot(cq, qp.in.hot_index);
  // The next one may lie in its place.
  if (cq.told.qp == &qp) cq.told.qp = nullptr;
  for (Qp** link = &cq.members[qp.own->cq_bit]; *link != nullptr;
       link = &(*link)->in.next_same_bit) {
    if (*link != &qp) continue;
    *link = qp.in.next_same_bit;
    break;
  }
}

void forget_completions(Cq& cq, const Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
  std::uint32_t kept = cq.head.load(std::memory_order_relaxed);
  for (std::uint32_t i = kept; i != tail; ++i) {
    if (cq.ring[i & cq.mask].qp == &qp) continue;
    if (cq.times != nullptr) cq.times[kept & cq.mask] = cq.times[i & cq.mask];
    cq.ring[kept++ & cq.mask] = cq.ring[i & cq.mask];
  }
  cq.tail.store(kept, std::memory_order_relaxed);
  // An event too many harms nobody.
  cq.told = {.stored = cq.head.load(std::memory_order_relaxed)};
  // Those that the cursor has taken. Which of them it has handed on does not matter.
  const std::uint32_t last = cq.cursor.last.load(std::memory_order_relaxed);
  std::uint64_t marked = 0;
  for (std::uint32_t place = 1; place <= last; ++place)
    if (cq.cursor.said(place).qp_num == qp.plain.qp_num) marked |= std::uint64_t{1} << place;
  if (marked == 0) return;
  cq.cursor.marked.fetch_or(marked, std::memory_order_relaxed);
  cq.cursor.clean.store(0, std::memory_order_relaxed);
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

void drop_hot(Cq& cq, std::uint32_t i) noexcept {
  const std::uint32_t last = cq.hot_count.load(std::memory_order_relaxed) - 1;
  cq.hot[i].qp->in.hot_index = Responder::kNotHot;
  cq.hot[i].qp->in.announced = 0;
  cq.hot[i].qp->own->attention.store(kDoorbell, std::memory_order_release);
  if (i != last) {
    cq.hot[i].take(cq.hot[last]);
    cq.hot[i].qp->in.hot_index = i;
  }
  cq.hot_count.store(last, std::memory_order_relaxed);
}

void cool_all(Cq& cq) noexcept {
  Qp* cooled[kHotRings];
  std::uint32_t count = 0;
  while (cq.hot_count.load(std::memory_order_relaxed) != 0) {
    cooled[count++] = cq.hot[0].qp;
    drop_hot(cq, 0);
  }
  settle(cq, cooled, count);
}

std::uint64_t cool_silent(Cq& cq) noexcept {
  Qp* cooled[kHotRings];
  std::uint32_t count = 0;
  std::uint32_t i = 0;
  std::uint64_t all = 0;
  while (i < cq.hot_count.load(std::memory_order_relaxed)) {
    HotRing& hot = cq.hot[i];
    const std::uint64_t brought = hot.qp->in.head.load(std::memory_order_relaxed);
    all += brought - hot.seen;
    if (hot.seen == brought && cq.hot_count.load(std::memory_order_relaxed) > 1) {
      cooled[count++] = hot.qp;
      drop_hot(cq, i);
    } else {
      hot.seen = brought;
      ++i;
    }
  }
  cq.contenders = 0;
  settle(cq, cooled, count);
  return all;
}

void heat(Cq& cq, Qp& qp) noexcept {
  if (cq.event_mode != 0) {
    --cq.event_mode;
    return;
  }
  if (qp.in.hot_index != Responder::kNotHot || qp.in.ring == nullptr) return;
  if (++qp.in.announced < kHeatAfter) return;
  // Who armed the CQ may go to sleep after this very poll, and a polled ring wakes nobody.
  if (cq.armed->load(std::memory_order_relaxed) != CqRecord::kIdle) return;
  if (cq.hot_count.load(std::memory_order_relaxed) == kHotRings) {
    if (++cq.contenders < cq.replace_after) return;
    // Where many take turns no four are worth the fence of all threads that a change costs.
    const std::uint32_t waited = cq.contenders;
    cq.replace_after = cool_silent(cq) >= waited
                           ? kReplaceAfter
                           : std::min(2 * cq.replace_after, kMostReplaceAfter);
    if (cq.hot_count.load(std::memory_order_relaxed) == kHotRings) return;
  }
  const std::uint32_t i = cq.hot_count.load(std::memory_order_relaxed);
  HotRing& hot = cq.hot[i];
  hot.qp = &qp;
  hot.is_shared.store(qp.srq != nullptr, std::memory_order_relaxed);
  hot.seen = qp.in.head.load(std::memory_order_relaxed);
  point_at_next(hot);
  qp.in.hot_index = i;
  cq.hot_count.store(i + 1, std::memory_order_release);
  qp.own->attention.store(kPolled, std::memory_order_release);
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
