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
[[gnu::cold, gnu::noinline]] void progress_pending(Cq& cq) noexcept;
/// Cools rings that have been silent for long, but for one.
[[gnu::cold, gnu::noinline]] void cool_silent_rings(Cq& cq) noexcept;
/// QPs that a received message broke are moved to the error state, outside the CQ's lock.
[[gnu::cold, gnu::noinline]] void break_marked_qps(Cq& cq) noexcept;

/// After so many fruitless polls a ring is cooled, if another one is hot.
inline constexpr std::uint32_t kSilentPolls = 1u << 14;

inline void take_stored(Cq& cq, ibv_wc& wc) noexcept {
  const Completion& c = cq.ring[cq.head & cq.mask];
  wc.wr_id = c.wr_id;
  wc.status = static_cast<ibv_wc_status>(c.status);
  wc.opcode = static_cast<ibv_wc_opcode>(c.opcode);
  wc.vendor_err = c.vendor_err;
  wc.byte_len = c.byte_len;
  wc.imm_data = 0;
  wc.qp_num = c.qp->plain.qp_num;
  wc.src_qp = c.qp->own->dest_qpn;
  wc.wc_flags = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
  if (c.frees_send_queue) c.qp->sq_polled.store(c.sq_index + 1, std::memory_order_release);
  ++cq.head;
}

inline void point_at_next(HotRing& hot) noexcept {
  const Qp& qp = *hot.qp;
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  hot.header = &qp.rx_ring[index & ((std::uint64_t{1} << qp.rx_log) - 1)].header;
  hot.lap = (static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff;
}

inline int poll_rings(Cq& cq, int room, ibv_wc* wc) noexcept {
  int got = 0;
  for (std::uint32_t i = 0; i < cq.hot_count; ++i) {
    HotRing& hot = cq.hot[i];
    ++hot.misses;
    while (got < room) {
      // Pairs with the release in send_fast().
      const std::uint64_t h = hot.header->load(std::memory_order_acquire);
      if (header::lap(h) != hot.lap) break;
      Qp& qp = *hot.qp;
      const auto& slot = *reinterpret_cast<const Slot*>(
          reinterpret_cast<const unsigned char*>(hot.header) - offsetof(Slot, header));
      const Taken taken = take_message(qp, slot, h, wc[got]);
      if (taken != Taken::kCompletion) [[unlikely]] {
        if (taken == Taken::kNothing) drop_hot(cq, i--);
        break;
      }
      ++got;
      hot.misses = 0;
      point_at_next(hot);
    }
  }
  return got;
}

inline int poll_cq_fast(Cq& cq, int room, ibv_wc* wc) noexcept {
  if (cq.pending_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    progress_pending(cq);
  int got = 0;
  bool broken = false;
  {
    LockGuard<SpinLock> guard(cq.lock);
    while (cq.head != cq.tail && got < room) take_stored(cq, wc[got++]);
    if (got < room) got += poll_rings(cq, room - got, wc + got);
    if ((++cq.polls & (kSilentPolls - 1)) == 0) [[unlikely]]
      cool_silent_rings(cq);
    if (got < room && cq.doorbells->summary.load(std::memory_order_relaxed) != 0) [[unlikely]]
      got += poll_doorbells(cq, room - got, wc + got);
    broken = cq.has_broken;
  }
  if (broken) [[unlikely]]
    break_marked_qps(cq);
  return got;
}

}  // namespace verbatim::shm
