// SPDX-License-Identifier: BSD-2-Clause
//
// The role of a queue pair as an endpoint (endpoint.hpp), and the endpoints of one that has some.
// Who guards what is said in endpoint.hpp.
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;
struct PendingSend;
struct Qp;
struct QpRecord;

/// What an endpoint has (endpoint.hpp). A handle on an XRC target has `record` and `target` too. In
/// every queue pair: a datagram's post would wait for one load more.
struct EndpointRole {
  /// The queue pair, or XRC queue, that the application knows; nullptr: this is no endpoint.
  Qp* parent = nullptr;
  Qp* next = nullptr;  ///< of those that leave the process, or that arrive at `parent`
  /// Outgoing: the record of the UD queue pair it leads to. Incoming, of XRC: that of the target,
  /// which says whether and with what rights it may be used.
  const QpRecord* record = nullptr;
  Peer* record_owner = nullptr;          ///< held; incoming, of XRC
  const PendingSend* sending = nullptr;  ///< outgoing, of XRC: the request that it is used for
  std::uint32_t target = 0;              ///< outgoing: that one's number
  std::uint64_t asked_ns = 0;            ///< outgoing: when it last asked to connect
  bool is_muted = false;                 ///< incoming, of UD: what its sender says is taken no more
};

/// The endpoints of a queue pair: those by which it sends, and those by which others send to it.
struct EndpointTable {
  Qp** slots = nullptr;  ///< outgoing, by destination (open addressing)
  std::uint32_t capacity = 0;
  std::uint32_t count = 0;
  Qp* last = nullptr;      ///< endpoint that was used last
  Qp* incoming = nullptr;  ///< endpoints that lead here; through ep.next
};

}  // namespace verbatim::shm
