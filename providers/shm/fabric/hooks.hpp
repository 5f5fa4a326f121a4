// SPDX-License-Identifier: BSD-2-Clause
//
// What the service thread calls of whoever uses the fabric, which knows nothing else of it.
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;

/// What the data path does on the service thread. All noexcept, bounded, no blocking.
struct ServiceHooks {
  /// Service doorbell: look at QPs `qp_bit` mod 4096. True: and once more, after the others.
  bool (*request)(std::uint32_t qp_bit) noexcept;
  /// Serves the rings of requests that have rung, and stays while more come. True: once more, after
  /// the others.
  bool (*asked)() noexcept;
  void (*cq_wake)(std::uint32_t cq) noexcept;  ///< a peer found this CQ armed
  void (*tick)() noexcept;                     ///< 1 ms, while ticking is on; may turn it off
  void (*sweep)() noexcept;  ///< about every 50 ms while QPs are attached: repair lost hints
  /// Whenever the thread goes to sleep: does what is due by the clock (now_ns) and says when to
  /// come next, to the microsecond; ~0: when something happens.
  std::uint64_t (*due)(std::uint64_t now) noexcept;
  void (*peer_ready)(Peer&) noexcept;     ///< attached (either side connected)
  void (*peer_knows_us)(Peer&) noexcept;  ///< it was met, and its memory may be written to now
  void (*peer_dead)(Peer&) noexcept;
  void (*dead_stay)() noexcept;         ///< each second while a dead peer is held: need it be?
  void (*arena_ready)(Peer&) noexcept;  ///< a wanted arena was mapped, or refused
  void (*names_stand)(bool) noexcept;   ///< ours in the folder were lost, or are there again
  void (*failed)() noexcept;            ///< for good: nothing is served, nobody is met any more
  void (*ends)() noexcept;  ///< we leave the fabric, or the process ends: log what is to be logged
};

}  // namespace verbatim::shm
