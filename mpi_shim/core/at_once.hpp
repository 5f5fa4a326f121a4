// SPDX-License-Identifier: BSD-2-Clause
// Short messages on the shortest way: a send whose message goes into a slot of the peer's ring, a
// blocking receive whose message comes there while it looks. No request is made known to anybody.
// Both do nothing unless the common case holds, which the general ways then do.
#pragma once

#include "mpi_shim/core/engine.hpp"

namespace vmpi {

/// True: the message has gone, and the buffer may be used again. REQUIRES: what was asked is set.
[[nodiscard]] bool send_at_once(const Request& send) noexcept;

/// At the peer's ring: once, or as long as it is better not to give the processor away.
enum class Looks : std::uint8_t { kOne, kMany };
/// True: the request has ended with success. False: it is to be posted.
[[nodiscard]] bool receive_at_once(Request& receive, Looks wanted) noexcept;

}  // namespace vmpi
