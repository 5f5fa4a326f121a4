// SPDX-License-Identifier: BSD-2-Clause
//
// The role of a queue pair as an endpoint (endpoint.hpp), and the endpoints of one that has some.
// Who guards what is said in endpoint.hpp.
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;
struct Qp;
struct QpRecord;

/// What an endpoint has (endpoint.hpp), besides where it leads, which stands with its connection
/// (QpConnection). A handle on an XRC target has `record` and `target` too.
struct EndpointRole {
  /// The queue pair, or XRC queue, that the application knows; nullptr: this is no endpoint.
  Qp* parent = nullptr;
  Qp* next = nullptr;  ///< of those that leave the process, or that arrive at `parent`
  /// Incoming, of XRC: that of the target, which says whether and with what rights it may be used.
  const QpRecord* record = nullptr;
  Peer* record_owner = nullptr;  ///< held
  std::uint32_t target = 0;      ///< of a handle on an XRC target: its number
  std::uint64_t asked_ns = 0;    ///< outgoing: when it last asked to connect
};

/// The endpoints of a queue pair: those by which it sends, and those by which others send to it.
struct EndpointTable {
  Qp** slots = nullptr;  ///< outgoing, by destination (open addressing)
  std::uint32_t capacity = 0;
  std::uint32_t count = 0;
  Qp* incoming = nullptr;  ///< endpoints that lead here; through ep.next
};

}  // namespace verbatim::shm
