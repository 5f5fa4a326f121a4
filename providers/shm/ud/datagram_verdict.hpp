// SPDX-License-Identifier: BSD-2-Clause
//
// Whether what lies on an endpoint is a datagram. Anybody of the host may send to a UD queue pair,
// so what one sender says amiss is no reason to fail it: its endpoint ends, and the others are
// heard on.
#pragma once

#include <cstdint>

#include "providers/shm/queues/qp_kind.hpp"

namespace verbatim::shm {

/// Of message `index`, by one copy of its sender's words. REQUIRES: an endpoint of UD, the receive
/// CQ's lock.
[[nodiscard]] Verdict judge_datagram(Qp& endpoint, std::uint64_t index, SlotKind kind,
                                     std::uint64_t h, std::uint64_t length,
                                     std::uint64_t start) noexcept;

}  // namespace verbatim::shm
