// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/cq.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "providers/shm/announced.hpp"
#include "providers/shm/channel.hpp"
#include "providers/shm/context.hpp"
#include "providers/shm/cursor.hpp"
#include "providers/shm/domain.hpp"
#include "providers/shm/fabric/culprits.hpp"
#include "providers/shm/fabric/node.hpp"
#include "providers/shm/failures.hpp"
#include "providers/shm/lane.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/poll_fast.hpp"
#include "providers/shm/receive.hpp"
#include "providers/shm/request_service.hpp"
#include "providers/shm/send_queue.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
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

std::uint32_t ring_size(int cqe) noexcept { return std::bit_ceil(static_cast<std::uint32_t>(cqe)); }

/// Its words in the segment, as nobody has used them.
int take_words(Cq& cq, std::uint32_t number) noexcept {
  OwnSegment& segment = Node::get().segment();
  cq.number = number;
  cq.doorbells = &segment.doorbells().cqs[number];
  cq.armed = &segment.cqs()[number].armed;
  int error = segment.back(cq.doorbells, sizeof(DoorbellBlock));
  if (error == 0) error = segment.back(cq.armed, sizeof(CqRecord));
  if (error != 0) return error;
  cq.doorbells->summary.store(0, std::memory_order_relaxed);
  for (auto& word : cq.doorbells->words) word.store(0, std::memory_order_relaxed);
  cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  return 0;
}

int take_number(Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < kMaxCqs; ++i) {
    if (live.cqs[i] != nullptr) continue;
    // Before the service thread may look at it.
    if (const int error = take_words(cq, i); error != 0) return error;
    live.cqs[i] = &cq;
    if (i >= live.cq_end) live.cq_end = i + 1;
    Node::get().segment().head().cq_count.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  log_error("shm: all %u completion queues of this process are in use", kMaxCqs);
  return ENOMEM;
}

/// Ends the hot time of rings that were dropped: a sender that has read the old word has its
/// message in the ring after the fence, one that reads later rings. Nobody pays for it per message.
void settle(Cq& cq, Qp* const* cooled, std::uint32_t count) noexcept {
  if (count == 0) return;
  Node::get().fence_everyone();
  for (std::uint32_t i = 0; i < count; ++i)
    if (has_message(*cooled[i])) cq.doorbells->ring(cooled[i]->own->cq_bit);
}

Completion* make_completions(const Cq& cq, std::size_t count) noexcept {
  return static_cast<Completion*>(cq.memory.take(count * sizeof(Completion), alignof(Completion)));
}

}  // namespace

CompletionTime* make_times(const Cq& cq, std::size_t count) noexcept {
  return static_cast<CompletionTime*>(
      cq.memory.take(count * sizeof(CompletionTime), alignof(CompletionTime)));
}

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, verbatim::CompChannel*,
              verbatim::Cq** out) noexcept {
  if (attr.cqe > kMaxCqe) {
    log_refusal("create_cq: cqe %u asked, shm has %u", attr.cqe, kMaxCqe);
    return EINVAL;
  }
  (void)context;
  Cq* cq = make_nothrow<Cq>();
  if (cq == nullptr) return ENOMEM;
  const std::uint32_t size = ring_size(static_cast<int>(attr.cqe));
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
  SoftChannel::retire(cq);
  Context::of(cq.plain.context).events.retire(cq);
  free_cq(cq);
  return 0;
}

void hide_cq(Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  live.cqs[cq.number] = nullptr;
  if (OwnSegment& segment = Node::get().segment(); segment.holds(cq.armed))
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
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > kMaxCqe) {
    log_refusal("resize_cq: cqe %d asked, shm has 1 to %u", cqe, kMaxCqe);
    return EINVAL;
  }
  const std::uint32_t size = ring_size(cqe);
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
    const std::uint32_t head = cq.head.load(std::memory_order_relaxed);
    const std::uint32_t stored = cq.tail.load(std::memory_order_relaxed) - head;
    const auto most = static_cast<std::uint32_t>(cqe);  // rounded up it may hold more
    fits = stored <= most && stored + count_unpolled(cq, most - stored + 1) <= most;
    if (fits) {
      for (std::uint32_t i = 0; i < stored; ++i) {
        ring[i] = cq.ring[(head + i) & cq.mask];
        if (times != nullptr) times[i] = cq.times[(head + i) & cq.mask];
      }
      std::swap(cq.ring, ring);
      std::swap(cq.times, times);
      cq.mask = size - 1;
      cq.head.store(0, std::memory_order_relaxed);
      cq.tail.store(stored, std::memory_order_relaxed);
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

namespace {

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
  qp.next_same_bit = cq.members[bit];
  cq.members[bit] = &qp;
  cq.member_next = bit + 1;
  return 0;
}

void remove_member(Cq& cq, Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  if (qp.hot_index != Qp::kNotHot) drop_hot(cq, qp.hot_index);
  // The next one may lie in its place.
  if (cq.told.qp == &qp) cq.told.qp = nullptr;
  for (Qp** link = &cq.members[qp.own->cq_bit]; *link != nullptr; link = &(*link)->next_same_bit) {
    if (*link != &qp) continue;
    *link = qp.next_same_bit;
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
  cq.hot[i].qp->hot_index = Qp::kNotHot;
  cq.hot[i].qp->announced = 0;
  cq.hot[i].qp->own->attention.store(kDoorbell, std::memory_order_release);
  if (i != last) {
    cq.hot[i].take(cq.hot[last]);
    cq.hot[i].qp->hot_index = i;
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
    const std::uint64_t brought = hot.qp->rq_head.load(std::memory_order_relaxed);
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
  if (qp.hot_index != Qp::kNotHot || qp.rx_ring == nullptr) return;
  if (++qp.announced < kHeatAfter) return;
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
  hot.seen = qp.rq_head.load(std::memory_order_relaxed);
  point_at_next(hot);
  qp.hot_index = i;
  cq.hot_count.store(i + 1, std::memory_order_release);
  qp.own->attention.store(kPolled, std::memory_order_release);
}

namespace {

/// Says of a process once that it broke the rules, and what ends by that.
void say_lie(const Qp& qp) noexcept {
  const Peer* met = qp.met.load(std::memory_order_acquire);
  if (met == nullptr || !culprits.first_word_of(met->pid)) return;
  const int pid = static_cast<int>(met->pid);
  if (qp.lane.is_unheard)
    log_warn(
        "shm: process %d broke the rules of the shared memory: what one of its queue pairs, and "
        "any other that does so, sent to 0x%06x is lost",
        pid, qp.lane.face->own->qpn);
  else
    log_warn(
        "shm: process %d broke the rules of the shared memory: QP 0x%06x, and any other "
        "connection that it does so to, ends in the error state",
        pid, qp.own->qpn);
}

struct Break {
  bool is_broken;
  bool ends_alone;  ///< no other queue pair with it
  bool lied;
};

/// Under the lock under which they are written, maybe just now by another thread that polls.
Break take_break(Qp& qp) noexcept {
  LockGuard<BiasedLock> polling(qp.recv_cq->lock);
  return {std::exchange(qp.broken, false),
          qp.lane.face == nullptr || is_xrc_lane(qp) || qp.lane.is_unheard, qp.lied};
}

void break_marked_qps(const Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    if (qp->recv_cq != &cq) continue;
    const Break seen = take_break(*qp);
    if (!seen.is_broken) continue;
    Qp& known = seen.ends_alone ? *qp : *qp->lane.face;
    SendLock lock(known);
    if (seen.lied) say_lie(*qp);
    enter_error(known);
    flush_sends(known);
  }
}

}  // namespace

void settle_marks(Cq& cq) noexcept {
  std::uint8_t marks;
  {
    LockGuard<BiasedLock> lock(cq.lock);
    marks = cq.marks;
    cq.marks &= Cq::kTurns;
  }
  if ((marks & Cq::kAsked) != 0) serve_requests_by_poll(cq);
  if ((marks & (Cq::kBroken | Cq::kUnsaid)) == 0) return;
  if ((marks & Cq::kBroken) != 0) break_marked_qps(cq);
  say_failures();
}

}  // namespace verbatim::shm
