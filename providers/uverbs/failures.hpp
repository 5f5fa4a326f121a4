// SPDX-License-Identifier: BSD-2-Clause
//
// Why requests of kernel devices fail, as far as this side knows: the completion has a status, the
// queue in shared memory may still hold the request, the kernel tells the queue pair's ends, and
// our own regions are known. Gathered when a completion in error is polled, off the data path; the
// first failure of each direction is remembered and said in the log once. Any thread. Nothing is
// allocated.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::uverbs {

struct Context;
struct Qp;

/// What a queue pair remembers until it is reset. Nothing is done under the lock but copying.
struct FailureRecord {
  SpinLock lock;
  bool has_send = false;
  bool has_receive = false;
  bool receive_was_first = false;
  bool ordered = false;  ///< the program moved it to ERR, and nothing had failed
  bool said = false;
  /// The first completions of the queue pair, as the driver counts those of its CQs: earlier ones
  /// are of another queue pair that had the number, or of an earlier life. 0 where the driver takes
  /// such completions out of its queues.
  std::uint64_t first_send = 0;
  std::uint64_t first_receive = 0;
  Failure send;
  Failure receive;
};

/// What a driver's queues still hold of a request.
struct SeenRequest {
  static constexpr std::uint32_t kMostSges = 32;
  enum class Side : std::uint8_t { kUnknown, kSend, kReceive };

  Side side = Side::kUnknown;
  bool found = false;  ///< what follows means something
  std::int32_t opcode = -1;
  std::uint32_t remote_key = 0;  ///< or the one to be invalidated, or the window's
  std::uint64_t remote_address = 0;
  std::uint32_t datagram_qpn = 0;
  std::uint32_t flush_type = 0;  ///< ibv_placement_type
  std::uint64_t bytes = 0;
  std::uint32_t window_region = 0;  ///< lkey of what a window is to show; its range is the remote
  std::uint32_t window_access = 0;
  std::uint32_t sge_count = 0;  ///< 0 of inline data
  ibv_sge sges[kMostSges] = {};

  void add(std::uint64_t address, std::uint32_t length, std::uint32_t lkey) noexcept {
    if (sge_count < kMostSges) sges[sge_count++] = {address, length, lkey};
  }
};

/// What a driver adds (Context::eyes). The first two may be called under the context's table of
/// objects.
struct FailureEyes {
  /// Looks for the request of a completion that `cq` gave.
  void (*find_request)(Qp& qp, const ibv_cq& cq, const ibv_wc& wc, SeenRequest& out) noexcept;
  /// Fills what is known of the two ends: own_state, remote_qpn, place, times and tries.
  void (*see_ends)(Qp& qp, Failure& out) noexcept;
  /// Fills the place where that is dear to know: what it costs grows with the connections there
  /// are, so it is for those who ask, and for the first lines of the log. Under no lock: it may
  /// wait for seconds, and the queue pair may be gone meanwhile. Null: see_ends did.
  void (*see_place)(Context& context, std::uint32_t qpn, RemotePlace& out) noexcept;
};

/// Completions that have been polled, some of them in error. `first`: how many the CQ had given
/// before, where the driver counts. REQUIRES: no lock of the data path.
[[gnu::cold, gnu::noinline]] void note_failures(const ibv_cq& cq, const ibv_wc* wc, int count,
                                                std::uint64_t first = 0) noexcept;
/// An event that tells of a refused request of the peer's (QP_REQ_ERR, QP_ACCESS_ERR).
void note_event(Qp& qp, ibv_event_type type) noexcept;
/// The program has moved a queue pair to ERR in which nothing was wrong.
void note_ordered(Qp& qp) noexcept;
/// It is reset.
void forget_failures(Qp& qp) noexcept;

/// see_ends() of drivers whose kernel answers query_qp in full.
void ask_for_ends(Qp& qp, Failure& out) noexcept;
/// The slot.
int explain_qp(verbatim::Qp& qp, const FailedCompletion* completion, Failure& out) noexcept;

}  // namespace verbatim::uverbs
