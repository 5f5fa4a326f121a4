// SPDX-License-Identifier: BSD-2-Clause
//
// How the bytes of small requests move: WRITEs into memory that is mapped, SENDs into the ring.
// Under the send lock.
#pragma once

#include <algorithm>
#include <array>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/transfer/mapped.hpp"
#include "providers/shm/windows/window_access.hpp"
#include "providers/shm/wire/copy_fast.hpp"
#include "runtime/sync/prefetch.hpp"

namespace verbatim::shm {

/// Looks `key` up and makes its memory the target. False: not mapped, or not allowed what `need` says.
[[gnu::noinline]] bool find_target(const Qp& qp, WriteTarget& target, std::uint32_t key,
                                   std::uint32_t need) noexcept;

/// Tells the peer, which does not poll this ring, up to which line messages are in it. Not
/// [[gnu::cold]]: GCC then takes the whole way to it for cold.
[[gnu::noinline]] void ring_peer(Qp& qp, bool solicited) noexcept;

/// A SEND of `from`, of one piece or of several inline ones, that lies whole in the ring of `way`, the
/// queue pair or its endpoint, to receives that are shared; the flags of its header besides those
/// that it asks for itself, and what it says of its path. False: it takes the general way.
[[gnu::noinline]] bool put_shared_now(Qp& way, const Qp& from, const ibv_send_wr& wr,
                                      std::uint32_t flags, std::uint64_t path,
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
    return (load_relaxed(qp.link.remote->access) & IBV_ACCESS_REMOTE_WRITE) != 0;
  }

  /// May `rkey` be written by the queue pair, and is it that of its write target? It is from here
  /// on, until the send lock is let go.
  [[gnu::always_inline]] static bool is_known(const Qp& qp, std::uint32_t rkey) noexcept {
    const WriteTarget& target = qp.direct.write;
    return may_write(qp) && rkey != 0 && rkey == target.rkey &&
           target.serial->load(std::memory_order_acquire) == target.serial_seen;
  }
  /// The same when it has been looked up, if it must be.
  [[gnu::always_inline]] static bool find(Qp& qp, std::uint32_t rkey) noexcept {
    if (is_known(qp, rkey)) [[likely]]
      return true;
    return may_write(qp) && find_target(qp, qp.direct.write, rkey, IBV_ACCESS_REMOTE_WRITE);
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
  // (Process::fence_everyone), so reading it late is enough.
  return qp.link.remote->attention.load(std::memory_order_relaxed) != kPolled ||
         qp.link.ring_always;
}

/// From here on a SEND goes straight to a receive that is mapped, and up to here at once.
inline constexpr std::uint32_t kPlacedFrom = 192;
inline constexpr std::uint32_t kMostPlaced = 16u << 10;

/// So many slots ahead of the one that it writes the sender of a stream asks for the next: the
/// receiver's core has it from the last lap, and a post that waits for its stores (a lock does)
/// would wait for that. Few: the receiver asks for slots ahead, too, and what it takes back was
/// asked for in vain (at 32 the rate falls to a third).
inline constexpr std::uint64_t kSlotsAhead = 3;

/// When a message has been put alone into a line. `heard`: how many have been
/// received by now. If one has since the last was sent, the ends take turns: the peer waits at the
/// slot of the next, and would come back for its line before that is written.
[[gnu::always_inline]] inline void ask_for_slot(Qp& qp, std::uint64_t heard) noexcept {
  if (heard == qp.out.heard) [[likely]]
    prefetch_to_write(&qp.out.ring.slots[(qp.out.ring.next + kSlotsAhead - 1) & qp.out.ring.mask]);
  else
    qp.out.heard = heard;
}

/// The same of one of many that take turns: it is long until the next, and what has been received
/// stands on lines that are not here.
[[gnu::always_inline]] inline void ask_for_next_slot(const Qp& qp) noexcept {
  prefetch_to_write(&qp.out.ring.slot());
}

/// How many messages of one length fit a slot.
inline constexpr auto kFitInPack = [] {
  std::array<std::uint8_t, Slot::kInlineBytes / 2 + 1> fit{};
  for (std::size_t bytes = 1; bytes < fit.size(); ++bytes)
    fit[bytes] =
        static_cast<std::uint8_t>(std::min<std::size_t>(kMostInPack, Slot::kInlineBytes / bytes));
  return fit;
}();

/// SENDs of at most Slot::kInlineBytes, to a queue pair that has receives of its own. Whoever makes it
/// puts it back, and rings if must_ring().
struct Sends {
  std::uint64_t sent;
  KnownReceives known;
  Receives receives;
  Slot* slots;
  std::uint64_t mask;
  std::uint64_t line;   ///< the next one
  std::uint64_t limit;  ///< lines below it may be taken
  std::uint32_t log;

  explicit Sends(const Qp& qp) noexcept
      : sent(qp.out.sent),
        known(qp.out.known_receives),
        receives{qp.link.credits, qp.link.remote_rq_mask, qp.link.remote_rq_log},
        slots(qp.out.ring.slots),
        mask(qp.out.ring.mask),
        line(qp.out.ring.next),
        limit(qp.out.ring.limit),
        log(qp.out.ring.log) {}
  void put_back(Qp& qp) const noexcept {
    qp.out.sent = sent;
    qp.out.known_receives = known;
    qp.out.ring.next = line;
  }

  std::uint32_t lap() const noexcept { return static_cast<std::uint32_t>(line >> log) + 1; }

  /// Is the next message's receive posted, sound and long enough?
  [[gnu::always_inline]] bool has_receive(std::uint32_t bytes) const noexcept {
    return known.has(receives, sent, bytes);
  }

  /// `piece.header()` is the slot's, but for place and length; asked for when it is stored, since
  /// kept from before it costs the registers that the copy needs. REQUIRES: line < limit.
  template <class Piece>
  [[gnu::always_inline]] bool store(std::uint32_t bytes, const Piece& piece) noexcept {
    const unsigned char* from;
    if (!piece.find(from)) return false;
    Slot& slot = slots[line & mask];
    copy_small(slot.data, from, bytes);
    // Publishes the slot; pairs with the load in poll_rings().
    slot.header.store(piece.header() | header::place(lap(), bytes), std::memory_order_release);
    ++sent;
    ++line;
    return true;
  }
  /// How many messages of that length may share the next slot. Their receives are known.
  [[gnu::always_inline]] std::uint64_t most_in_pack(std::uint32_t bytes) noexcept {
    if (bytes == 0 || bytes > Slot::kInlineBytes / 2) return 1;
    if (sent >= known.behind) known = look_ahead(receives, sent);
    if (sent >= known.behind || bytes > known.room) return 1;
    const std::uint64_t fit = kFitInPack[bytes];
    return std::min(fit, known.behind - sent);
  }
  /// How many messages of that length may go into the next slot: 0 when there is no receive for
  /// one; one at most unless they `share` it.
  [[gnu::always_inline]] std::uint64_t most_in_slot(Qp& qp, std::uint32_t bytes,
                                                    bool share) noexcept {
    if (line >= limit && !look_for_line(qp)) [[unlikely]]
      return 0;
    if (share) {
      const std::uint64_t most = most_in_pack(bytes);
      if (most > 1) return most;
    }
    return bytes <= Slot::kInlineBytes && has_receive(bytes) ? 1 : 0;
  }
  /// Looks what the peer has taken meanwhile. False: no line is free.
  [[gnu::always_inline]] bool look_for_line(Qp& qp) noexcept {
    qp.out.ring.next = line;
    const bool found = look_for_lines(qp, 1);
    line = qp.out.ring.next;
    limit = qp.out.ring.limit;
    return found;
  }
  /// Puts at most `most` messages of that length into the next slot. `find(from)` says where the
  /// next one's bytes lie; `next()` goes on to the one behind it, and says whether that may share
  /// the slot; the header of one that is alone is `alone()`, but for place and length. Returns how
  /// many were put.
  template <class Find, class Next, class Header>
  [[gnu::always_inline]] std::uint32_t put_some(std::uint32_t bytes, std::uint64_t most, Find find,
                                                Next next, Header alone) noexcept {
    Slot& slot = slots[line & mask];
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
    prefetch_to_write(&slots[(line + kSlotsAhead) & mask]);
    sent += count;
    ++line;
    // After the messages: nobody waits for it now. For this put_one() left us one that is alone.
    if (known.must_look(count == 1 ? sent - 1 : sent)) [[unlikely]]
      known = look_ahead(receives, sent);
    return count;
  }
  /// One message with no more than stores. False too when it is time to look ahead.
  template <class Piece>
  [[gnu::always_inline]] bool put_one(std::uint32_t bytes, const Piece& piece) noexcept {
    static_assert(Slot::kInlineBytes < Credit::kLengthMask);
    return line < limit && !known.must_look(sent) && has_receive(bytes) && store(bytes, piece);
  }
};

/// One message that does not fit a line, with the bytes `from`: straight to its receive, or in several
/// lines; `h` is its header, but for place and length. False: it has no receive, or no room, or goes
/// another way. Whoever has Sends puts them back, and makes them anew.
[[gnu::noinline]] bool put_long(Qp& qp, std::uint32_t bytes, const unsigned char* from,
                                std::uint64_t h) noexcept;
/// The same in lines of `way`, which leads to receives that are shared.
[[gnu::noinline]] bool put_shared_long(Qp& way, std::uint32_t bytes, const unsigned char* from,
                                       std::uint64_t h) noexcept;

/// A SEND's header, but for place and length.
inline std::uint64_t send_header(std::uint32_t flags, unsigned send_flags, __be32 imm) noexcept {
  static_assert(IBV_SEND_SOLICITED == header::kSolicited << 1);
  return header::make(0, SlotKind::kInline, flags | (send_flags >> 1 & header::kSolicited), 0, imm);
}

}  // namespace verbatim::shm
