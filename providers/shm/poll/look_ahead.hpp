// SPDX-License-Identifier: BSD-2-Clause
//
// What a look at the doorbells will touch, asked for some visits ahead. Of many queue pairs that take
// turns nothing is in the caches: first comes the queue pair, which says where the others are, then
// its message and the number of the oldest receive, then that receive. So a thousand of them are
// polled as fast as a few.
//
// What is asked for early is read early too, by no lock but the completion queue's: it may be late,
// and only says what to ask for.
#pragma once

#include <bit>
#include <cstdint>

#include "providers/shm/poll/poll_fast.hpp"
#include "runtime/sync/prefetch.hpp"

namespace verbatim::shm {

#ifdef VBT_SEES_RACES
inline constexpr bool kAsksAhead = false;
#else
inline constexpr bool kAsksAhead = true;
#endif

inline void ask_for_queue_pair(const Qp& qp) noexcept {
  prefetch_to_read(&qp.own);
  prefetch_to_read(&qp.in.ring);
}

inline void ask_for_message(const Qp& qp) noexcept {
  if (qp.in.ring == nullptr) return;
  prefetch_to_read(&qp.in.ring[qp.in.line & ((std::uint64_t{1} << qp.in.log) - 1)]);
  prefetch_to_read(&qp.in.remote->tx_session);
  prefetch_to_write(&qp.own->lines_taken);
  if (qp.srq == nullptr) {
    prefetch_to_read(&qp.rq.tail);
    return;
  }
  prefetch_to_write(&qp.srq->lock);
  prefetch_to_read(&qp.srq->store);
  if (qp.headroom != 0) prefetch_to_read(&qp.ep);
}

/// Of receives that are shared, the number of the oldest.
inline void ask_for_count(const Qp& qp) noexcept {
  if (qp.srq != nullptr) prefetch_to_write(&qp.srq->own->taken);
}

inline void ask_for_receive(const Qp& qp) noexcept {
  const ReceiveStore& store = qp.srq != nullptr ? qp.srq->store : qp.rq.store;
  if (store.credits == nullptr) return;  // none has been posted
  const std::uint64_t oldest = qp.srq != nullptr
                                   ? qp.srq->own->taken.load(std::memory_order_relaxed)
                                   : qp.in.head.load(std::memory_order_relaxed);
  prefetch_to_read(store.sges_of(oldest));
  prefetch_to_read(&store.wr_ids[store.at(oldest)]);
}

/// Most programs post a receive for each that they have taken.
inline void ask_for_next_receive(const Qp& qp) noexcept {
  if (!kAsksAhead) return;
  const ReceiveStore& store = qp.srq != nullptr ? qp.srq->store : qp.rq.store;
  if (store.credits == nullptr) return;
  const std::uint64_t next =
      qp.srq != nullptr ? qp.srq->posted : qp.rq.tail.load(std::memory_order_relaxed);
  prefetch_to_write(&store.credits[store.at(next)]);
  prefetch_to_write(store.sges_of(next));
  prefetch_to_write(&store.wr_ids[store.at(next)]);
  if (qp.srq == nullptr) {
    prefetch_to_read(&qp.plain);
    prefetch_to_write(&qp.rq.lock);
  } else if (const Qp* const parent = qp.headroom != 0 ? qp.ep.parent : nullptr;
             parent != nullptr) {
    prefetch_to_read(&parent->plain);
    prefetch_to_read(&parent->own);
  }
}

/// Goes through the queue pairs that a group's doorbells name, and asks for what a visit needs of those
/// that come after the one that is visited.
class LookAhead {
 public:
  LookAhead(const Cq& cq, std::uint32_t group, std::uint64_t bits) noexcept
      : cq_(cq), first_bit_(group * 64), bits_(bits) {
    for (Qp*& qp : known_) qp = next();
    if (!kAsksAhead) return;
    // The first is visited at once.
    for (std::uint32_t i = 1; i != kQueuePairsAhead; ++i) ask(i, ask_for_queue_pair);
    for (std::uint32_t i = 1; i != kMessagesAhead; ++i) ask(i, ask_for_message);
    for (std::uint32_t i = 1; i != kCountsAhead; ++i) ask(i, ask_for_count);
    for (std::uint32_t i = 1; i != kReceivesAhead; ++i) ask(i, ask_for_receive);
  }

  /// The one that is visited next; nullptr: there is none any more at this doorbell.
  Qp* step() noexcept {
    Qp*& place = known_[visited_ % kQueuePairsAhead];
    Qp* const visited = place;
    place = next();
    if (kAsksAhead) {
      ask(visited_ + kQueuePairsAhead, ask_for_queue_pair);
      ask(visited_ + kMessagesAhead, ask_for_message);
      ask(visited_ + kCountsAhead, ask_for_count);
      ask(visited_ + kReceivesAhead, ask_for_receive);
    }
    ++visited_;
    return visited;
  }

 private:
  // Each finds what those before it have asked for. Farther ahead, lines are gone before their turn.
  static constexpr std::uint32_t kQueuePairsAhead = 8;
  static constexpr std::uint32_t kMessagesAhead = 5;
  static constexpr std::uint32_t kCountsAhead = 4;
  static constexpr std::uint32_t kReceivesAhead = 2;

  Qp* next() noexcept {
    if (bits_ == 0) return nullptr;
    const std::uint32_t bit = first_bit_ + static_cast<std::uint32_t>(std::countr_zero(bits_));
    bits_ &= bits_ - 1;
    return bit < cq_.member_capacity ? cq_.members[bit] : nullptr;
  }
  template <class Ask>
  void ask(std::uint32_t number, Ask what) const noexcept {
    if (const Qp* const qp = known_[number % kQueuePairsAhead]; qp != nullptr) what(*qp);
  }

  const Cq& cq_;
  const std::uint32_t first_bit_;
  std::uint64_t bits_;           ///< whose queue pairs are yet to be known
  std::uint32_t visited_ = 0;    ///< so many were
  Qp* known_[kQueuePairsAhead];  ///< those that are visited next, by their number
};

}  // namespace verbatim::shm
