// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/message_ring.hpp"

#include <cstdlib>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/meet.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// So many lines are looked through at once.
constexpr std::uint64_t kLookedAhead = 16;

std::size_t bytes_of(std::uint32_t log) noexcept { return sizeof(Slot) << log; }

/// A waiting receiver takes what stands there for no message.
void clear_header(MessageRing& ring, std::uint64_t line) noexcept {
  std::atomic<std::uint64_t>& header = ring.slots[line & ring.mask].header;
  const std::uint32_t lap = ring.lap_of(line) & 0xffff;
  if (header::lap(header.load(std::memory_order_relaxed)) == lap)
    header.store(header::place(lap ^ 0x8000, 0), std::memory_order_relaxed);
}

/// Has the receiver go on with line `to`, in the ring at `place`. The line for it is there.
void publish_move(MessageRing& ring, std::uint64_t to, std::uint64_t place) noexcept {
  Slot& slot = ring.slot();
  slot.large = {to, place, 0};
  slot.header.store(header::make(ring.lap(), SlotKind::kMoved, 0, 0, 0), std::memory_order_release);
}

void look_at_taken(Qp& qp) noexcept {
  MessageRing& ring = qp.out.ring;
  const std::uint64_t taken = qp.link.remote->lines_taken.load(std::memory_order_acquire);
  // The peer's word: never believe more than was written, nor a step back.
  if (taken - ring.taken <= ring.next - ring.taken) ring.taken = taken;
}

/// Gives back the rings that the peer has left.
void release_left(Qp& qp, OwnSegment& segment) noexcept {
  MessageRing& ring = qp.out.ring;
  std::uint32_t left = 0;
  for (; left < ring.old_count && ring.old[left].end <= ring.taken; ++left)
    segment.release(extent::offset(ring.old[left].place),
                    bytes_of(extent::log(ring.old[left].place)));
  if (left == 0) return;
  ring.old_count -= left;
  for (std::uint32_t i = 0; i < ring.old_count; ++i) ring.old[i] = ring.old[left + i];
  const std::uint64_t now = extent::make(segment.offset_of(ring.slots), ring.log);
  qp.own->ring.store(ring.old_count != 0 ? ring.old[0].place : now, std::memory_order_release);
}

/// From so many lines on they are out of the first level caches, where two that take turns at them
/// are fastest: a ring grows further only when nobody empties it.
bool is_being_emptied(MessageRing& ring) noexcept {
  constexpr std::uint32_t kNearLog = 9;
  constexpr std::uint64_t kIdleNs = 10'000;
  if (ring.log < kNearLog) return false;
  const std::uint64_t now = now_ns();
  if (ring.taken == ring.taken_then && ring.full_since != 0) return now - ring.full_since < kIdleNs;
  ring.full_since = now;
  ring.taken_then = ring.taken;
  return true;
}

bool has_room_for_old(MessageRing& ring) noexcept {
  if (ring.old_count != ring.old_capacity) return true;
  if (ring.old_count == MessageRing::kMostOld) return false;
  const std::uint32_t capacity = ring.old_capacity == 0 ? 2 : MessageRing::kMostOld;
  auto* const more =
      static_cast<MessageRing::Old*>(std::realloc(ring.old, capacity * sizeof(MessageRing::Old)));
  if (more == nullptr) return false;
  ring.old = more;
  ring.old_capacity = capacity;
  return true;
}

/// Goes on in another ring. False: there is no memory for one.
bool move_to_ring_of(Qp& qp, std::uint32_t log) noexcept {
  MessageRing& ring = qp.out.ring;
  OwnSegment& segment = Process::get().segment();
  if (log > kMostRingLog || !has_room_for_old(ring)) return false;
  const std::uint64_t offset = segment.allocate(bytes_of(log));
  if (offset == 0) return false;
  const std::uint64_t next = ring.next + 1;
  const MessageRing before = ring;
  ring.slots = segment.at<Slot>(offset);
  ring.log = log;
  ring.mask = (std::uint64_t{1} << log) - 1;
  ring.next = ring.limit = ring.begin = next;
  // It is all zeros, which is what one lap in 65536 looks like.
  ring.mixed = next;
  clear_header(ring, next);
  ring.old[ring.old_count++] = {extent::make(segment.offset_of(before.slots), before.log), next};
  MessageRing left = before;
  publish_move(left, next, extent::make(offset, log));
  note_spare(qp);
  return true;
}

}  // namespace

bool look_for_lines(Qp& qp, std::uint32_t lines) noexcept {
  MessageRing& ring = qp.out.ring;
  ring.quiet_looks = 0;
  look_at_taken(qp);
  if (ring.old_count != 0) release_left(qp, Process::get().segment());
  const std::uint64_t size = ring.mask + 1;
  const std::uint64_t to_end = size - (ring.next & ring.mask);
  const std::uint64_t first = lines > to_end ? ring.next + to_end : ring.next;
  // A line stays free for the word that the ring is left.
  const std::uint64_t end = (ring.taken > ring.begin ? ring.taken : ring.begin) + size - 1;
  if (first + lines > end) return false;
  std::uint64_t limit = end;
  if (ring.mixed + size > ring.next) {
    limit = first + lines + kLookedAhead < end ? first + lines + kLookedAhead : end;
    // The first was looked at when the message before it was written.
    for (std::uint64_t line = ring.next + 1; line <= limit; ++line) clear_header(ring, line);
  }
  ring.limit = limit;
  if (first != ring.next) {
    publish_move(ring, first,
                 extent::make(Process::get().segment().offset_of(ring.slots), ring.log));
    ring.next = ring.mixed = first;
  }
  return true;
}

Lines make_lines(Qp& qp, std::uint32_t lines) noexcept {
  if (look_for_lines(qp, lines)) return Lines::kThere;
  if (is_being_emptied(qp.out.ring)) return Lines::kSoon;
  std::uint32_t log = qp.out.ring.log + 1;
  while ((std::uint32_t{1} << log) < 2 * lines) ++log;
  return move_to_ring_of(qp, log) && look_for_lines(qp, lines) ? Lines::kThere : Lines::kNone;
}

bool make_ring(Qp& qp) noexcept {
  MessageRing& ring = qp.out.ring;
  if (ring.slots != nullptr) return true;
  OwnSegment& segment = Process::get().segment();
  const std::uint64_t offset = segment.allocate(bytes_of(kFirstRingLog), qp.out.has_reserved_ring);
  if (offset == 0) return false;
  qp.out.has_reserved_ring = false;
  ring.slots = segment.at<Slot>(offset);
  ring.log = kFirstRingLog;
  ring.mask = (std::uint64_t{1} << kFirstRingLog) - 1;
  qp.own->ring.store(extent::make(offset, kFirstRingLog), std::memory_order_release);
  return true;
}

bool reserve_ring(Qp& qp) noexcept {
  if (qp.datagrams != nullptr || qp.out.ring.slots != nullptr || qp.out.has_reserved_ring)
    return true;
  qp.out.has_reserved_ring = Process::get().segment().reserve(bytes_of(kFirstRingLog));
  return qp.out.has_reserved_ring;
}

void give_ring_back(Qp& qp, OwnSegment& segment) noexcept {
  MessageRing& ring = qp.out.ring;
  if (qp.out.has_reserved_ring) segment.give_up(bytes_of(kFirstRingLog));
  if (ring.slots != nullptr) segment.release(segment.offset_of(ring.slots), bytes_of(ring.log));
  for (std::uint32_t i = 0; i < ring.old_count; ++i)
    segment.release(extent::offset(ring.old[i].place), bytes_of(extent::log(ring.old[i].place)));
}

void forget_ring(Qp& qp) noexcept {
  std::free(qp.out.ring.old);
  qp.out.ring = {};
  qp.out.has_reserved_ring = false;
}

bool trim_ring(Qp& qp) noexcept {
  constexpr std::uint8_t kQuietLooks = 8;
  MessageRing& ring = qp.out.ring;
  if (ring.slots == nullptr || qp.link.remote == nullptr) return true;
  look_at_taken(qp);
  if (ring.old_count != 0) release_left(qp, Process::get().segment());
  if (ring.log == kFirstRingLog) return ring.old_count == 0;
  // Whoever writes goes by look_for_lines() first.
  ring.limit = ring.next;
  const bool is_empty = ring.taken == ring.next && ring.old_count == 0 && qp.queued() == 0 &&
                        !qp.sq.progress.streaming;
  if (++ring.quiet_looks < kQuietLooks || !is_empty) return false;
  ring.quiet_looks = 0;
  // Its service thread leaves the larger one when nobody polls there.
  if (move_to_ring_of(qp, kFirstRingLog)) wake_service_of_peer(qp);
  return false;
}

}  // namespace verbatim::shm
