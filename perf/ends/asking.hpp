// SPDX-License-Identifier: BSD-2-Clause
// The supervisor's question to some measuring processes at once, and the bounded wait for all their
// answers. Main thread.
#pragma once

#include <span>
#include <string>

#include "perf/ends/request.hpp"

namespace verbatim::perf {

/// A measuring process: its socket, and how a failure calls it.
struct Asked {
  int socket;
  std::string name;
};

/// One block at all of them. The reply is the first one's, which holds the clock and is asked last;
/// what they waited for and used is of all. Throws what any of them failed with, named `what`.
Reply ask_all(std::span<const Asked> ends, const Request& request, const std::string& what);

}  // namespace verbatim::perf
