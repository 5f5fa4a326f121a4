// SPDX-License-Identifier: BSD-2-Clause
//
// Messages that lie whole in their slots, taken one after the other, for ibv_poll_cq (take_run) and
// for the cursor (take_batch). The two differ in what is written of a message: see AsCompletions,
// AsBatch.
#pragma once

#include <algorithm>
#include <cstring>

#include "providers/shm/queues/completion_batch.hpp"
#include "providers/shm/receive/receive_fast.hpp"

namespace verbatim::shm {

/// One completion each.
class AsCompletions {
 public:
  AsCompletions(const Qp& qp, ibv_wc* wc) noexcept : ends_(ends_of(qp)), wc_(wc) {
    fill_receive_at(usual_, ends_, 0, 0, 0);
  }
  static constexpr bool kSaysOfPacks = false;  ///< but of each message, since it writes so much
  static constexpr bool kSaysOfLong = true;    ///< of messages of several lines
  static constexpr bool can_say(std::uint64_t) noexcept { return true; }
  /// Of the message with the header `h`.
  [[gnu::always_inline]] void say(std::uint64_t wr_id, std::uint32_t bytes,
                                  std::uint64_t h) noexcept {
    *wc_ = usual_;
    wc_->wr_id = wr_id;
    wc_->byte_len = bytes;
    if ((header::flags(h) & (header::kImmediate | header::kWriteImmediate)) != 0) [[unlikely]]
      fill_receive_at(*wc_, ends_, wr_id, bytes, h);
    ++wc_;
  }
  /// Of all that were said.
  void end(const ReceiveStore&, std::uint64_t, std::uint32_t) noexcept {}

 private:
  const Ends ends_;
  ibv_wc* wc_;
  ibv_wc usual_;  ///< copied whole: in a few wide stores
};

/// The two things that differ.
class AsBatch {
 public:
  explicit AsBatch(CompletionBatch& batch) noexcept : batch_(batch) {}
  static constexpr bool kSaysOfPacks = true;
  static constexpr bool kSaysOfLong = false;
  static constexpr bool can_say(std::uint64_t h) noexcept {
    return (header::flags(h) & (header::kImmediate | header::kWriteImmediate)) == 0;
  }
  [[gnu::always_inline]] void say(std::uint64_t, std::uint32_t bytes, std::uint64_t) noexcept {
    batch_.lengths[++place_] = static_cast<std::uint8_t>(bytes);
  }
  [[gnu::always_inline]] void say_alike(std::uint64_t count, std::uint32_t bytes) noexcept {
    // All that there may be, in one store; those behind are written over.
    static_assert(kMostInPack <= sizeof(std::uint64_t));
    const std::uint64_t each = 0x0101010101010101 * bytes;
    std::memcpy(&batch_.lengths[place_ + 1], &each, sizeof each);
    place_ += static_cast<std::uint32_t>(count);
  }
  void end(const ReceiveStore& rq, std::uint64_t first, std::uint32_t count) noexcept {
    const std::uint64_t at = rq.at(first);
    const std::uint64_t to_lap = std::min<std::uint64_t>(count, rq.mask + 1 - at);
    copy_ids(&batch_.wr_ids[1], rq.wr_ids + at, to_lap);
    if (to_lap != count) [[unlikely]]
      copy_ids(&batch_.wr_ids[1 + to_lap], rq.wr_ids, count - to_lap);
  }

 private:
  /// Without a call.
  static void copy_ids(std::uint64_t* to, const std::uint64_t* from, std::uint64_t count) noexcept {
    for (; count >= 4; count -= 4, to += 4, from += 4) std::memcpy(to, from, 4 * sizeof *to);
    if ((count & 2) != 0) {
      std::memcpy(to, from, 2 * sizeof *to);
      to += 2;
      from += 2;
    }
    if ((count & 1) != 0) *to = *from;
  }

  static_assert(Slot::kInlineBytes <= 0xff);
  CompletionBatch& batch_;
  std::uint32_t place_ = 0;
};

/// Moves messages of one length, which lie one after the other, to where their receives are, as
/// long as these are in `room`. Returns how many were moved. Not a part of its caller, who has no
/// registers left.
[[gnu::noinline]] std::uint64_t move_alike(const unsigned char* from, std::uint32_t bytes,
                                           const ReceiveSge* sge, std::size_t max_sge,
                                           std::uint64_t count, const RoomOfKey& room) noexcept;

/// Takes up to `most` messages, each in a slot or in lines of the ring. REQUIRES: the receive CQ's lock, a ring. Returns how many.
template <class Told>
[[gnu::always_inline]] inline std::uint32_t take_run_fast(Qp& qp, std::uint32_t most,
                                                          Told told) noexcept {
  const std::uint64_t first = qp.in.head.load(std::memory_order_relaxed);
  const std::uint64_t posted = qp.rq.tail.load(std::memory_order_acquire) - first;
  const std::uint64_t end = first + (posted < most ? posted : most);
  // Read once: of what it stores, the compiler cannot tell that it is not one of these.
  const Slot* const ring = qp.in.ring;
  const std::uint32_t log = qp.in.log;
  const std::uint64_t mask = (std::uint64_t{1} << log) - 1;
  const std::atomic<std::uint64_t>& session = qp.in.remote->tx_session;
  const std::uint64_t own_session = qp.in.remote_session;
  const ReceiveSge* const sges = qp.rq.store.sges;
  const std::uint64_t* const wr_ids = qp.rq.store.wr_ids;
  const std::uint64_t rq_mask = qp.rq.store.mask;
  const std::size_t max_sge = qp.rq.store.max_sge;
  KeyInARow keys(qp.keys());
  MessagePack& pack = qp.in.pack;
  std::uint64_t received = 0;
  std::uint64_t index = first;
  std::uint64_t line = qp.in.line;
  // Flags and immediate are those of `h`.
  const auto take = [&](const unsigned char* from, std::uint32_t bytes, std::uint64_t h) {
    const std::uint64_t at = index & rq_mask;
    if (bytes != 0) {
      const ReceiveSge& sge = sges[at * max_sge];
      unsigned char* to;
      if (bytes > sge.length || !keys.find_local_bytes(sge.lkey, sge.address, bytes,
                                                       IBV_ACCESS_LOCAL_WRITE, to)) [[unlikely]]
        return false;
      copy_some(to, from, bytes);
    }
    told.say(wr_ids[at], bytes, h);
    received += bytes;
    ++index;
    return true;
  };
  while (index != end) {
    if (pack.has(index)) [[unlikely]] {
      if (session.load(std::memory_order_acquire) != own_session ||
          !take(pack.data_of(index), pack.bytes, pack.header()))
        break;
      continue;
    }
    const Slot& slot = ring[line & mask];
    prefetch_arriving(ring, mask, line);
    // Pairs with the release in Sends::store() and Sends::put_some().
    const std::uint64_t h = slot.header.load(std::memory_order_acquire);
    const std::uint32_t lap = static_cast<std::uint32_t>(line >> log) + 1;
    if (session.load(std::memory_order_acquire) != own_session) break;
    const std::uint32_t bytes = header::inline_length(h);
    if (header::is_simple_of(h, lap)) {
      if (bytes > Slot::kInlineBytes || !Told::can_say(h) || !take(slot.data, bytes, h)) break;
      ++line;
      continue;
    }
    if (Told::kSaysOfLong && header::is_long_of(h, lap)) {
      const std::uint64_t length = load_relaxed(slot.large.length);
      if (length > kMostInLines) break;
      const std::uint32_t lines = lines_of(static_cast<std::uint32_t>(length));
      if ((line & mask) + lines > mask + 1) break;
      for (std::uint32_t i = 1; i < lines; ++i) prefetch_to_read(&slot + i);
      if (!take(slot.data + Slot::kLongAt, static_cast<std::uint32_t>(length), h)) break;
      line += lines;
      continue;
    }
    if (Told::kSaysOfLong && header::is_placed_of(h, lap)) {
      const std::uint64_t length = load_relaxed(slot.large.length);
      const std::uint64_t at = index & rq_mask;
      if (length > sges[at * max_sge].length) break;
      told.say(wr_ids[at], static_cast<std::uint32_t>(length), h);
      received += length;
      ++index;
      ++line;
      continue;
    }
    if (!header::is_pack_of(h, lap)) break;
    const std::uint64_t begin = index;
    const std::uint32_t count = messages_in(h);
    if (count == 0) break;
    ++line;
    if (count <= end - index) [[likely]] {
      if constexpr (Told::kSaysOfPacks) {
        // Up to the lap's end, those whose receives name one key.
        const std::uint64_t at = index & rq_mask;
        const ReceiveSge* const sge = sges + at * max_sge;
        if (const RoomOfKey* const room = keys.find_room(sge->lkey, IBV_ACCESS_LOCAL_WRITE);
            room != nullptr) [[likely]] {
          const std::uint64_t alike = std::min<std::uint64_t>(count, rq_mask + 1 - at);
          const std::uint64_t moved = move_alike(slot.data, bytes, sge, max_sge, alike, *room);
          told.say_alike(moved, bytes);
          received += moved * bytes;
          index += moved;
        }
      } else {
        const unsigned char* from = slot.data;
        while (index != begin + count && take(from, bytes, 0)) from += bytes;
      }
    }
    // The rest one by one. What is not taken lies in a slot that may be written as soon as we are
    // gone.
    if (index != begin + count) [[unlikely]]
      qp.in.has_opened |= open_pack(pack, begin, slot, h);
  }
  qp.in.line = line;
  if (index == first) return 0;
  count_received(qp, received);
  const auto taken = static_cast<std::uint32_t>(index - first);
  told.end(qp.rq.store, first, taken);
  finish_receive(qp, index - 1, line);
  return taken;
}

}  // namespace verbatim::shm
