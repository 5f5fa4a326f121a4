// SPDX-License-Identifier: BSD-2-Clause
//
// SENDs that do not fit a line and are done within the post all the same: straight to a receive that
// is mapped, or in several lines of the ring; and how any message is published.
#include <cstring>

#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/transfer/send_fast.hpp"

namespace verbatim::shm {
namespace {

/// A message of several lines, which are there. `h`: its header, but for place and length.
void publish_long(Slot& slot, std::uint32_t lap, std::uint32_t bytes, const unsigned char* from,
                  std::uint64_t h) noexcept {
  slot.large.length = bytes;
  std::memcpy(slot.data + Slot::kLongAt, from, bytes);
  // Publishes all lines; pairs with the load in poll_rings().
  slot.header.store(h | header::make(lap, SlotKind::kLines, 0, 0, 0), std::memory_order_release);
}

/// The same of one that lies in its receive.
void publish_placed(Slot& slot, std::uint32_t lap, std::uint32_t bytes, std::uint64_t h) noexcept {
  slot.large = {bytes, 0, 0};
  // Publishes what was placed too; pairs with the load in poll_rings().
  slot.header.store(h | header::make(lap, SlotKind::kPlaced, 0, 0, 0), std::memory_order_release);
}

/// Where the receive of the peer's own that message `index` uses up begins, if the message goes into
/// its first SGE and that is mapped. Not asked for some time after it was not.
unsigned char* mapped_receive(Qp& qp, std::uint64_t index, std::uint32_t bytes) noexcept {
  constexpr std::uint8_t kPause = 63;
  if (qp.direct.unplaced != 0) {
    --qp.direct.unplaced;
    return nullptr;
  }
  if (qp.link.receive_sges == nullptr) return nullptr;
  const ReceiveSge& sge =
      qp.link.receive_sges[(index & qp.link.remote_rq_mask) * qp.link.remote_max_sge];
  const std::uint32_t lkey = load_relaxed(sge.lkey);
  WriteTarget& target = qp.direct.receive;
  const bool is_known = lkey != 0 && lkey == target.rkey &&
                        target.serial->load(std::memory_order_acquire) == target.serial_seen;
  if ((!is_known && !find_target(qp, target, lkey, IBV_ACCESS_LOCAL_WRITE)) ||
      bytes > load_relaxed(sge.length)) [[unlikely]] {
    qp.direct.unplaced = kPause;
    return nullptr;
  }
  const std::uint64_t at = load_relaxed(sge.address) - target.iova;
  return at <= target.length && bytes <= target.length - at ? target.base + at : nullptr;
}

}  // namespace

void publish(Qp& qp, SlotKind kind, std::uint32_t flags, std::uint32_t inline_length,
             std::uint32_t immediate) noexcept {
  MessageRing& ring = qp.out.ring;
  Slot& slot = ring.slot();
  slot.header.store(header::make(ring.lap(), kind, flags, inline_length, immediate),
                    std::memory_order_release);
  if (kind == SlotKind::kLines)
    ring.mixed = ring.next += lines_of(static_cast<std::uint32_t>(slot.large.length));
  else
    ++ring.next;
  ++qp.out.sent;
  ++qp.shared.next;
  if (qp.link.remote->attention.load(std::memory_order_relaxed) != kPolled || qp.link.ring_always)
    ring_peer(qp, (flags & header::kSolicited) != 0);
}

bool put_long(Qp& qp, std::uint32_t bytes, const unsigned char* from, std::uint64_t h) noexcept {
  if (bytes > kMostPlaced) return false;
  KnownReceives& known = qp.out.known_receives;
  const Receives receives{qp.link.credits, qp.link.remote_rq_mask, qp.link.remote_rq_log};
  if (known.must_look(qp.out.sent)) known = look_ahead(receives, qp.out.sent);
  MessageRing& ring = qp.out.ring;
  if (!known.has(receives, qp.out.sent, bytes) || (!ring.has_line() && !look_for_lines(qp, 1)))
    return false;
  unsigned char* const to = bytes >= kPlacedFrom ? mapped_receive(qp, qp.out.sent, bytes) : nullptr;
  if (to == nullptr && bytes > kMostInLines) return false;
  const std::uint32_t lines = to != nullptr ? 1 : lines_of(bytes);
  if (!ring.has_lines(lines) && !look_for_lines(qp, lines)) return false;
  Slot& slot = ring.slot();
  if (to != nullptr) {
    std::memcpy(to, from, bytes);
    publish_placed(slot, ring.lap(), bytes, h);
  } else {
    publish_long(slot, ring.lap(), bytes, from, h);
    ring.mixed = ring.next + lines;
  }
  ++qp.out.sent;
  ring.next += lines;
  // As ask_for_slot().
  const std::uint64_t heard = qp.in.head.load(std::memory_order_relaxed);
  if (heard == qp.out.heard) {
    for (std::uint32_t i = 0; i < lines; ++i)
      prefetch_to_write(&ring.slots[(ring.next + i) & ring.mask]);
  } else {
    qp.out.heard = heard;
  }
  return true;
}

bool perform_long(Qp& qp, const ibv_send_wr& wr) noexcept {
  if (wr.num_sge != 1 || !is_send(wr) || qp.link.credits == nullptr) return false;
  const std::uint32_t bytes = wr.sg_list->length;
  if (bytes <= Slot::kInlineBytes || !is_ready(qp) || !qp.has_place()) return false;
  const std::uint32_t flags = wr.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u;
  const PostedPiece piece{qp, wr, *wr.sg_list, qp.max_inline, kMostPlaced, flags};
  const unsigned char* from;
  if (!piece.find(from) || !put_long(qp, bytes, from, piece.header())) return false;
  if (must_ring(qp)) [[unlikely]]
    ring_peer(qp, (wr.send_flags & IBV_SEND_SOLICITED) != 0);
  const std::uint32_t place = qp.take_places(1);
  if ((wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
    CompletionWriter(*qp.send_cq)
        .push({wr.wr_id, &qp, 0, place, IBV_WC_SEND, IBV_WC_SUCCESS, true, 0});
  qp.count_sent(bytes);
  return true;
}

bool put_shared_long(Qp& way, std::uint32_t bytes, const unsigned char* from,
                     std::uint64_t h) noexcept {
  const std::uint32_t lines = lines_of(bytes);
  MessageRing& ring = way.out.ring;
  if (!ring.has_lines(lines) && !look_for_lines(way, lines)) return false;
  publish_long(ring.slot(), ring.lap(), bytes, from, h);
  ring.mixed = ring.next += lines;
  return true;
}

}  // namespace verbatim::shm
