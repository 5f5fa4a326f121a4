// SPDX-License-Identifier: BSD-2-Clause
//
// A single small SEND to receives that are shared: of a connected queue pair to its peer's shared
// receive queue, and of UD, whose endpoints all end in one (endpoint.hpp). The rule:
// shared_receive.hpp.
#pragma once

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/ud/datagram.hpp"

namespace verbatim::shm {

/// Is the next receive posted, sound and long enough for so many bytes, as its credit says now?
/// False also when something has to be looked at again.
[[gnu::always_inline]] inline bool takes_next(const Qp& way, std::uint32_t bytes) noexcept {
  const SharedCredits& shared = way.shared;
  if (way.out.sent >= shared.unlooked) return false;
  const std::uint64_t store = shared.record->store.load(std::memory_order_acquire);
  if (store != shared.store) return false;
  const std::uint64_t credit =
      shared.credits[shared.next & shared.mask].load(std::memory_order_acquire);
  // Pairs with the store in move_receives(): the same place before and after was the right one.
  if (shared.record->store.load(std::memory_order_acquire) != store) return false;
  const auto lap = static_cast<std::uint32_t>(shared.next >> extent::log(store)) + 1;
  // A receive with a bad key has a length below zero.
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(credit >> 32) - lap) >= 0 &&
         static_cast<std::int32_t>(credit) >= static_cast<std::int32_t>(bytes);
}

/// Puts a SEND into the ring of `way`, the queue pair or its endpoint, if the next receive is
/// posted, sound and long enough, and rings as kRings says. False: nothing was done.
template <bool kRings, class Piece>
[[gnu::always_inline]] inline bool put_shared(Qp& way, std::uint32_t bytes,
                                              const Piece& piece) noexcept {
  if (must_ring(way) != kRings) return false;
  if (!way.out.ring.has_line()) [[unlikely]]
    return false;
  const std::uint32_t with_header = bytes + piece.qp.headroom;
  if (!(kRings ? takes_next_in_turn(way, with_header) : takes_next(way, with_header))) return false;
  const unsigned char* from;
  if (!piece.find(from)) return false;
  MessageRing& ring = way.out.ring;
  Slot& slot = ring.slot();
  if (bytes <= Slot::kInlineBytes) [[likely]] {
    copy_small(slot.data, from, bytes);
    // Publishes the slot; pairs with the load in poll_rings().
    slot.header.store(piece.header() | header::place(ring.lap(), bytes), std::memory_order_release);
    ++ring.next;
    if (kRings)
      ask_for_next_slot(way);
    else
      ask_for_slot(way, way.received->load(std::memory_order_relaxed));
  } else if (!put_shared_long(way, bytes, from, piece.header())) {
    return false;
  }
  ++way.out.sent;
  ++way.shared.next;
  // As MoveFast.
  if (must_ring(way)) [[unlikely]]
    ring_peer(way, (header::flags(piece.header()) & header::kSolicited) != 0);
  return true;
}

/// The endpoint that a datagram goes by, if it is the one used last or any is asked for, its
/// address leads to this host without a routing header, and the key is the receiver's. nullptr:
/// send_datagram_now() knows.
template <bool kAny>
[[gnu::always_inline]] inline Qp* known_endpoint(Qp& qp, const ibv_send_wr& wr) noexcept {
  Qp* const endpoint = kAny ? find_endpoint(qp, wr.wr.ud.remote_qpn) : qp.last_endpoint;
  const auto& to = wr.wr.ud;
  if (endpoint == nullptr || endpoint->link.destination_qpn != to.remote_qpn ||
      endpoint->link.destination == nullptr || qp.has_queued || qp.posts_generally ||
      qp.mode.load(std::memory_order_relaxed) != IBV_QPS_RTS || to.ah == nullptr ||
      to.ah->pd->handle != qp.pd_number || !Ah::from(to.ah).is_plain ||
      endpoint->link.remote->accepts.load(std::memory_order_acquire) !=
          endpoint->link.remote_session ||
      load_relaxed(endpoint->link.destination->qkey) != to.remote_qkey)
    return nullptr;
  return endpoint;
}

template <bool kRings>
struct MoveShared {
  Qp& way;
  const PostedPiece& piece;

  [[gnu::always_inline]] bool operator()(const OneRequest& request) const noexcept {
    return put_shared<kRings>(way, request.bytes, piece);
  }
};

/// A SEND, the only request of a list, to shared receives, if it completes with a word or without
/// as kSignaled says, and its receiver polls for it or must be told as kRings says: then it is one
/// of many. False: nothing was done.
template <bool kDomain, bool kSignaled, bool kRings>
[[gnu::always_inline]] inline bool post_one_shared(Qp& qp, const ibv_send_wr& wr) noexcept {
  const bool is_signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all;
  if (is_signaled != kSignaled || !is_send(wr) || wr.next != nullptr || wr.num_sge != 1)
    return false;
  const ibv_sge& sge = *wr.sg_list;
  if (sge.length > kMostInLines) return false;
  Qp* const way = qp.headroom != 0 ? known_endpoint<kRings>(qp, wr) : is_ready(qp) ? &qp : nullptr;
  if (way == nullptr) return false;
  const PostedPiece piece{
      qp,           wr,
      sge,          qp.max_inline > Slot::kInlineBytes ? qp.max_inline : Slot::kInlineBytes,
      kMostInLines, wr.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u};
  return perform_one<kDomain, kSignaled>(qp, {wr.wr_id, 0, 0, sge.length, false},
                                         MoveShared<kRings>{*way, piece});
}

}  // namespace verbatim::shm
