// SPDX-License-Identifier: BSD-2-Clause
// Two C programs (hello, or first_message) started together: how long until the message is there,
// and what they hold when idle.
#pragma once

#include <optional>
#include <string>

#include "perf/footprint/memory_use.hpp"
#include "perf/support/affinity.hpp"

namespace verbatim::perf {

struct Couple {
  std::string program;  // its path
  std::string mode;     // "idle": connected, no message; empty: one message
};

struct StartTime {
  double ns;         // from just before the first posix_spawn to the report of the message
  double waited_ns;  // how long either main thread was kept from its core
};

/// Each program
/// starts on its own core.
StartTime time_to_message(const Couple& couple, const CorePair& cores, const std::string& fabric);

/// Both started, connected and waiting.
MemoryUse idle_memory(const Couple& couple, const CorePair& cores, const std::string& fabric);

}  // namespace verbatim::perf
