// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::perf {

/// What the peer must know of a queue pair before the two can talk verbs: the classic out-of-band
/// exchange. Programs of one build may send it as it lies in memory.
struct QpAddress {
  std::uint16_t lid = 0;
  std::uint32_t qpn = 0;  // 24 bits
  std::uint32_t psn = 0;  // 24 bits
  ibv_gid gid = {};
};

}  // namespace verbatim::perf
