// SPDX-License-Identifier: BSD-2-Clause
//
// Sending to a queue pair whose receives are shared: is there one beyond those that our own untaken
// messages will use up? The rule for several senders: shared_receive.hpp.
#include <algorithm>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/wire/copy_fast.hpp"

namespace verbatim::shm {
namespace {

/// Finds the peer's receives, again after it has moved them. False: none was ever posted.
bool find_store(Qp& qp, std::uint64_t store) noexcept {
  SharedCredits& shared = qp.shared;
  if (store == 0) return false;
  if (store == shared.store) return true;
  const std::uint32_t log = extent::log(store);
  shared.credits = nullptr;
  shared.store = 0;
  shared.unlooked = 0;
  shared.known = {};
  if (log > 24) return false;
  shared.credits = qp.link.peer->segment.at<std::atomic<std::uint64_t>>(
      extent::offset(store), sizeof(std::uint64_t) << log);
  if (shared.credits == nullptr) return false;
  shared.store = store;
  shared.mask = (std::uint64_t{1} << log) - 1;
  return true;
}

/// The credit of the next receive; false when none is posted there. It may be of a later receive
/// than was asked for: others have used ours up.
bool look(Qp& qp, std::uint64_t& credit) noexcept {
  SharedCredits& shared = qp.shared;
  for (int tries = 0; tries < 4; ++tries) {
    const std::uint64_t store = shared.record->store.load(std::memory_order_acquire);
    if (!find_store(qp, store)) return false;
    const std::uint32_t log = extent::log(store);
    credit = shared.credits[shared.next & shared.mask].load(std::memory_order_acquire);
    // Pairs with the store in move_receives(): the same place before and after was the right one.
    if (shared.record->store.load(std::memory_order_acquire) != store) continue;
    const auto lap = static_cast<std::uint32_t>(shared.next >> log) + 1;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(credit >> 32) - lap) >= 0;
  }
  return false;
}

/// The first receive that neither others have used up nor our own messages on their way will.
std::uint64_t first_free(const Qp& qp) noexcept {
  // In this order: see use_up_locked().
  const std::uint64_t taken = qp.shared.record->taken.load(std::memory_order_acquire);
  const std::uint64_t served = qp.link.remote->served.load(std::memory_order_acquire);
  return served > qp.out.sent ? taken : taken + (qp.out.sent - served);
}

/// When next_shared_credit() is asked next.
std::uint64_t next_look(const Qp& qp) noexcept {
  return (qp.out.sent + 1) | (SharedCredits::kLookEvery - 1);
}

/// Would end a message of so many bytes in an error.
bool condemns(std::uint64_t credit, std::uint64_t bytes) noexcept {
  return (static_cast<std::uint32_t>(credit) & Credit::kBadKey) != 0 ||
         bytes > (static_cast<std::uint32_t>(credit) & Credit::kLengthMask);
}

}  // namespace

CreditState next_shared_credit(Qp& qp, std::uint64_t bytes, std::uint32_t& length) noexcept {
  std::uint64_t credit;
  bool posted = look(qp, credit);
  // Now and then also when all is well, so that what others use up is not counted on for long. And
  // nobody is judged by a receive that another's message took long ago.
  if (!posted || qp.out.sent % SharedCredits::kLookEvery == SharedCredits::kLookEvery - 1 ||
      condemns(credit, bytes)) {
    const std::uint64_t free = first_free(qp);
    if (free > qp.shared.next || !posted) {
      qp.shared.next = free;
      posted = look(qp, credit);
    }
  }
  if (!posted) return CreditState::kNone;
  qp.shared.unlooked = next_look(qp);
  // Where many take turns a receive is posted between any two messages of one of them.
  if (must_ring(qp) && qp.shared.next >= qp.shared.known.behind)
    qp.shared.known = look_ahead({qp.shared.credits, qp.shared.mask, extent::log(qp.shared.store)},
                                 qp.shared.next);
  length = static_cast<std::uint32_t>(credit) & Credit::kLengthMask;
  return (static_cast<std::uint32_t>(credit) & Credit::kBadKey) != 0 ? CreditState::kBadKey
                                                                     : CreditState::kGood;
}

namespace {

/// The bytes of all pieces; false: more than lie whole in the ring.
bool count_bytes(const Qp& from, const ibv_send_wr& wr, std::uint32_t& bytes) noexcept {
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  const auto pieces = static_cast<std::uint32_t>(wr.num_sge);
  // Programs send their header and their data as two.
  if (pieces == 0 || pieces > (is_inline ? from.max_send_sge : 1)) return false;
  bytes = 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    if (wr.sg_list[i].length > kMostInLines) return false;
    bytes += wr.sg_list[i].length;
  }
  return bytes <=
         (is_inline ? std::max<std::uint32_t>(from.max_inline, Slot::kInlineBytes) : kMostInLines);
}

bool gather_pieces(const Qp& from, const ibv_send_wr& wr, unsigned char* to) noexcept {
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    const auto* bytes = reinterpret_cast<const unsigned char*>(sge.addr);
    if (!is_inline && !find_local_bytes(from.keys(), sge.lkey, sge.addr, sge.length, 0, bytes))
      return false;
    copy_some(to, bytes, sge.length);
    to += sge.length;
  }
  return true;
}

}  // namespace

bool put_shared_now(Qp& way, const Qp& from, const ibv_send_wr& wr, std::uint32_t flags,
                    std::uint64_t path, std::uint32_t& bytes) noexcept {
  if (!count_bytes(from, wr, bytes) || (path != 0 && bytes > Slot::kPathAt)) return false;
  if (!takes_next_in_turn(way, bytes + from.headroom) || !has_room_for(way, bytes)) return false;
  if (path != 0) {
    say_path(next_slot(way), path);
    flags |= header::kPath;
  }
  flags |= (wr.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u) |
           ((wr.send_flags & IBV_SEND_SOLICITED) != 0 ? header::kSolicited : 0u);
  return publish_whole(way, bytes, flags, wr.imm_data,
                       [&](unsigned char* to) { return gather_pieces(from, wr, to); });
}

}  // namespace verbatim::shm
