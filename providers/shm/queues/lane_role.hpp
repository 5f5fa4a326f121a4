// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair is that takes part in lanes (lane.hpp): one end of a lane, or one that lanes leave
// or lead to. Who guards what is said there.
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;
struct PendingSend;
struct Qp;
struct QpRecord;

/// What lanes have (lane.hpp), and of it `endpoint` and `target` a handle on an XRC target, too. In every queue
/// pair: a datagram's post would wait for one load more.
struct LaneEnd {
  /// The queue pair, or XRC queue, that the application knows; nullptr: this is no lane.
  Qp* face = nullptr;
  Qp* next = nullptr;  ///< of those that leave the process, or that arrive at `face`
  /// Leaving: the record of the UD queue pair it leads to. Arriving, of XRC: that of the target,
  /// which says whether and with what rights it may be used.
  const QpRecord* endpoint = nullptr;
  Peer* endpoint_owner = nullptr;        ///< held; arriving, of XRC
  const PendingSend* sending = nullptr;  ///< leaving, of XRC: the request that it is used for
  std::uint32_t target = 0;              ///< leaving: that one's number
  std::uint64_t asked_ns = 0;            ///< leaving: when it last knocked
  bool is_unheard = false;               ///< arriving, of UD: what its sender says is taken no more
};

/// The lanes of one that they leave, or that they lead to.
struct LaneBook {
  Qp** lanes = nullptr;  ///< leaving, by destination (open addressing)
  std::uint32_t lane_capacity = 0;
  std::uint32_t lane_count = 0;
  Qp* last = nullptr;      ///< lane that was used last
  Qp* arriving = nullptr;  ///< lanes that lead here; through lane.next
};

}  // namespace verbatim::shm
