// SPDX-License-Identifier: BSD-2-Clause
//
// A shared receive queue, what its receives become when they are taken, and what a sender knows of the
// peer's (shared_receive.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/receive_store.hpp"
#include "providers/shm/wire/known_receives.hpp"
#include "runtime/base/cache_line.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;

/// The most SGEs a work request can have, of either kind.
inline constexpr std::uint32_t kMaxSge = 16;

/// A receive that was taken out of a shared queue: nobody else has it any more.
struct TakenReceive {
  std::uint64_t wr_id;
  std::uint32_t num_sge;
  ReceiveSge sges[kMaxSge];
};

/// A shared receive that belongs to message number `index` of its queue pair.
struct HeldReceive {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t index = kNone;
  TakenReceive receive;
};

/// The shared receive queue that the peer's half takes from.
struct alignas(kCacheLine) SharedCredits {
  /// Of our messages, one in so many looks what others have used up.
  static constexpr std::uint64_t kLookEvery = 64;
  const SrqRecord* record = nullptr;  ///< nullptr: it has receives of its own
  std::uint64_t store = 0;            ///< what record->store said
  const std::atomic<std::uint64_t>* credits = nullptr;
  std::uint64_t mask = 0;  ///< the number of credits, less one
  /// Of our messages, those below it need no other look than at their credit. 0 without credits.
  std::uint64_t unlooked = 0;
  std::uint64_t next = 0;  ///< receive that our next message may use up, or an older one
  KnownReceives known{};   ///< by the numbers that `next` has
};
static_assert(sizeof(SharedCredits) == kCacheLine);

struct Srq : verbatim::Srq {
  // Two lines for who posts or takes one.
  alignas(kCacheLine) BiasedLock lock;
  std::uint64_t posted = 0;
  SrqRecord* own = nullptr;
  std::uint32_t limit = 0;  ///< SRQ_LIMIT_REACHED when fewer are left; 0: not armed
  bool starving = false;    ///< a message found it empty: the next post must say so
  alignas(kCacheLine) ReceiveStore store;
  KeyHolder keys{};
  std::uint64_t offset = 0;  ///< of the store in the segment, 0 until the first receive
  std::uint64_t own_offset = 0;
  QueueMemory memory;
  Srq* next = nullptr;  ///< of all queues of the process
  Srq* prev = nullptr;
  Qp* presence = nullptr;  ///< of an XRC queue (xrc_queue.hpp)

  static Srq& from(ibv_srq* srq) noexcept { return *reinterpret_cast<Srq*>(srq); }
};

}  // namespace verbatim::shm
