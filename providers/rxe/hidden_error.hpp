// SPDX-License-Identifier: BSD-2-Clause
// A request that fails on our own side (its key, its window) ends in a status that says why. Linux
// 6.12's driver writes that into the request's slot, and then flushes the request like those behind
// it; 6.1's completes it. So a flushed completion is looked up in the queue that it may be of.
// Where a queue pair has come to ERR only: nothing here is on the data path. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "runtime/sync/mutex.hpp"

namespace verbatim::rxe {

struct Cq;
struct Qp;

/// What a queue pair's send queue hides. Kept with it, since completions of many come in turns, and
/// what is kept by number alone would outlive it. Until RESET its queue is searched once.
struct HiddenError {
  Mutex mutex;
  bool is_searched = false;  ///< it is in ERR, where no other request fails any more
  bool is_unclean = false;   ///< its slots may still show what failed in an earlier life
  bool is_there = false;     ///< a completion with what follows has still to come
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint64_t wr_id = 0;
};

/// Gives what was flushed the status that its slot has, once. `first`: how many the CQ had given
/// before. REQUIRES: no lock of the data path.
void unhide_errors(Cq& cq, ibv_wc* wc, int count, std::uint64_t first) noexcept;
/// A queue pair is new, or begins anew: what waits in its CQs is of one that had its number before,
/// or of an earlier life. Either may be null.
void begin_life(Qp& qp, ibv_cq* send_cq, ibv_cq* recv_cq) noexcept;
/// It begins anew: what waits there, and what its slots hold, is of an earlier life.
void forget_hidden_errors(Qp& qp) noexcept;
/// It moves: what could not be forgotten, since somebody was building requests, is forgotten now.
void forget_the_rest(Qp& qp) noexcept;
/// Called before the queue pair drains. Linux 6.12's driver takes the slot behind the last request
/// for one that is under way, if it looks so: a queue that went round once would drain for ever.
void clean_free_slots(Qp& qp) noexcept;

}  // namespace verbatim::rxe
