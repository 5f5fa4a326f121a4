// SPDX-License-Identifier: BSD-2-Clause
//
// What a poll does beside the shortest way: a look at the doorbells, and turns of the places.
//
// A place's turn is one completion, or a few where a program takes many at a time. Stored ones have
// every second turn, since programs post sends for what they receive, and need to hear of those. So
// where completions are taken singly, what comes first at its place waits behind
// kTurn + kTurnsInARound that came later, and what has others before it there, behind
// kTurnsInARound for each of these.
#include <algorithm>
#include <bit>

#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/receive/receive.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/prefetch.hpp"

namespace verbatim::shm {
namespace {

/// So many completions one connection gives before the next that has announced something.
constexpr int kVisit = 32;

/// Every second turn is that of the stored completions; the others are that of the doorbells, and
/// of each hot ring.
constexpr std::uint32_t kTurnsInARound = 2 * (1 + kHotRings);

/// So many visits before a queue pair's own its lines are asked for, those of its message, and
/// those of the receive that this will use up.
constexpr int kFirstAhead = 6;
constexpr int kSecondAhead = 4;
constexpr int kThirdAhead = 2;

/// What is asked for early is read early too, by no lock but the queue's: it may be late, and only
/// says what to ask for.
#ifdef VBT_SEES_RACES
constexpr bool kSeesRaces = true;
#else
constexpr bool kSeesRaces = false;
#endif

/// Goes through a group's doorbells ahead of whoever visits them.
class Ahead {
 public:
  Ahead(const Cq& cq, std::uint32_t group, std::uint64_t bits) noexcept
      // The first is visited at once.
      : cq_(cq), group_(group), bits_(bits & (bits - 1)) {}

  template <class Ask>
  void next(Ask ask) noexcept {
    if (kSeesRaces || bits_ == 0) return;
    const std::uint32_t bit = group_ * 64 + static_cast<std::uint32_t>(std::countr_zero(bits_));
    bits_ &= bits_ - 1;
    if (bit < cq_.member_capacity && cq_.members[bit] != nullptr) ask(*cq_.members[bit]);
  }

 private:
  const Cq& cq_;
  const std::uint32_t group_;
  std::uint64_t bits_;
};

void ask_for_queue_pair(const Qp& qp) noexcept {
  prefetch_to_read(&qp.own);
  prefetch_to_read(&qp.lane);
  prefetch_to_read(&qp.srq);
  prefetch_to_read(&qp.in.ring);
  prefetch_to_read(&qp.in.hot_index);
  prefetch_to_read(&qp.in.head);
  prefetch_to_read(&qp.in.next_same_bit);
  prefetch_to_read(&qp.rq.tail);
  prefetch_to_read(&qp.mode);
}

void ask_for_message(const Qp& qp) noexcept {
  if (qp.in.ring == nullptr) return;
  prefetch_to_read(&qp.in.ring[qp.in.line & ((std::uint64_t{1} << qp.in.log) - 1)]);
  prefetch_to_read(&qp.in.remote->tx_session);
  prefetch_to_write(&qp.own->lines_taken);
  if (qp.srq == nullptr) return;
  prefetch_to_read(&qp.srq->lock);
  prefetch_to_read(&qp.srq->posted);
  prefetch_to_read(&qp.srq->keys);
}

void ask_for_receive(const Qp& qp) noexcept {
  const ReceiveStore& store = qp.srq != nullptr ? qp.srq->store : qp.rq.store;
  if (store.credits == nullptr) return;  // none has been posted
  const std::uint64_t oldest = qp.srq != nullptr
                                   ? qp.srq->own->taken.load(std::memory_order_relaxed)
                                   : qp.in.head.load(std::memory_order_relaxed);
  prefetch_to_read(store.sges_of(oldest));
  prefetch_to_read(&store.wr_ids[store.at(oldest)]);
  prefetch_to_read(&store.num_sge[store.at(oldest)]);
}

/// Most programs post a receive for each that they have taken.
void ask_for_next_receive(const Qp& qp) noexcept {
  const ReceiveStore& store = qp.srq != nullptr ? qp.srq->store : qp.rq.store;
  const std::uint64_t next =
      qp.srq != nullptr ? qp.srq->posted : qp.rq.tail.load(std::memory_order_relaxed);
  if (store.credits == nullptr) return;
  prefetch_to_write(&store.credits[store.at(next)]);
  prefetch_to_write(store.sges_of(next));
  prefetch_to_write(&store.wr_ids[store.at(next)]);
  prefetch_to_write(&store.num_sge[store.at(next)]);
  if (qp.lane.face == nullptr) return;
  const Qp& face = *qp.lane.face;
  prefetch_to_read(&face.plain);
  prefetch_to_read(&face.in_domain);
  prefetch_to_read(&face.srq);
  prefetch_to_write(&face.rq.lock);
  prefetch_to_read(&face.rq.store);
  prefetch_to_read(&face.mode);
}

/// One look at the doorbells, from cq.next_bit on and round. What it does not come to is announced
/// as before.
class Sweep {
 public:
  using Rung = DoorbellBlock::Rung;

  Sweep(Cq& cq, int room, ibv_wc* wc) noexcept : cq_(cq), room_(room), wc_(wc) {}

  int run() noexcept {
    DoorbellBlock& bells = *cq_.doorbells;
    for (std::uint32_t i = 0; i != cq_.gathering; ++i) cpu_pause();
    if (are_requests_rung()) cq_.marks |= Cq::kAsked;
    const std::uint32_t first = cq_.next_bit / 64;
    const std::uint64_t before_next = (std::uint64_t{1} << cq_.next_bit % 64) - 1;
    // Bit 0 is the group in which the look begins.
    std::uint64_t groups =
        std::rotr(bells.summary.exchange(0, std::memory_order_seq_cst), static_cast<int>(first));
    Rung behind = {};  // of the first group, what the look comes to last
    while (groups != 0 && got_ != room_) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      const std::uint32_t group = (first + at) % 64;
      Rung rung = bells.take(group);
      if (at == 0) behind = part_of(rung, before_next);
      bells.put_back(group, visit(group, at == 0 ? part_of(rung, ~before_next) : rung));
    }
    behind = visit(first, behind);
    bells.put_back(first, behind);
    if (groups != 0)
      bells.summary.fetch_or(std::rotl(groups, static_cast<int>(first)), std::memory_order_seq_cst);
    learn_to_gather();
    return got_;
  }

 private:
  /// A look takes the doorbells' lines away from those who ring, who wait until they have them back.
  /// Where many ring a look is put off a little, so that it finds as many as one such wait is worth.
  void learn_to_gather() noexcept {
    constexpr int kFew = 8;
    constexpr std::uint32_t kMostPauses = 16;
    std::uint32_t& pauses = cq_.gathering;
    if (got_ <= 1)
      pauses = 0;
    else if (got_ == room_ || got_ > 2 * kFew)
      pauses -= (pauses + 3) / 4;
    else if (got_ < kFew)
      pauses = std::min(pauses + 2, kMostPauses);
  }

  static Rung part_of(const Rung& rung, std::uint64_t which) noexcept {
    return {rung.bits & which, rung.many & which};
  }

  /// Returns those that there was no room for.
  Rung visit(std::uint32_t group, Rung rung) noexcept {
    // Of many that take turns nothing is in the caches: their lines are asked for some visits ahead,
    // first the queue pair, which says where the others are.
    Ahead first(cq_, group, rung.bits);
    Ahead second(cq_, group, rung.bits);
    Ahead third(cq_, group, rung.bits);
    for (int i = 0; i != kFirstAhead; ++i) first.next(ask_for_queue_pair);
    for (int i = 0; i != kSecondAhead; ++i) second.next(ask_for_message);
    for (int i = 0; i != kThirdAhead; ++i) third.next(ask_for_receive);
    std::uint64_t& bits = rung.bits;
    for (; bits != 0 && got_ != room_; bits &= bits - 1) {
      first.next(ask_for_queue_pair);
      second.next(ask_for_message);
      third.next(ask_for_receive);
      const auto at = static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::uint32_t bit = group * 64 + at;
      const bool is_one = (rung.many >> at & 1) == 0;
      bool again = false;
      for (Qp* qp = bit < cq_.member_capacity ? cq_.members[bit] : nullptr; qp != nullptr;
           qp = qp->in.next_same_bit)
        again |= take(*qp, is_one);
      if (again) cq_.doorbells->ring(bit);
      cq_.next_bit = (bit + 1) % DoorbellBlock::kBits;
    }
    return part_of(rung, bits);
  }

  /// `is_one`: that many messages at most are there that nobody will ring for. True: there is more.
  bool take(Qp& qp, bool is_one) noexcept {
    if (qp.in.hot_index != Responder::kNotHot) {
      // Its messages are polled; what it announces here are flushes.
      if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return false;
      drop_hot(cq_, qp.in.hot_index);
    }
    const bool tells = is_armed_for(qp);
    bool more;
    const int most = std::min(room_ - got_, kVisit);
    const int taken =
        is_one ? take_first(qp, most, wc_ + got_, more) : take_all(qp, most, wc_ + got_, more);
    // Whoever takes it from an armed queue makes the event that it owes: its sender's word to who
    // sleeps may come too late to find it.
    if (taken != 0 && (tells || has_failed(taken)) && !was_told(qp))
      tell_announced_locked(cq_, true);
    if (most != 0 && taken < (is_one ? 1 : most)) forget_told_ahead(cq_, qp);
    if (!kSeesRaces && taken != 0) ask_for_next_receive(qp);
    got_ += taken;
    cq_.moderation.taken += static_cast<std::uint64_t>(taken);
    if (taken != 0 || more) heat(cq_, qp);
    return more;
  }

  /// Events told of all that was taken of it.
  bool was_told(const Qp& qp) const noexcept {
    return &qp == cq_.told.qp && qp.in.head.load(std::memory_order_relaxed) <= cq_.told.until;
  }

  bool is_armed_for(Qp& qp) const noexcept {
    const std::uint32_t armed = armed_for_locked(cq_);
    return armed == CqRecord::kArmed ||
           (armed == CqRecord::kArmedSolicited && has_message(qp) && has_solicited(qp));
  }
  bool has_failed(int taken) const noexcept {
    return std::any_of(wc_ + got_, wc_ + got_ + taken,
                       [](const ibv_wc& wc) { return wc.status != IBV_WC_SUCCESS; });
  }

  Cq& cq_;
  const int room_;
  ibv_wc* const wc_;
  int got_ = 0;
};

/// More than one place has something.
bool others_wait(const Cq& cq) noexcept {
  int places = cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed);
  places += cq.doorbells->summary.load(std::memory_order_relaxed) != 0;
  for (std::uint32_t i = 0; i < cq.hot_count.load(std::memory_order_relaxed); ++i)
    places += has_message_for(cq.hot[i]);
  return places > 1;
}

int take_hot(Cq& cq, std::uint32_t i, int room, ibv_wc* wc) noexcept {
  if (i >= cq.hot_count.load(std::memory_order_relaxed)) return 0;
  bool ends = false;
  const int got = poll_ring(cq.hot[i], room, wc, true, ends);
  if (ends) drop_hot(cq, i);
  return got;
}

int take_in_turn(Cq& cq, std::uint32_t turn, int room, ibv_wc* wc) noexcept {
  if (turn % 2 != 0) return poll_stored(cq, room, wc);
  if (turn != 0) return take_hot(cq, turn / 2 - 1, room, wc);
  const bool rung = cq.doorbells->summary.load(std::memory_order_relaxed) != 0;
  return rung ? Sweep(cq, room, wc).run() : 0;
}

void end_turns(Cq& cq) noexcept {
  cq.marks &= static_cast<std::uint8_t>(~Cq::kTurns);
  cq.ahead = kTurn;
}

/// Until the turns end, or there is no room. With room left when they do.
int poll_in_turns(Cq& cq, int room, ibv_wc* wc) noexcept {
  if (cq.ahead == kTurn && !others_wait(cq)) {
    end_turns(cq);
    return 0;
  }
  const int step = 1 + room / 8;
  int got = 0;
  for (std::uint32_t idle = 0; got < room && idle != kTurnsInARound;) {
    const int most = std::min({step, room - got, int{cq.ahead}});
    const int came = take_in_turn(cq, cq.turn, most, wc + got);
    cq.turn = (cq.turn + 1) % kTurnsInARound;
    idle = came == 0 ? idle + 1 : 0;
    got += came;
    cq.ahead = static_cast<std::uint8_t>(cq.ahead - came);
    if (cq.ahead == 0 || idle == kTurnsInARound) {
      end_turns(cq);
      return got;
    }
  }
  return got;
}

}  // namespace

int poll_doorbells(Cq& cq, int room, ibv_wc* wc) noexcept {
  int got = 0;
  int came;
  do {
    came = Sweep(cq, room - got, wc + got).run();
    got += came;
  } while (came != 0 && got != room && cq.doorbells->summary.load(std::memory_order_relaxed) != 0);
  return got;
}

int poll_on(Cq& cq, int room, ibv_wc* wc, int got) noexcept {
  for (;;) {
    if ((cq.marks & Cq::kTurns) != 0) got += poll_in_turns(cq, room - got, wc + got);
    if (got == room) return got;
    const int most = std::min<int>(room - got, cq.ahead);
    int came = poll_stored(cq, most, wc + got);
    came += poll_rings(cq, most - came, wc + got + came, true);
    if (came < most) came += poll_doorbells(cq, most - came, wc + got + came);
    got += came;
    if (came < most) {
      cq.ahead = kTurn;  // nobody waits
      return got;
    }
    count_ahead(cq, came);
  }
}

}  // namespace verbatim::shm
