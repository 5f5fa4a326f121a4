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
#include "runtime/sync/prefetch.hpp"
#include "runtime/time/clock.hpp"

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
    CqDoorbells& bells = *cq_.doorbells;
    for (std::uint32_t i = cq_.gathering.pauses(); i != 0; --i) cpu_pause();
    const std::uint32_t first = cq_.next_bit / 64;
    const std::uint64_t before_next = (std::uint64_t{1} << cq_.next_bit % 64) - 1;
    // That line is asked for together with the one of the groups.
    prefetch_to_write(&bells.bells[first * 64]);
    const std::uint64_t rung = bells.take_groups();
    // Behind it: who asks for something rings for that first.
    if (are_requests_rung()) cq_.marks |= Cq::kAsked;
    std::uint64_t behind = 0;  // of the first group, what the look comes to last
    // Bit 0 is the group in which the look begins.
    constexpr std::uint32_t kGroups = CqDoorbells::kGroups;
    std::uint64_t groups =
        (rung >> first | rung << (kGroups - first)) & ((std::uint64_t{1} << kGroups) - 1);
    while (groups != 0 && got_ != room_) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      if (at == 0)
        behind = visit(first, ~before_next) & before_next;
      else
        (void)visit((first + at) % kGroups, ~std::uint64_t{0});
    }
    if (behind != 0) (void)visit(first, before_next);
    for (; groups != 0; groups &= groups - 1)
      leave((first + static_cast<std::uint32_t>(std::countr_zero(groups))) % kGroups);
    if (cq_.gathering.note(static_cast<std::uint32_t>(got_), got_ == room_)) [[unlikely]]
      cq_.gathering.judge(now_ns());
    return got_;
  }
  /// A queue pair had more than one visit takes.
  bool leaves_some() const noexcept { return leaves_some_; }

 private:
  static constexpr std::uint32_t kInGroup = 64;
  static constexpr std::uint32_t kWords = CqDoorbells::kWordsPerGroup;

  /// There was no room for what this group says.
  void leave(std::uint32_t group) noexcept {
    cq_.doorbells->show(group);
    cq_.doorbells->show_any();
  }

  /// Those of a group that `which` has the bits of. Returns a bit at least in each word of the others
  /// that are rung.
  std::uint64_t visit(std::uint32_t group, std::uint64_t which) noexcept {
    prefetch_to_write(&cq_.doorbells->bells[group * kInGroup]);
    std::uint64_t words[kWords];
    std::uint64_t others = 0;
    std::uint32_t i = 0;
    do {
      // No more than there is room for, but for those of one word. A bell may lead to nothing, so
      // there may be room for more of them then. Each word is taken once.
      std::uint64_t bits = 0;
      for (; i != kWords && std::popcount(bits) < room_ - got_; ++i)
        bits |= take_word(group, i, which, words[i], others);
      give_back(group, visit_each(group, bits, words), words);
    } while (i != kWords && got_ != room_);
    for (; i != kWords; ++i) {
      const std::uint64_t bits =
          std::uint64_t{CqDoorbells::rung_of(cq_.doorbells->look(group * kWords + i))}
          << i * CqDoorbells::kPerWord;
      if ((bits & which) != 0) leave(group);
      others |= bits & ~which;
    }
    return others;
  }

  /// Takes those of a word that `which` has the bits of, and notes which others are rung. Returns the
  /// bits of what it took.
  std::uint64_t take_word(std::uint32_t group, std::uint32_t i, std::uint64_t which,
                          std::uint64_t& taken, std::uint64_t& others) noexcept {
    CqDoorbells& bells = *cq_.doorbells;
    const std::uint32_t word = group * kWords + i;
    const std::uint32_t shift = i * CqDoorbells::kPerWord;
    const auto wanted = static_cast<std::uint32_t>(which >> shift & 0xff);
    std::uint64_t rung = bells.look(word);
    if (rung == 0) return 0;
    std::uint32_t bits = 0;
    if (wanted != 0) {
      rung = taken = bells.take(word);
      bits = CqDoorbells::rung_of(rung) & wanted;
      rung = CqDoorbells::part_of(rung, CqDoorbells::rung_of(rung) & ~wanted);
      bells.put_back(word, rung);
    }
    others |= std::uint64_t{CqDoorbells::rung_of(rung) & ~wanted} << shift;
    return std::uint64_t{bits} << shift;
  }

  /// For these there was no room.
  void give_back(std::uint32_t group, std::uint64_t bits, const std::uint64_t* words) noexcept {
    if (bits != 0) leave(group);
    for (; bits != 0; bits &= bits - 1) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(bits));
      cq_.doorbells->put_back((group * kInGroup + at) / CqDoorbells::kPerWord,
                              CqDoorbells::part_of(words[at / CqDoorbells::kPerWord],
                                                   1u << at % CqDoorbells::kPerWord));
    }
  }

  /// Returns those that there was no room for.
  std::uint64_t visit_each(std::uint32_t group, std::uint64_t bits,
                           const std::uint64_t* words) noexcept {
    if (bits == 0) return 0;
    LookAhead ahead(cq_, group, bits);
    std::uint32_t at = 0;
    for (; bits != 0 && got_ != room_; bits &= bits - 1) {
      Qp* qp = ahead.step();
      at = static_cast<std::uint32_t>(std::countr_zero(bits));
      // One that several ring says nothing of any.
      const std::uint8_t bell =
          qp == nullptr || qp->in.shares_bell
              ? bell::kAll
              : CqDoorbells::bell_of(words[at / CqDoorbells::kPerWord], at % CqDoorbells::kPerWord);
      bool again = false;
      for (; qp != nullptr; qp = qp->in.next_at_bell()) again |= take(*qp, bell);
      if (again) {
        cq_.doorbells->ring(group * kInGroup + at);
        leaves_some_ = true;
      }
    }
    cq_.next_bit = (group * kInGroup + at + 1) % CqDoorbells::kBells;
    return bits;
  }

  /// What the bell says is there. Behind it nobody looks: the sender may be about to write there,
  /// and rings when it has. `is_dry`: a look found nothing more.
  int take_rung(Qp& qp, std::uint8_t bell, int most, bool& more, bool& is_dry) noexcept {
    int taken = 0;
    more = false;
    if (bell::names_line(bell)) {
      const std::uint32_t behind = bell::lines_behind(bell, qp.in.line);
      taken = take_first(qp, most, wc_ + got_, more);
      is_dry = taken == 0;
      // What has been taken by an earlier ring leaves none. The first may have had several lines, or
      // be one of several in its line.
      const bool has_end = behind <= 1 || bell::lines_behind(bell, qp.in.line) == 0;
      if (more || (has_end && !qp.in.has_kept())) return taken;
      if (taken == most) {
        more = true;
        return taken;
      }
    }
    const int rest = take_all(qp, most - taken, wc_ + got_ + taken, more);
    is_dry = rest < most - taken;
    return taken + rest;
  }

  /// True: there is more.
  bool take(Qp& qp, std::uint8_t bell) noexcept {
    if (qp.in.hot_index != Responder::kNotHot) {
      // Its messages are polled; what it announces here are flushes.
      if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return false;
      drop_hot(cq_, qp.in.hot_index);
    }
    const bool tells = is_armed_for(qp);
    bool more;
    bool is_dry;
    const int most = std::min(room_ - got_, kVisit);
    const int taken = take_rung(qp, bell, most, more, is_dry);
    // Whoever takes it from an armed queue makes the event that it owes: its sender's word to who
    // sleeps may come too late to find it.
    if (taken != 0 && (tells || has_failed(taken)) && !was_told(qp))
      tell_announced_locked(cq_, true);
    if (is_dry) forget_told_ahead(cq_, qp);
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
  bool leaves_some_ = false;
};

/// More than one place has something.
bool others_wait(const Cq& cq) noexcept {
  int places = cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed);
  places += cq.doorbells->is_any_rung();
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
  const bool rung = cq.doorbells->is_any_rung();
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
  for (;;) {
    Sweep sweep(cq, room - got, wc + got);
    const int came = sweep.run();
    got += came;
    // Those who have rung since are left to the next poll, which finds more of them.
    if (came == 0 || got == room || !sweep.leaves_some()) return got;
  }
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
