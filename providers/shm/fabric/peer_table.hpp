// SPDX-License-Identifier: BSD-2-Clause
//
// The peers we have met. The service thread makes, adds and retires; any thread looks up, holds and
// releases. A spin lock guards the list.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/peer.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {

class PeerTable {
 public:
  /// So many at a time, those included that are dead and still held; further processes are refused,
  /// with a warning.
  static constexpr std::uint32_t kMaxPeers = 4096;

  [[nodiscard]] bool full() const noexcept { return count_ >= kMaxPeers; }
  /// A peer that is in no list yet: in a resting one's place, or in new memory. nullptr: there is
  /// none.
  [[nodiscard]] Peer* make() noexcept;
  /// What make() gave, and add() did not take or take_retired() took out, gives back what it holds
  /// and rests.
  void rest(Peer* peer) noexcept;
  void add(Peer& peer) noexcept;
  /// Takes out the dead peers that nobody holds, chained through `next`.
  [[nodiscard]] Peer* take_retired(std::uint64_t died_before) noexcept;
  /// Ends all peers, whoever holds them (the process leaves the fabric). `in_doubt`: descriptors of
  /// ours are gone.
  void clear(bool in_doubt) noexcept;

  /// The owner of `qpn`: the living before the dead, and of two living claimants the one whose
  /// socket led there; nullptr also when two live and neither was reached by name. Counts a
  /// holder.
  [[nodiscard]] Peer* hold_owner(std::uint32_t qpn) noexcept;
  /// One more holder of a peer that somebody held a moment ago. False: it is being retired.
  [[nodiscard]] bool hold(Peer& peer) noexcept;
  [[nodiscard]] Peer* find_living(std::uint64_t identity) noexcept;
  /// True when a dead peer lost its last holder: the service thread should look for the retired.
  [[nodiscard]] bool release(Peer& peer) noexcept;
  /// Whether release() said true since the last call.
  [[nodiscard]] bool take_released() noexcept {
    return released_.load(std::memory_order_relaxed) &&
           released_.exchange(false, std::memory_order_acq_rel);
  }

  /// Calls `look` for each living peer, ourselves included. It must not wait. Any thread.
  void each_living(void (*look)(const Peer&, void*), void* with) noexcept;

  /// REQUIRES: on the service thread (nobody else changes the list), or the list is at rest.
  [[nodiscard]] Peer* first() const noexcept { return first_; }

  /// Position of the block of `qpn` among the peer's blocks, or kMaxBlocksPerProcess.
  [[nodiscard]] static std::uint32_t block_position(const Peer& peer, std::uint32_t qpn) noexcept;

  void lock_for_fork() noexcept { lock_.lock(); }
  void unlock_after_fork() noexcept { lock_.unlock(); }

 private:
  SpinLock lock_;
  Peer* first_ = nullptr;
  Peer* resting_ = nullptr;  ///< the service thread's own
  std::uint32_t count_ = 0;
  std::atomic<bool> released_{false};
};

}  // namespace verbatim::shm
