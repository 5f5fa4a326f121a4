// SPDX-License-Identifier: BSD-2-Clause
//
// Another process of this host (or ourselves, for loopback), as the service thread has come to know
// it.
//
// Peers are made and retired by the service thread only. What the data path found by
// Process::hold_peer stays as it is until Process::release_peer: a dead peer keeps its mappings, so
// that a message it had published is still readable; only `alive` and the tier words change. A dead
// peer that nobody holds is retired soon.
//
// Retired peers rest: their descriptors are closed and their memory is given back, but the Peer
// itself and the addresses of its segment serve the next peer. A poll that looked up where the next
// message will appear, and is late to look there, so reads zeros or a stranger's bytes, which its
// second look under the lock finds out, and never faults.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "providers/shm/fabric/event_source.hpp"
#include "providers/shm/fabric/segment.hpp"
#include "runtime/base/kept_fd.hpp"

namespace verbatim::shm {

struct Connection;

inline constexpr std::uint32_t kMaxArenas = 1024;

/// May memory of the peer be copied by process_vm_readv/writev? Really tried once when we met.
enum class Cma : std::uint32_t { kUntried = 0, kWorks = 1, kRefused = 2 };

struct Arena {
  /// nullptr until the descriptor has been fetched and mapped; set last (release).
  std::atomic<unsigned char*> base{nullptr};
  std::uint64_t size = 0;
};

/// One bit per arena.
struct ArenaBits {
  std::atomic<std::uint64_t> words[kMaxArenas / 64] = {};

  bool test(std::uint32_t n) const noexcept {
    return (words[n / 64].load(std::memory_order_acquire) >> (n % 64) & 1) != 0;
  }
  /// True when the bit was not set before.
  bool set(std::uint32_t n) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (n % 64);
    return (words[n / 64].fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
  }
  void clear(std::uint32_t n) noexcept {
    words[n / 64].fetch_and(~(std::uint64_t{1} << (n % 64)), std::memory_order_acq_rel);
  }
};

struct Peer {
  PeerSegment segment;
  std::uint64_t identity = 0;
  pid_t pid = 0;      ///< in our pid namespace, from SO_PEERCRED; 0 when not visible
  bool self = false;  ///< loopback: pid is ours, arenas are our own
  KeptFd pidfd;
  KeptFd wake;  ///< a socket of ours that leads to it; our eventfd in `self`
  std::atomic<bool> alive{true};
  /// It has met us, as far as we know: until then it waits for no copy of ours when it takes memory
  /// away, and we make none.
  std::atomic<bool> knows_us{false};
  std::atomic<Cma> cma{Cma::kUntried};
  std::atomic<bool> sender_fence{
      false};  ///< the peer or we cannot use membarrier: pay a fence when sending
  std::atomic<std::uint32_t> wanted_arena_count{0};
  std::atomic<std::uint32_t> holders{0};  ///< by Process::hold_peer
  std::uint32_t endpoints = 0;  ///< that it has to queue pairs of ours; counted by who makes them
  Peer* next = nullptr;

  // --- the service thread's own
  static constexpr std::uint32_t kMaxConnections = 2;  ///< both sides may have connected at once
  Connection* connections[kMaxConnections] = {};
  std::uint32_t reached[kMaxBlocksPerProcess] = {};  ///< blocks whose socket led here
  std::atomic<std::uint32_t> reached_count{0};
  std::uint64_t segment_inode = 0;
  KeptFd life_fd;  ///< its segment, kept open where a record lock tells whether it lives
  std::uint64_t died_at = 0;
  std::uint64_t lost_at = 0;  ///< its last connection ended then, and it is looked for; 0: no
  std::uint64_t sought_at = 0;
  ArenaBits asked;  ///< wanted by us, not answered
  ArenaBits sent;   ///< ... and the question is on its way
  ArenaBits refused;
  EventSource death{EventSource::kDeath, this};  ///< the pidfd in the service thread's epoll

  Arena arenas[kMaxArenas];

  /// Whether the name of the block of `qpn` led to it: what it says itself of its numbers can be
  /// made up.
  [[nodiscard]] bool reached_by_name(std::uint32_t qpn) const noexcept {
    const std::uint32_t known = reached_count.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < known; ++i) {
      if (reached[i] == qpn >> kQpnBlockBits) return true;
    }
    return false;
  }
  /// Wakes the peer's service thread. A system call; never blocks.
  void wake_service() noexcept;
};

}  // namespace verbatim::shm
