// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_poll_cq: stored completions first, then the hot rings, then whatever the doorbells announce.
#pragma once

#include "providers/shm/cq.hpp"
#include "providers/shm/receive_fast.hpp"

namespace verbatim::shm {

/// Looks at the QPs whose doorbell bits are set; makes busy rings hot. Returns entries written.
[[gnu::noinline]] int poll_doorbells(Cq& cq, int room, ibv_wc* wc) noexcept;
/// Moves on the QPs that wait to send. Takes send locks: called before the CQ's lock.
[[gnu::cold, gnu::noinline]] void progress_pending(Cq& cq, SendLock::As as) noexcept;
/// What keeps a poll from its fast way: completions that the cursor has kept, which are given first
/// (their number), and sends that wait, which are moved on.
[[gnu::cold, gnu::noinline]] int poll_pending(Cq& cq, int room, ibv_wc* wc) noexcept;
/// Does what a poll may not do under the CQ's lock: QPs that a received message broke are moved to
/// the error state, and failures are said in the log.
[[gnu::cold, gnu::noinline]] void settle_marks(Cq& cq) noexcept;

inline void take_stored(Cq& cq, std::uint32_t head, ibv_wc& wc) noexcept {
  const Completion& c = cq.ring[head & cq.mask];
  wc.wr_id = c.wr_id;
  wc.status = static_cast<ibv_wc_status>(c.status);
  wc.opcode = static_cast<ibv_wc_opcode>(c.opcode);
  wc.vendor_err = c.vendor_err;
  wc.byte_len = c.byte_len;
  wc.imm_data = 0;
  wc.qp_num = c.qp->plain.qp_num;
  wc.src_qp = peek(c.qp->own->dest_qpn);
  wc.wc_flags = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
  if (c.frees_send_queue) c.qp->own->polled.store(c.sq_index + 1, std::memory_order_release);
}

[[gnu::always_inline]] inline int poll_stored(Cq& cq, int room, ibv_wc* wc) noexcept {
  std::uint32_t head = cq.head.load(std::memory_order_relaxed);
  const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
  int got = 0;
  while (head != tail && got < room) take_stored(cq, head++, wc[got++]);
  if (got != 0) cq.head.store(head, std::memory_order_relaxed);
  return got;
}

inline void point_at_next(HotRing& hot) noexcept {
  const Qp& qp = *hot.qp;
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  hot.header.store(&qp.rx_ring[index & ((std::uint64_t{1} << qp.rx_log) - 1)].header,
                   std::memory_order_relaxed);
  hot.lap.store((static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff,
                std::memory_order_relaxed);
}

[[gnu::always_inline]] inline int poll_rings(Cq& cq, int room, ibv_wc* wc) noexcept {
  int got = 0;
  for (std::uint32_t i = 0; i < cq.hot_count.load(std::memory_order_relaxed); ++i) {
    HotRing& hot = cq.hot[i];
    const int before = got;
    while (got < room) {
      const std::atomic<std::uint64_t>* at = hot.header.load(std::memory_order_relaxed);
      // Pairs with the release in Sends::put().
      const std::uint64_t h = at->load(std::memory_order_acquire);
      if (header::lap(h) != hot.lap.load(std::memory_order_relaxed)) break;
      // One message is often alone; a second one has others behind it.
      if (got != before) {
        if (const int run = take_run(*hot.qp, room - got, wc + got); run != 0) [[likely]] {
          got += run;
          point_at_next(hot);
          continue;
        }
      }
      const auto& slot = *reinterpret_cast<const Slot*>(reinterpret_cast<const unsigned char*>(at) -
                                                        offsetof(Slot, header));
      const Taken taken = take_message(*hot.qp, slot, h, wc[got]);
      if (taken != Taken::kCompletion) [[unlikely]] {
        if (taken == Taken::kNothing) drop_hot(cq, i--);
        break;
      }
      ++got;
      point_at_next(hot);
    }
  }
  return got;
}

/// A look without the lock: most polls find nothing, and a lock costs more than the look. What is
/// missed here is found by the next poll.
inline bool something_came(const Cq& cq) noexcept {
  if (cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed))
    return true;
  const std::uint32_t hot_count = cq.hot_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < hot_count; ++i) {
    const std::atomic<std::uint64_t>* at = cq.hot[i].header.load(std::memory_order_relaxed);
    if (header::lap(at->load(std::memory_order_relaxed)) ==
        cq.hot[i].lap.load(std::memory_order_relaxed))
      return true;
  }
  return cq.doorbells->summary.load(std::memory_order_relaxed) != 0;
}

[[gnu::always_inline]] inline int poll_cq_fast(Cq& cq, int room, ibv_wc* wc) noexcept {
  if (cq.pending_count.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (const int kept = poll_pending(cq, room, wc); kept != 0) return kept;
  }
  if (!something_came(cq)) return 0;
  int got = 0;
  bool marked = false;
  {
    DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
    got = poll_stored(cq, room, wc);
    if (got < room) got += poll_rings(cq, room - got, wc + got);
    if (got < room && cq.doorbells->summary.load(std::memory_order_relaxed) != 0) [[unlikely]]
      got += poll_doorbells(cq, room - got, wc + got);
    marked = cq.marks != 0;
  }
  if (marked) [[unlikely]]
    settle_marks(cq);
  return got;
}

}  // namespace verbatim::shm
