// SPDX-License-Identifier: BSD-2-Clause
//
// How the bytes of small requests move: WRITEs into memory that is mapped, SENDs into the ring.
// Under the send lock.
#pragma once

#include <algorithm>
#include <array>

#include "providers/shm/copy_fast.hpp"
#include "providers/shm/qp.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/window_access.hpp"
#include "runtime/sync/prefetch.hpp"

namespace verbatim::shm {

/// Where the peer's bytes lie in our address space, or nullptr: not mapped, or not allowed.
inline unsigned char* mapped_bytes(const Qp& qp, std::uint32_t rkey, std::uint64_t address,
                                   std::uint64_t bytes, std::uint32_t need) noexcept {
  Region region;
  std::uint64_t offset;
  if (!find_region(qp.remote_regions, qp.remote_region_capacity, rkey, region) ||
      (region.pd != qp.remote_pd && !opens_unusual(qp, region)) || (region.access & need) != need ||
      !region.contains(address, bytes, offset))
    return nullptr;
  if (qp.self)
    return (region.access & IBV_ACCESS_ON_DEMAND) != 0
               ? nullptr
               : reinterpret_cast<unsigned char*>(region.address + offset);
  const std::uint32_t number = region.arena - 1;
  if (number >= kMaxArenas) return nullptr;
  const Arena& arena = qp.peer->arenas[number];
  unsigned char* base = arena.base.load(std::memory_order_acquire);
  const std::uint64_t at = region.arena_offset + offset;
  // The record's word for where the region lies in the arena is the peer's: hold it against our
  // mapping.
  if (base == nullptr || at < offset || at > arena.size || bytes > arena.size - at) return nullptr;
  return base + at;
}

/// Looks `rkey` up and makes it the queue pair's write target. False: not mapped, not allowed.
[[gnu::noinline]] bool find_write_target(Qp& qp, std::uint32_t rkey) noexcept;

/// Tells the peer, which does not poll this ring, that a message is in it. Not [[gnu::cold]]: GCC
/// then takes the whole way to it for cold.
[[gnu::noinline]] void ring_peer(Qp& qp, bool solicited) noexcept;

/// A SEND of one piece, or of several inline ones, that fits a slot, to a queue pair whose receives
/// are shared. False: it takes the general way.
[[gnu::noinline]] bool send_shared_fast(Qp& qp, const ibv_send_wr& wr, std::uint32_t flags,
                                        std::uint32_t& bytes) noexcept;

/// Where WRITEs with one key go, and SENDs, of however many requests in a row: their loops have it
/// in registers. put() performs a request of one piece; `piece.find(from)` says where its bytes
/// lie. False: it takes the general way.
struct Writes {
  std::uint64_t iova;
  std::uint64_t length;
  unsigned char* base;

  explicit Writes(const WriteTarget& target) noexcept
      : iova(target.iova), length(target.length), base(target.base) {}

  static bool may_write(const Qp& qp) noexcept {
    return (peek(qp.remote->access) & IBV_ACCESS_REMOTE_WRITE) != 0;
  }

  /// May `rkey` be written by the queue pair, and is it that of its write target? It is from here
  /// on, until the send lock is let go.
  [[gnu::always_inline]] static bool is_known(const Qp& qp, std::uint32_t rkey) noexcept {
    const WriteTarget& target = qp.write_target;
    return may_write(qp) && rkey != 0 && rkey == target.rkey &&
           target.serial->load(std::memory_order_acquire) == target.serial_seen;
  }
  /// The same when it has been looked up, if it must be.
  [[gnu::always_inline]] static bool find(Qp& qp, std::uint32_t rkey) noexcept {
    if (is_known(qp, rkey)) [[likely]]
      return true;
    return may_write(qp) && find_write_target(qp, rkey);
  }
  template <class Piece>
  [[gnu::always_inline]] bool put(std::uint64_t address, std::uint64_t bytes,
                                  const Piece& piece) const noexcept {
    const std::uint64_t offset = address - iova;
    if (offset > length || bytes > length - offset) return false;
    const unsigned char* from;
    if (!piece.find(from)) return false;
    if (bytes <= 64)
      copy_small(base + offset, from, bytes);
    else
      std::memcpy(base + offset, from, bytes);
    return true;
  }
};

/// The peer does not poll for what we send: it must be told.
inline bool must_ring(const Qp& qp) noexcept {
  // The receiver turns this word on before its last look at the ring, with a fence on both sides
  // (Node::fence_everyone), so reading it late is enough.
  return qp.remote->attention.load(std::memory_order_relaxed) != kPolled || qp.ring_always;
}

/// So many slots ahead of the one that it writes the sender of a stream asks for the next: the
/// receiver's core has it from the last lap, and a post that waits for its stores (a lock does)
/// would wait for that. Few: the receiver asks for slots ahead, too, and what it takes back was
/// asked for in vain (at 32 the rate falls to a third).
inline constexpr std::uint64_t kSlotsAhead = 3;

/// When a message has been put alone into the slot before `behind`. `heard`: how many have been
/// received by now. If one has since the last was sent, the ends take turns: the peer waits at the
/// slot of the next, and would come back for its line before that is written.
[[gnu::always_inline]] inline void ask_for_slot(Qp& qp, std::uint64_t heard, Slot* ring,
                                                std::uint64_t mask, std::uint64_t behind) noexcept {
  if (heard == qp.heard) [[likely]]
    prefetch_to_write(&ring[(behind + kSlotsAhead - 1) & mask]);
  else
    qp.heard = heard;
}

/// How many messages of one length fit a slot.
inline constexpr auto kFitInPack = [] {
  std::array<std::uint8_t, Slot::kInlineBytes / 2 + 1> fit{};
  for (std::size_t bytes = 1; bytes < fit.size(); ++bytes)
    fit[bytes] =
        static_cast<std::uint8_t>(std::min<std::size_t>(kMostInPack, Slot::kInlineBytes / bytes));
  return fit;
}();

/// SENDs of at most Slot::kInlineBytes, to a queue pair that has receives of its own. Whoever makes
/// it puts `sent` back, and `known` unless put_one() alone was called, and rings if must_ring().
struct Sends {
  std::uint64_t sent;
  KnownReceives known;
  Receives receives;
  Slot* ring;

  explicit Sends(const Qp& qp) noexcept
      : sent(qp.sent),
        known(qp.known_receives),
        receives{qp.credits, qp.remote_rq_mask, qp.remote_rq_log},
        ring(qp.ring) {}
  void put_back(Qp& qp) const noexcept {
    qp.sent = sent;
    qp.known_receives = known;
  }

  /// Of the next message.
  std::uint32_t lap() const noexcept {
    return static_cast<std::uint32_t>(sent >> receives.log) + 1;
  }

  /// Is the next message's receive posted, sound and long enough?
  [[gnu::always_inline]] bool has_receive(std::uint32_t bytes) const noexcept {
    return (sent < known.behind && bytes <= known.room) ||
           receives.length(sent) >= static_cast<std::int32_t>(bytes);
  }

  /// The next message goes where its receive is. That being posted means that the slot's last
  /// message was taken: no fullness to check. `piece.header()` is the slot's, but for place and
  /// length; asked for when it is stored, since kept from before it costs the registers that the
  /// copy needs.
  template <class Piece>
  [[gnu::always_inline]] bool store(std::uint32_t bytes, const Piece& piece) noexcept {
    const unsigned char* from;
    if (!piece.find(from)) return false;
    const std::uint64_t at = sent & receives.mask;
    Slot& slot = ring[at];
    copy_small(slot.data, from, bytes);
    // Publishes the slot; pairs with the load in poll_rings().
    slot.header.store(piece.header() | header::place(lap(), bytes), std::memory_order_release);
    ++sent;
    return true;
  }
  /// How many messages of that length may share the next slot. Their receives are known.
  [[gnu::always_inline]] std::uint64_t most_in_pack(std::uint32_t bytes) noexcept {
    if (bytes == 0 || bytes > Slot::kInlineBytes / 2 || !lap_has_packs(lap())) return 1;
    if (sent >= known.behind) known = look_ahead(receives, sent);
    if (sent >= known.behind || bytes > known.room) return 1;
    const std::uint64_t fit = kFitInPack[bytes];
    const std::uint64_t posted = known.behind - sent;
    // A pack ends with its lap, so that a lap without packs writes every slot.
    const std::uint64_t left = receives.mask + 1 - (sent & receives.mask);
    return std::min({fit, posted, left});
  }
  /// How many messages of that length may go into the next slot: 0 when there is no receive for
  /// one; one at most unless they `share` it.
  [[gnu::always_inline]] std::uint64_t most_in_slot(std::uint32_t bytes, bool share) noexcept {
    if (share) {
      const std::uint64_t most = most_in_pack(bytes);
      if (most > 1) return most;
    }
    return bytes <= Slot::kInlineBytes && has_receive(bytes) ? 1 : 0;
  }
  /// Puts at most `most` messages of that length into the next slot. `find(from)` says where the
  /// next one's bytes lie; `next()` goes on to the one behind it, and says whether that may share
  /// the slot; the header of one that is alone is `alone()`, but for place and length. Returns how
  /// many were put.
  template <class Find, class Next, class Header>
  [[gnu::always_inline]] std::uint32_t put_some(std::uint32_t bytes, std::uint64_t most, Find find,
                                                Next next, Header alone) noexcept {
    const std::uint64_t at = sent & receives.mask;
    Slot& slot = ring[at];
    unsigned char* to = slot.data;
    std::uint32_t count = 0;
    bool more;
    do {
      const unsigned char* from;
      if (!find(from)) break;
      copy_small(to, from, bytes);
      to += bytes;
      more = next();
    } while (++count != most && more);
    if (count == 0) return 0;
    const std::uint64_t h = count == 1 ? alone() : header::make(0, SlotKind::kPack, 0, 0, count);
    // Publishes the slot; pairs with the load in take_run().
    slot.header.store(h | header::place(lap(), bytes), std::memory_order_release);
    prefetch_to_write(&ring[(at + kSlotsAhead * count) & receives.mask]);
    sent += count;
    // After the messages: nobody waits for it now. For this put_one() left us one that is alone.
    if (known.must_look(count == 1 ? sent - 1 : sent)) [[unlikely]]
      known = look_ahead(receives, sent);
    return count;
  }
  /// One message with no more than stores. False too when it is time to look ahead.
  template <class Piece>
  [[gnu::always_inline]] bool put_one(std::uint32_t bytes, const Piece& piece) noexcept {
    static_assert(Slot::kInlineBytes < Credit::kLengthMask);
    return !known.must_look(sent) && has_receive(bytes) && store(bytes, piece);
  }
};

/// A SEND's header, but for place and length.
inline std::uint64_t send_header(std::uint32_t flags, unsigned send_flags, __be32 imm) noexcept {
  static_assert(IBV_SEND_SOLICITED == header::kSolicited << 1);
  return header::make(0, SlotKind::kInline, flags | (send_flags >> 1 & header::kSolicited), 0, imm);
}

}  // namespace verbatim::shm
