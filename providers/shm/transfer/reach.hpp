// SPDX-License-Identifier: BSD-2-Clause
//
// Reaching a peer's memory: which way leads to a range, and copies of any length along it.
//
//   tier A  mapped   the range lies in an arena that we map (or in our own process): plain copies
//   tier C  CMA      process_vm_readv / process_vm_writev, when they really worked for this peer
//   tier D  service  the peer's service thread copies for us (service_requests.hpp)
//
// Memory on demand may be missing on either side, and goes by no instruction of ours: by CMA, also
// within the process, or tier D.
//
// A copy goes in chunks, with the key looked up again before each: that is what bounds the wait of
// the peer's deregistration. REQUIRES everywhere: the QP's send lock, the QP attached.
#pragma once

#include <cstdint>

#include "providers/shm/memory/local_range.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/send_lock.hpp"

namespace verbatim::shm {

struct RemoteRange {
  std::uint32_t key;
  std::uint64_t iova;
  std::uint64_t length;
};

enum class Direction : std::uint8_t { kToPeer, kFromPeer };

/// What a copy is: `need` are the rights that the remote keys must carry.
struct Transfer {
  const LocalRange* local;
  std::uint32_t local_count;
  const RemoteRange* remote;
  std::uint32_t remote_count;
  std::uint32_t need;
  Direction direction;
};

enum class Reach : std::uint8_t {
  kDone,
  kGone,     ///< the peer's half of the connection, or its process, is not there any more
  kArena,    ///< its arena must be mapped first; asked for
  kService,  ///< only its service thread can do it
  kKernel,   ///< it is on demand: only the kernel copies, or its owner's service thread
  kDenied,   ///< no such key, not its range, not its right; or no memory is there
  kMissing,  ///< no memory is on our own side
  kNoRoom    ///< our segment has no memory left for what the way needs
};

/// Copies bytes [done, total) of a message; `done` advances also when it stops early.
Reach copy(Qp& qp, SendLock& lock, const Transfer& transfer, std::uint64_t& done,
           std::uint64_t total) noexcept;

/// The way to all of them: kDone when every one is mapped, so that no system call is needed;
/// kDenied or kKernel when one is; else what the last one that is not mapped wants.
Reach way_to_all(const Qp& qp, const RemoteRange* remote, std::uint32_t count,
                 std::uint32_t need) noexcept;

/// The way to one range now. kDone: mapped, at `mapped`.
Reach way_to(const Qp& qp, std::uint32_t key, std::uint64_t iova, std::uint64_t length,
             std::uint32_t need, unsigned char*& mapped, std::uint64_t& address) noexcept;

}  // namespace verbatim::shm
