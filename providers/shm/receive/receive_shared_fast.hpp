// SPDX-License-Identifier: BSD-2-Clause
//
// A message that lies whole in its slot, for a receive of one SGE out of a shared queue: of a
// connected queue pair with one, and of UD and XRC, whose endpoints all end in one. Nothing is
// called on the way. What is more than that is take_slowly()'s. Under the receive CQ's lock.
#pragma once

#include "providers/shm/receive/receive_fast.hpp"

namespace verbatim::shm {

/// Is `h` of such a message, and still ours? After the peer resets, its ring's memory may speak of
/// something else.
[[gnu::always_inline]] inline bool is_whole(const Qp& qp, std::uint64_t h) noexcept {
  return qp.in.remote->tx_session.load(std::memory_order_acquire) == qp.in.remote_session &&
         header::is_plain(h) && header::inline_length(h) <= Slot::kInlineBytes &&
         qp.in.held_count == 0;
}
/// Of one that lies whole in several lines of the ring, with `length` bytes as its sender says?
[[gnu::always_inline]] inline bool is_whole_long(const Qp& qp, std::uint64_t h,
                                                 std::uint64_t length) noexcept {
  return qp.in.remote->tx_session.load(std::memory_order_acquire) == qp.in.remote_session &&
         header::is_plain_long(h) && stands_side_by_side(qp, length) && qp.in.held_count == 0;
}

/// The oldest receive goes to a message of `qp` with `bytes`, those in front of it included, if it
/// has an SGE that takes them first and nobody waits to hear that it is gone. REQUIRES: the queue's
/// lock.
[[gnu::always_inline]] inline bool use_up_for_small(Srq& srq, Qp& qp, std::uint32_t bytes,
                                                    unsigned char*& to,
                                                    std::uint64_t& wr_id) noexcept {
  const std::uint64_t taken = srq.own->taken.load(std::memory_order_relaxed);
  const std::uint64_t at = srq.store.at(taken);
  if (taken == srq.posted || srq.limit != 0) return false;
  const ReceiveSge& sge = srq.store.sges[at * srq.store.max_sge];
  if (bytes > sge.length ||
      !find_local_bytes(srq.keys, sge.lkey, sge.address, bytes, IBV_ACCESS_LOCAL_WRITE, to))
    return false;
  wr_id = srq.store.wr_ids[at];
  use_up_locked(srq, qp, taken);
  return true;
}

/// Its bytes, which take so many lines, go to `to`, and its completion to `wc`.
[[gnu::always_inline]] inline void finish_whole(Qp& qp, const unsigned char* from,
                                                std::uint32_t bytes, std::uint32_t lines,
                                                std::uint64_t h, unsigned char* to,
                                                std::uint64_t wr_id, ibv_wc& wc) noexcept {
  copy_some(to + qp.headroom, from, bytes);
  fill_receive_from(wc, ends_of_message(qp), IBV_WC_RECV, wr_id, bytes + qp.headroom, h);
  count_received(qp, bytes);
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  qp.rq.tail.store(index + 1, std::memory_order_relaxed);  // never a receive of its own
  finish_receive(qp, index, qp.in.line + lines);
}

}  // namespace verbatim::shm
