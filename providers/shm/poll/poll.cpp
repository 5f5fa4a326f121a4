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

#include "providers/shm/poll/look_ahead.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/receive/receive.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "runtime/sync/pause.hpp"

namespace verbatim::shm {
namespace {

/// So many completions one connection gives before the next that has announced something.
constexpr int kVisit = 32;

/// Every second turn is that of the stored completions; the others are that of the doorbells, and
/// of each hot ring.
constexpr std::uint32_t kTurnsInARound = 2 * (1 + kHotRings);

/// One look at the doorbells, from cq.next_bit on and round. What it does not come to is announced
/// as before.
class Sweep {
 public:
  using Rung = DoorbellBlock::Rung;

  Sweep(Cq& cq, int room, ibv_wc* wc) noexcept : cq_(cq), room_(room), wc_(wc) {}

  int run() noexcept {
    DoorbellBlock& bells = *cq_.doorbells;
    for (std::uint32_t i = 0; i != cq_.gathering.pauses; ++i) cpu_pause();
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
  /// Where many ring a look is put off a little, so that it finds as many as one such wait is worth;
  /// where it finds few however long it is put off, they are few, and none is for a while.
  void learn_to_gather() noexcept {
    constexpr int kFew = 8;
    constexpr std::uint32_t kMostPauses = 32;
    constexpr std::uint32_t kLooksAtOnce = 1000;
    Cq::Gathering& gathering = cq_.gathering;
    if (gathering.looks_at_once != 0) {
      --gathering.looks_at_once;
    } else if (got_ <= 1) {
      gathering.pauses = 0;
    } else if (got_ > 2 * kFew) {
      gathering.pauses -= (gathering.pauses + 3) / 4;
    } else if (got_ < kFew && got_ != room_) {
      gathering.pauses += 2;
      if (gathering.pauses > kMostPauses) gathering = {0, kLooksAtOnce};
    }
  }

  static Rung part_of(const Rung& rung, std::uint64_t which) noexcept {
    return {rung.bits & which, rung.many & which};
  }

  /// Returns those that there was no room for.
  Rung visit(std::uint32_t group, Rung rung) noexcept {
    LookAhead ahead(cq_, group, rung.bits);
    std::uint64_t& bits = rung.bits;
    for (; bits != 0 && got_ != room_; bits &= bits - 1) {
      ahead.step();
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
    if (taken != 0) ask_for_next_receive(qp);
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
