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
  Sweep(Cq& cq, int room, ibv_wc* wc) noexcept : cq_(cq), room_(room), wc_(wc) {}

  int run() noexcept {
    DoorbellBlock& bells = *cq_.doorbells;
    if (are_requests_rung()) cq_.marks |= Cq::kAsked;
    const std::uint32_t first = cq_.next_bit / 64;
    const std::uint64_t before_next = (std::uint64_t{1} << cq_.next_bit % 64) - 1;
    // Bit 0 is the group in which the look begins.
    std::uint64_t groups =
        std::rotr(bells.summary.exchange(0, std::memory_order_seq_cst), static_cast<int>(first));
    std::uint64_t behind = 0;  // of the first group, what the look comes to last
    while (groups != 0 && got_ != room_) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      const std::uint32_t group = (first + at) % 64;
      std::uint64_t bits = bells.words[group].exchange(0, std::memory_order_seq_cst);
      if (at == 0) behind = bits & before_next;
      put_back(group, visit(group, at == 0 ? bits & ~before_next : bits));
    }
    behind = visit(first, behind);
    put_back(first, behind);
    if (groups != 0)
      bells.summary.fetch_or(std::rotl(groups, static_cast<int>(first)), std::memory_order_seq_cst);
    return got_;
  }

 private:
  /// Returns the bits that there was no room for.
  std::uint64_t visit(std::uint32_t group, std::uint64_t bits) noexcept {
    for (; bits != 0 && got_ != room_; bits &= bits - 1) {
      const std::uint32_t bit = group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      bool again = false;
      for (Qp* qp = bit < cq_.member_capacity ? cq_.members[bit] : nullptr; qp != nullptr;
           qp = qp->in.next_same_bit)
        again |= take(*qp);
      if (again) cq_.doorbells->ring(bit);
      cq_.next_bit = (bit + 1) % DoorbellBlock::kBits;
    }
    return bits;
  }

  /// True: there is more.
  bool take(Qp& qp) noexcept {
    if (qp.in.hot_index != Responder::kNotHot) {
      // Its messages are polled; what it announces here are flushes.
      if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return false;
      drop_hot(cq_, qp.in.hot_index);
    }
    const bool tells = is_armed_for(qp);
    bool more;
    const int most = std::min(room_ - got_, kVisit);
    const int taken = take_all(qp, most, wc_ + got_, more);
    // Whoever takes it from an armed queue makes the event that it owes: its sender's word to who
    // sleeps may come too late to find it.
    if (taken != 0 && (tells || has_failed(taken)) && !was_told(qp))
      tell_announced_locked(cq_, true);
    if (taken < most) forget_told_ahead(cq_, qp);
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
  void put_back(std::uint32_t group, std::uint64_t bits) noexcept {
    if (bits == 0) return;
    cq_.doorbells->words[group].fetch_or(bits, std::memory_order_seq_cst);
    cq_.doorbells->summary.fetch_or(std::uint64_t{1} << group, std::memory_order_seq_cst);
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
