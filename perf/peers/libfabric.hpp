// SPDX-License-Identifier: BSD-2-Clause
// fi_pingpong (Debian: libfabric-bin) over libfabric's shm provider.
#pragma once

#include <optional>
#include <string>

#include "perf/support/affinity.hpp"

namespace verbatim::perf {

/// One-way nanoseconds from its table; nothing when there is no result line.
std::optional<double> parse_pingpong(const std::string& text);

struct PingpongResult {
  double ns;
  double waited_ns;
};

PingpongResult run_pingpong(std::uint64_t size, std::uint64_t count, const CorePair& cores);

}  // namespace verbatim::perf
