// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/arrival.hpp"

#include "providers/shm/queues/hot_ring.hpp"

#include <algorithm>

namespace verbatim::shm {
namespace {

/// More than a sender has reason to make in a row.
constexpr int kMostMoves = 64;

/// Goes on where the slot says. False: that is nowhere.
bool follow(const Qp& qp, Arrival& at, const Slot& slot) noexcept {
  const std::uint64_t line = load_relaxed(slot.large.length);
  const std::uint64_t place = load_relaxed(slot.large.offset);
  const std::uint32_t log = extent::log(place);
  if (line - at.line - 1 >= std::uint64_t{1} << at.log || log < kFirstRingLog || log > kMostRingLog)
    return false;
  const Slot* const ring = qp.in.peer->segment.at<Slot>(extent::offset(place), sizeof(Slot) << log);
  if (ring == nullptr) return false;
  at.ring = ring;
  at.log = log;
  at.line = line;
  return true;
}

}  // namespace

Arrival next_arrival(const Qp& qp) noexcept {
  return {qp.in.ring, qp.in.log, qp.in.line, qp.in.head.load(std::memory_order_relaxed)};
}

const Slot* find_arrival(const Qp& qp, Arrival& at, std::uint64_t& h) noexcept {
  if (qp.in.pack.has(at.index)) {
    h = qp.in.pack.header();
    return &kKeptOther;
  }
  for (int moves = 0;; ++moves) {
    const Slot& slot = at.ring[at.line & ((std::uint64_t{1} << at.log) - 1)];
    h = slot.header.load(std::memory_order_acquire);
    if (header::lap(h) != header::lap_of(at.line, at.log)) return nullptr;
    if (header::kind(h) != SlotKind::kMoved || moves == kMostMoves || !follow(qp, at, slot))
      return &slot;
  }
}

void pass_arrival(const Qp& qp, Arrival& at, const Slot& slot, std::uint64_t h) noexcept {
  if (qp.in.pack.has(at.index)) {
    ++at.index;
    return;
  }
  std::uint64_t lines = 1;
  if (header::kind(h) == SlotKind::kLines)
    lines = lines_of(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(load_relaxed(slot.large.length), kMostInLines)));
  at.line += lines;
  at.index +=
      header::kind(h) == SlotKind::kPack && has_packs(qp) ? std::max(messages_in(h), 1u) : 1;
}

const Slot* find_next_message(Qp& qp, std::uint64_t& h) noexcept {
  Arrival at = next_arrival(qp);
  const Slot* const slot = find_arrival(qp, at, h);
  if (at.line != qp.in.line) {
    qp.in.ring = at.ring;
    qp.in.log = static_cast<std::uint8_t>(at.log);
    qp.in.line = at.line;
    // What a poll looks at without a lock: from here on its sender may use the ring anew.
    if (qp.in.hot_index != Responder::kNotHot) point_at_next(qp.recv_cq->hot[qp.in.hot_index]);
    qp.own->lines_taken.store(at.line, std::memory_order_release);
  }
  return slot;
}

bool is_produced(const Qp& qp, const Slot& slot) noexcept {
  // As in pull_stream().
  const std::uint64_t placed_from = __atomic_load_n(&slot.large.placed_from, __ATOMIC_ACQUIRE);
  const std::uint64_t produced = qp.in.remote->stream_produced.load(std::memory_order_acquire);
  return produced - load_relaxed(slot.large.offset) >=
         std::min(placed_from, load_relaxed(slot.large.length));
}

}  // namespace verbatim::shm
