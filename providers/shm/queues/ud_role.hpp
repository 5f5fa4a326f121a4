// SPDX-License-Identifier: BSD-2-Clause
//
// What only a UD queue pair has (datagram.hpp).
#pragma once

#include <cstdint>

#include "providers/shm/queues/endpoint_role.hpp"

namespace verbatim::shm {

struct Srq;

/// One packet: UD has no more (IBTA 9.8.4).
inline constexpr std::uint64_t kMaxDatagram = 4096;

/// A queue pair that its process shows as a member.
struct Member {
  /// In the segment of that process; to be compared, it may be gone.
  const QpRecord* record;
  std::uint32_t qpn;
  std::uint64_t process;  ///< its identity
};

/// Room for the members of a group, kept from one datagram to the next.
struct Members {
  Member* list = nullptr;
  std::uint32_t capacity = 0;
};

/// What only UD queue pairs have.
struct Datagrams : EndpointTable {
  /// Where receives are posted; nullptr when the application gave a shared queue.
  Srq* inbox = nullptr;
  Members members;  ///< of the group that was last sent to; under the send lock
  // What a datagram to a group has waited for in vain, none waits for again: somebody of the
  // fabric who could not be met, until all are; and processes that did not answer.
  bool connected_in_vain = false;
  std::uint32_t late_count = 0;  ///< ever
  std::uint64_t late[16] = {};   ///< identities, the last ones
};

}  // namespace verbatim::shm
