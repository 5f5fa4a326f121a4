// SPDX-License-Identifier: BSD-2-Clause
//
// Where the next message of a ring that is polled directly will appear.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// REQUIRES: the CQ's lock.
inline void point_at_next(HotRing& hot) noexcept {
  const Qp& qp = *hot.qp;
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  if (qp.in.pack.has(index)) {
    hot.header.store(&kKeptMessage.header, std::memory_order_relaxed);
    hot.lap.store(0, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << qp.in.log) - 1;
  hot.header.store(&qp.in.ring[qp.in.line & mask].header, std::memory_order_relaxed);
  hot.last = &qp.in.ring[mask].header;
  hot.lap.store(header::lap_of(qp.in.line, qp.in.log), std::memory_order_relaxed);
}

}  // namespace verbatim::shm
