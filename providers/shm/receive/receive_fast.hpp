// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_post_recv, and how a message that has arrived becomes a completion: the whole journey in.
//
// Posting is guarded by the receive lock, taking by the receive CQ's lock. The two meet in the tail
// of the receive queue (posted) and the head of the responder (taken) only; a queue that grows does
// so under both.
#pragma once

#include <algorithm>
#include <cerrno>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/wire/copy_fast.hpp"
#include "runtime/sync/prefetch.hpp"

namespace verbatim::shm {

enum class Taken {
  kCompletion,  ///< one work completion written, the message is consumed
  kNotYet,      ///< its bytes are still flowing
  kStarved,     ///< the shared queue has no receive for it
  kMoved,       ///< the next line is another: look again
  kNothing      ///< not a message for us (any more)
};

/// Everything but a message that lies whole in its slot for one SGE of a receive of our own.
[[gnu::noinline]] Taken take_slowly(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept;
/// The same of a queue pair whose receives are shared: shorter for a message that lies whole in its
/// slot, for a receive of one SGE. REQUIRES: qp.srq.
[[gnu::noinline]] Taken take_shared(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept;
/// Takes messages that lie whole in their slots, each for one SGE of a receive of our own, one
/// after the other: what they need stays in registers, and they are consumed together. Returns how
/// many; what is beyond it is take_message()'s. REQUIRES: the receive CQ's lock, a ring.
[[gnu::noinline]] int take_run(Qp& qp, int room, ibv_wc* wc) noexcept;
/// The same into a batch: ends before a message that differs from the others in more than a batch
/// says.
[[gnu::noinline]] std::uint32_t take_batch(Qp& qp, CompletionBatch& batch) noexcept;
/// Receives of one whose store its endpoints share (UD), or of none: those go to the application's
/// own shared queue.
[[gnu::noinline]] int post_to_inbox(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
/// First receive, wrong state, bad keys, several SGEs. The receive lock is held.
[[gnu::cold, gnu::noinline]] int post_recv_slowly(Qp& qp, const ibv_recv_wr& wr) noexcept;

/// What a completion says of the two ends.
struct Ends {
  std::uint32_t qpn;
  std::uint32_t sender;
  std::uint16_t sender_lid;
};

[[gnu::always_inline]] inline void fill_receive_from(ibv_wc& wc, Ends ends, ibv_wc_opcode opcode,
                                                     std::uint64_t wr_id, std::uint32_t bytes,
                                                     std::uint64_t h) noexcept {
  wc.wr_id = wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = opcode;
  wc.vendor_err = 0;
  wc.byte_len = bytes;
  wc.imm_data = header::immediate(h);
  wc.qp_num = ends.qpn;
  wc.src_qp = ends.sender;
  wc.wc_flags = (header::flags(h) & header::kImmediate) != 0 ? IBV_WC_WITH_IMM : 0;
  wc.pkey_index = 0;
  wc.slid = ends.sender_lid;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

/// Of a connected queue pair.
inline Ends ends_of(const Qp& qp) noexcept {
  return {qp.plain.qp_num, load_relaxed(qp.own->dest_qpn), 0};
}

/// Of whose sender's first message was met.
[[gnu::always_inline]] inline Ends ends_of_message(const Qp& qp) noexcept {
  return {qp.in.destination, qp.in.source, qp.in.slid};
}

[[gnu::always_inline]] inline void fill_receive_at(ibv_wc& wc, Ends ends, std::uint64_t wr_id,
                                                   std::uint32_t bytes, std::uint64_t h) noexcept {
  const bool of_write = (header::flags(h) & header::kWriteImmediate) != 0;
  fill_receive_from(wc, ends, of_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, wr_id, bytes, h);
}

inline void fill_receive(ibv_wc& wc, const Qp& qp, std::uint64_t wr_id, std::uint32_t bytes,
                         std::uint64_t h) noexcept {
  fill_receive_at(wc, ends_of(qp), wr_id, bytes, h);
}

/// When one message has been taken and others lie behind it: asks for the line that comes 32
/// later. A line comes from the sender's core in the time that ten messages take, and a core
/// does not look so far ahead by itself. Of a ring that is emptier than that it takes lines which
/// it has had since the last lap.
[[gnu::always_inline]] inline void prefetch_arriving(const Slot* ring, std::uint64_t mask,
                                                     std::uint64_t line) noexcept {
  prefetch_to_read(&ring[(line + 32) & mask]);
}

/// The receive is done with: its place may be posted anew. So are the lines before `line`, where the
/// next message will be.
inline void finish_receive(Qp& qp, std::uint64_t index, std::uint64_t line) noexcept {
  qp.in.line = line;
  qp.in.head.store(index + 1, std::memory_order_release);
  qp.own->consumed.store(index + 1, std::memory_order_relaxed);
  qp.own->lines_taken.store(line, std::memory_order_release);
}

/// Does the next message lie in the ring as long as its sender says that it is?
inline bool stands_side_by_side(const Qp& qp, std::uint64_t length) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << qp.in.log) - 1;
  return length <= kMostInLines &&
         (qp.in.line & mask) + lines_of(static_cast<std::uint32_t>(length)) <= mask + 1;
}

/// For tools; on the line that finish_receive() writes.
inline void count_received(Qp& qp, std::uint64_t bytes) noexcept {
  store_relaxed(qp.own->received_bytes, load_relaxed(qp.own->received_bytes) + bytes);
}

/// A message that lies whole in its slot, for one SGE of a receive of our own. False: nothing was
/// done. REQUIRES: the receive CQ's lock; `h` was loaded from `slot` (acquire), a line of the ring,
/// and carries the right lap.
[[gnu::always_inline]] inline bool take_simple(Qp& qp, const Slot& slot, std::uint64_t h,
                                               ibv_wc& wc) noexcept {
  // Ours still? After the peer resets, its ring's memory may speak of something else.
  if (qp.in.remote->tx_session.load(std::memory_order_acquire) != qp.in.remote_session ||
      !header::is_simple(h)) [[unlikely]]
    return false;
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  const std::uint32_t bytes = header::inline_length(h);
  if (bytes > Slot::kInlineBytes || index == qp.rq.tail.load(std::memory_order_acquire))
      [[unlikely]]
    return false;
  const std::uint64_t at = qp.rq.store.at(index);
  if (bytes != 0) {
    const ReceiveSge& sge = qp.rq.store.sges[at * qp.rq.store.max_sge];
    unsigned char* to;
    if (bytes > sge.length || !find_local_bytes(qp.keys(), sge.lkey, sge.address, bytes,
                                                IBV_ACCESS_LOCAL_WRITE, to)) [[unlikely]]
      return false;
    copy_small(to, slot.data, bytes);
  }
  fill_receive_at(wc, ends_of_message(qp), qp.rq.store.wr_ids[at], bytes, h);
  count_received(qp, bytes);
  finish_receive(qp, index, qp.in.line + 1);
  return true;
}

/// Any message. REQUIRES: as take_simple().
[[gnu::always_inline]] inline Taken take_message(Qp& qp, const Slot& slot, std::uint64_t h,
                                                 ibv_wc& wc) noexcept {
  if (take_simple(qp, slot, h, wc)) [[likely]]
    return Taken::kCompletion;
  return qp.srq != nullptr ? take_shared(qp, slot, h, wc) : take_slowly(qp, slot, h, wc);
}

/// At once, that is: the first one, and any in a state beyond these, takes the general way.
inline bool takes_receives(const Qp& qp) noexcept {
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  return qp.rq.store.credits != nullptr && mode >= IBV_QPS_INIT && mode <= IBV_QPS_SQE;
}

inline constexpr std::uint64_t kCreditsInLine = kCacheLine / sizeof(std::uint64_t);

/// So many lines of credits ahead whoever posts asks for one, which the sender's core has since it
/// read the last lap's. A long list is written faster than its lines come: it asks for those of the
/// next list, which is likely to be as long. For shorter ones that is too early: the sender takes a
/// line back for its own look ahead.
inline constexpr std::uint64_t kFewestLinesAhead = 2;
inline constexpr std::uint64_t kMostLinesAhead = 4;

[[gnu::always_inline]] inline void prefetch_credits(const ReceiveStore& rq, std::uint64_t index,
                                                    std::uint64_t lines_ahead) noexcept {
  prefetch_to_write(&rq.credits[rq.at(index + lines_ahead * kCreditsInLine)]);
}

/// After receives were posted: when the queue pair has failed meanwhile, who flushes it may have
/// looked before they were there.
[[gnu::always_inline]] inline void announce_if_failed(Qp& qp) noexcept {
  // The processor is made to keep the order by take_all().
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (qp.mode.load(std::memory_order_relaxed) == IBV_QPS_ERR) [[unlikely]]
    announce(qp);
}

/// The only receive of a list, in a queue that has its memory. False: nothing was done. REQUIRES:
/// the receive lock.
[[gnu::always_inline]] inline bool post_one_receive(Qp& qp, const ibv_recv_wr& wr) noexcept {
  const std::uint64_t index = qp.rq.tail.load(std::memory_order_relaxed);
  const std::uint64_t at = qp.rq.store.at(index);
  const unsigned char* place;
  if (!takes_receives(qp) || wr.num_sge != 1 ||
      index - qp.in.head.load(std::memory_order_acquire) >= qp.rq.store.max ||
      !find_local_bytes(qp.keys(), wr.sg_list->lkey, wr.sg_list->addr, wr.sg_list->length,
                        IBV_ACCESS_LOCAL_WRITE, place)) [[unlikely]]
    return false;
  const ibv_sge& sge = *wr.sg_list;
  qp.rq.store.fill_one(index, {sge.addr, sge.length, sge.lkey}, wr.wr_id);
  prefetch_credits(qp.rq.store, index, kFewestLinesAhead);
  // Before the credit: whoever may send against it finds the tail beyond it.
  qp.rq.tail.store(index + 1, std::memory_order_release);
  show_receive(qp.rq.store.credits[at], qp.rq.store.lap(index), sge.length);
  announce_if_failed(qp);
  return true;
}

/// Posts receives from `wr` on; the first that takes the general way, or nullptr, is returned. What
/// they need is in registers, and the sender is shown a line of them at a time: it may look at the
/// line that we write, and each of its looks takes that away. REQUIRES: the receive lock.
[[gnu::always_inline]] inline ibv_recv_wr* post_receives(Qp& qp, ibv_recv_wr* wr) noexcept {
  if (!takes_receives(qp)) [[unlikely]]
    return wr;
  const ReceiveStore rq = qp.rq.store;
  const std::uint64_t end = qp.in.head.load(std::memory_order_acquire) + rq.max;
  // A lap ends with a line, or is shorter than one.
  const std::uint64_t in_line = rq.mask < kCreditsInLine ? rq.mask : kCreditsInLine - 1;
  std::uint64_t index = qp.rq.tail.load(std::memory_order_relaxed);
  const std::uint64_t begin = index;
  std::uint64_t shown = index;
  const std::uint64_t lines_ahead = qp.rq.credit_lines_ahead;
  KeyInARow keys(qp.keys());
  const auto show = [&] {
    // As in post_one_receive().
    qp.rq.tail.store(index, std::memory_order_release);
    prefetch_credits(rq, index, lines_ahead);
    const std::uint32_t lap = rq.lap(shown);
    const ReceiveSge* sge = rq.sges_of(shown);
    std::atomic<std::uint64_t>* credit = &rq.credits[rq.at(shown)];
    for (; shown != index; ++shown, ++credit, sge += rq.max_sge)
      show_receive(*credit, lap, sge->length);
  };
  for (; wr != nullptr && index != end && wr->num_sge == 1; wr = wr->next) {
    const std::uint64_t address = wr->sg_list->addr;
    const std::uint32_t bytes = wr->sg_list->length;
    const std::uint32_t lkey = wr->sg_list->lkey;
    const unsigned char* place;
    if (!keys.find_local_bytes(lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE, place)) [[unlikely]]
      break;
    rq.fill_one(index, {address, bytes, lkey}, wr->wr_id);
    if ((++index & in_line) == 0) show();
  }
  if (index != shown) show();
  qp.rq.credit_lines_ahead = static_cast<std::uint8_t>(
      std::clamp((index - begin) / kCreditsInLine, kFewestLinesAhead, kMostLinesAhead));
  announce_if_failed(qp);
  return wr;
}

/// Any list. Left to by a jump: it needs registers that a single receive does not.
[[gnu::noinline]] int post_receive_list(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

[[gnu::always_inline]] inline int post_recv_fast(Qp& qp, ibv_recv_wr* wr,
                                                 ibv_recv_wr** bad_wr) noexcept {
  if (qp.srq != nullptr) [[unlikely]]
    return post_to_inbox(qp, wr, bad_wr);
  if (wr != nullptr && wr->next == nullptr) [[likely]] {
    DomainGuard guard(qp.rq.lock, qp.in_domain);
    if (post_one_receive(qp, *wr)) [[likely]]
      return 0;
    const int error = post_recv_slowly(qp, *wr);
    if (error != 0) *bad_wr = wr;
    return error;
  }
  return post_receive_list(qp, wr, bad_wr);
}

}  // namespace verbatim::shm
