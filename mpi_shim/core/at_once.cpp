// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/at_once.hpp"

#include <cstring>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/sharing.hpp"

namespace vmpi {
namespace {

constexpr std::uint64_t kShort = RingSlot::kInline - sizeof(Head);
/// Looks at the ring before the receive is posted, some microseconds, and between two looks at all
/// else.
constexpr std::uint32_t kLooks = 2048;
/// Of ranks that share processors: some times what an answer takes of who has one.
constexpr std::uint32_t kLooksBeforeYield = 512;
constexpr std::uint32_t kLooksBetween = 16;

/// REQUIRES: bytes <= kShort.
[[gnu::always_inline]] inline void copy_short(unsigned char* to, const unsigned char* from,
                                              std::uint64_t bytes) noexcept {
  if (bytes == 8) [[likely]]
    __builtin_memcpy(to, from, 8);
  else if (bytes != 0)  // of nothing the program's pointer may be null
    std::memcpy(to, from, bytes);
}

/// The message is the one that the receive waits for, and has room there.
[[gnu::always_inline]] inline bool take_own(Request& receive, Peer& peer,
                                            const unsigned char* message, std::size_t bytes,
                                            const Envelope& wanted,
                                            std::uint64_t capacity) noexcept {
  Head head;
  if (bytes < sizeof head || bytes - sizeof head > capacity) return false;
  std::memcpy(&head, message, sizeof head);
  if (head.kind != MessageKind::kEager || head.context != wanted.context ||
      head.source != wanted.source || head.tag != wanted.tag)
    return false;
  const std::uint64_t length = bytes - sizeof head;
  copy_short(first_byte(*receive.type, receive.buffer), message + sizeof head, length);
  peer.in->reader.take();
  add_credits(peer, head.credits);
  ++peer.heard;
  talked_to = &peer;
  give_credit_back(peer);
  receive.source = wanted.source;
  receive.received_tag = wanted.tag;
  receive.bytes = length;
  return true;
}

}  // namespace

namespace {

/// What receives that are posted wait for. What they do not is left, for the next ones.
void give_to_posted(InRing& ring) noexcept {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce && ring.is_live && matching.has_receives(); ++i) {
    const unsigned char* message = nullptr;
    std::size_t bytes = 0;
    Head head;
    if (ring.reader.next(message, bytes) != RingReader::Found::kMessage || bytes < sizeof head)
      return;
    std::memcpy(&head, message, sizeof head);
    if (head.kind != MessageKind::kEager ||
        !matching.has_receive_for({head.context, head.source, head.tag}))
      return;
    take_message(*ring.peer, message, bytes);
    ring.reader.take();
  }
}

}  // namespace

bool send_at_once(const Request& send) noexcept {
  if (send.peer < 0 || !send.type->is_contiguous) return false;
  Peer* const peer = known_peer(send.comm->peers().world_rank(send.peer));
  const auto length = static_cast<std::uint64_t>(send.count * send.type->size);
  if (peer == nullptr || peer->out == nullptr || length > kShort || peer->credits == 0 ||
      send.mode == SendMode::kSynchronous || send.mode == SendMode::kBuffered || peer->has_work() ||
      peer->is_dead || !peer->invitations.empty())
    return false;
  unsigned char* const out = peer->out->reserve(sizeof(Head) + length);
  if (out == nullptr) return false;
  const Head head = {MessageKind::kEager, 0,       peer->owed, context_of(*send.comm, send.plane),
                     send.comm->rank(),   send.tag};
  peer->owed = 0;
  std::memcpy(out, &head, sizeof head);
  copy_short(out + sizeof head, first_byte(*send.type, send.buffer), length);
  peer->out->publish(sizeof head + length);
  --peer->credits;
  ++peer->sent;
  // In a row the next lines are asked for; not where an answer comes first, whose sender waits at
  // the next one.
  if (peer->heard == peer->heard_when_sent)
    peer->out->prefetch();
  else
    peer->heard_when_sent = peer->heard;
  return true;
}

bool receive_at_once(Request& receive, Looks wanted_looks) noexcept {
  const Envelope wanted = envelope_of(receive);
  if (receive.peer < 0 || receive.tag < 0 || !receive.type->is_contiguous) return false;
  Peer* const peer = known_peer(receive.comm->peers().world_rank(receive.peer));
  const auto capacity = static_cast<std::uint64_t>(receive.count * receive.type->size);
  if (peer == nullptr || peer->in == nullptr || capacity > kEagerBytes) return false;
  InRing& ring = *peer->in;
  if (wanted_looks == Looks::kOne) give_to_posted(ring);
  // Whoever else has the library's lock might post receives meanwhile.
  const std::uint32_t looks = wanted_looks == Looks::kOne || big_lock.is_needed() ? 1
                              : waiting == Waiting::kShare ? kLooksBeforeYield
                                                           : kLooks;
  for (std::uint32_t look = 1; ring.is_live && matching.is_free_for(wanted); ++look) {
    const unsigned char* message = nullptr;
    std::size_t bytes = 0;
    RingReader::Found found = RingReader::Found::kNothing;
    do found = ring.reader.next(message, bytes);
    while (found == RingReader::Found::kNothing && look < looks && look++ % kLooksBetween != 0);
    if (found == RingReader::Found::kMessage) {
      if (!take_own(receive, *peer, message, bytes, wanted, capacity)) return false;
      receive.kind = Request::Kind::kReceive;
      receive.error = MPI_SUCCESS;
      return true;
    }
    if (found == RingReader::Found::kNonsense || look >= looks) return false;
    (void)progress_beside(&ring);
  }
  return false;
}

}  // namespace vmpi
