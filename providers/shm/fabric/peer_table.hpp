// SPDX-License-Identifier: BSD-2-Clause
//
// The peers we have met. The service thread adds and removes; any thread looks up. A spin lock
// guards the list.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/peer.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {

class PeerTable {
 public:
  /// A long-lived process that nobody leaves needs no more; further processes are refused, with a
  /// warning.
  static constexpr std::uint32_t kMaxPeers = 4096;

  [[nodiscard]] bool full() const noexcept { return count_ >= kMaxPeers; }
  void add(Peer& peer) noexcept;
  /// Takes out a dead peer that nobody holds, at most one per call; nullptr when there is none.
  [[nodiscard]] Peer* take_retired(std::uint64_t died_before) noexcept;
  /// Takes out any peer (the node stops).
  [[nodiscard]] Peer* take_any() noexcept;

  /// The owner of `qpn`: the living before the dead, and of two living claimants the one whose
  /// socket led there; nullptr also when two live and neither was reached by name. `hold` counts a
  /// holder.
  [[nodiscard]] Peer* find_owner(std::uint32_t qpn, bool hold) noexcept;
  [[nodiscard]] Peer* find_identity(std::uint64_t identity) noexcept;
  void release(Peer& peer) noexcept { peer.holders.fetch_sub(1, std::memory_order_release); }

  /// REQUIRES: on the service thread (nobody else changes the list), or the list is at rest.
  [[nodiscard]] Peer* first() const noexcept { return first_; }

  /// Position of the block of `qpn` among the peer's blocks, or kMaxBlocksPerProcess.
  [[nodiscard]] static std::uint32_t block_position(const Peer& peer, std::uint32_t qpn) noexcept;

  void lock_for_fork() noexcept { lock_.lock(); }
  void unlock_after_fork() noexcept { lock_.unlock(); }

 private:
  SpinLock lock_;
  Peer* first_ = nullptr;
  std::uint32_t count_ = 0;
  std::atomic<bool> holds_used_{false};
};

/// A Peer in memory of its own: its arena table is large and mostly untouched.
[[nodiscard]] Peer* make_peer() noexcept;
/// Unmaps and closes everything. REQUIRES: not in a table.
void destroy_peer(Peer* peer) noexcept;

}  // namespace verbatim::shm
