// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair knows of its other half. Written only when it is attached or reset, under the send
// lock; all that a small message reads of it stands in the first two cache lines.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/cache_line.hpp"

namespace verbatim::shm {

struct Peer;

struct QpConnection {
  // On the first line is what each message needs.

  /// RTS, attached to the peer, ring made, nothing pending: the fast path may run. Any doubt clears
  /// it.
  bool fast = false;
  bool ring_always =
      false;  ///< the peer has no membarrier: ring, with a full fence, at every message
  bool self = false;
  std::uint32_t remote_rq_log = 0;  ///< places of the peer's receive queue
  Peer* peer = nullptr;
  const QpRecord* remote = nullptr;  ///< nullptr until attached
  std::uint64_t remote_session = 0;
  std::uint64_t remote_rq_mask = 0;  ///< as remote_rq_log: places, less one
  /// nullptr until the peer posted a receive; stays so when its receives are shared.
  const std::atomic<std::uint64_t>* credits = nullptr;
  /// Of an endpoint that leaves the process: the record of the queue pair, or XRC queue, to which it
  /// leads, and its number.
  const QpRecord* destination = nullptr;
  std::uint32_t destination_qpn = 0;

  std::uint32_t remote_pd = 0;
  std::uint32_t remote_region_capacity = 0;
  const RegionRecord* remote_regions = nullptr;
  /// Of its receives, remote_max_sge each; nullptr as long as `credits`.
  const ReceiveSge* receive_sges = nullptr;
  std::uint32_t remote_max_sge = 0;
};
static_assert(offsetof(QpConnection, remote_pd) < kCacheLine);

/// Memory of the peer that a WRITE, or a SEND, went to: while the record's serial says so, the next
/// one with this key goes there without looking it up again.
struct WriteTarget {
  const std::atomic<std::uint64_t>* serial = nullptr;
  std::uint64_t serial_seen = 0;
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  unsigned char* base = nullptr;  ///< where iova lies in our address space
  std::uint32_t rkey = 0;         ///< or the lkey of a receive; 0: no target known
};

/// Where requests have gone straight to.
struct DirectTargets {
  WriteTarget write{};
  WriteTarget receive{};
  /// So many messages are not placed: the last that was tried had a receive that is not mapped.
  std::uint8_t unplaced = 0;
};

/// A window of the peer's that a message of ours ends.
struct EndedKey {
  std::uint64_t serial = 0;
  std::uint32_t index = 0;
};
inline constexpr std::size_t kEndedKeys = 8;

}  // namespace verbatim::shm
