// SPDX-License-Identifier: BSD-2-Clause
// ucx_perftest (Debian: ucx-utils) over UCX's shared-memory transports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "perf/support/affinity.hpp"

namespace verbatim::perf {

enum class UcxOver {
  kTransport,  // UCT over posix, short messages
  kTag,        // UCP with posix and cma
  kDropIn,     // UCP with rc_verbs, on our libibverbs.so.1
};

struct UcxTest {
  std::string name;         // -t
  std::uint64_t size = 8;   // -s
  std::uint64_t count = 0;  // -n
  UcxOver over = UcxOver::kTransport;
  std::string fabric = {};  // of kDropIn: the folder where its processes meet
  bool sleeps = false;      // -E sleep
};

struct UcxResult {
  double messages_per_second;  // one way
  double waited_ns = 0;
  double latency_ns() const { return 1e9 / messages_per_second; }
};

/// From the comma-separated output (-f -v); nothing when the last line is no result.
std::optional<UcxResult> parse_ucx(const std::string& text);

/// One run. Throws as run_programs, or when the output is not understood.
UcxResult run_ucx(const UcxTest& test, const CorePair& cores);

}  // namespace verbatim::perf
