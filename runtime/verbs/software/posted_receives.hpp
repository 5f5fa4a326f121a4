// SPDX-License-Identifier: BSD-2-Clause
// Posted receives, of a queue pair or shared: what is kept of them, which are refused, and when a shared
// queue tells that few are left. Spec: man ibv_post_recv, ibv_post_srq_recv, ibv_modify_srq; IBTA
// 10.2.9.
//
// Receive number i lies at i modulo the places. How many were posted and how many messages have taken
// one, where that is written and under which locks, is the provider's, as the memory is: a peer may
// read the SGEs. `Sge` is any struct of an address, a length and a key, in this order.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "runtime/verbs/software/request_list.hpp"

namespace verbatim {

/// One of them, where it lies: good until its place is posted anew.
template <class Sge>
struct PostedReceive {
  std::uint64_t wr_id;
  const Sge* sges;
  std::uint32_t num_sge;
};

template <class Sge>
struct PostedReceives {
  std::uint64_t mask = 0;  ///< the places, a power of two, less one
  std::uint32_t max = 0;   ///< receives that may be posted at once
  std::uint16_t max_sge = 1;
  /// Those of a receive end with the first of no bytes, or are max_sge.
  Sge* sges = nullptr;
  std::uint64_t* wr_ids = nullptr;

  std::uint64_t at(std::uint64_t index) const noexcept { return index & mask; }
  Sge* sges_of(std::uint64_t index) const noexcept { return sges + at(index) * max_sge; }
  PostedReceive<Sge> receive(std::uint64_t index) const noexcept {
    const Sge* const first = sges_of(index);
    std::uint32_t count = 0;
    while (count < max_sge && first[count].length != 0) ++count;
    return {wr_ids[at(index)], first, count};
  }

  /// May it be posted where so many wait for messages? 0, EINVAL: it cannot be a receive of this queue;
  /// ENOMEM: the queue is full.
  [[nodiscard]] int check(const ibv_recv_wr& wr, std::uint64_t waiting) const noexcept {
    if (!has_sound_list(wr, max_sge)) return EINVAL;
    return waiting < max ? 0 : ENOMEM;
  }
  /// Keeps receive number `index`, and says how many SGEs are left of it: empty ones are not kept.
  /// REQUIRES: check().
  std::uint32_t keep(std::uint64_t index, const ibv_recv_wr& wr) const noexcept {
    Sge* const to = sges_of(index);
    std::uint32_t kept = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      const ibv_sge& sge = wr.sg_list[i];
      if (sge.length != 0) to[kept++] = {sge.addr, sge.length, sge.lkey};
    }
    if (kept < max_sge) to[kept] = {};
    wr_ids[at(index)] = wr.wr_id;
    return kept;
  }
};

/// Does an armed shared queue owe its event, now that `left` receives wait in it? Then it is unarmed:
/// `limit` is 0 (IBTA 10.2.9.3).
[[nodiscard]] inline bool falls_below(std::uint32_t& limit, std::uint64_t left) noexcept {
  if (left >= limit) [[likely]]
    return false;
  limit = 0;
  return true;
}

}  // namespace verbatim
