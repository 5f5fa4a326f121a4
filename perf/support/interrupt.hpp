// SPDX-License-Identifier: BSD-2-Clause
// Ctrl-C as an exception: the signal handler only writes to a pipe that every wait of the
// supervisor also watches, so that all destructors run (children ended, folders removed) before the
// program leaves.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

namespace verbatim::perf {

struct Interrupted {
  int signal;
};

struct TimedOut : std::runtime_error {
  TimedOut() : std::runtime_error("no answer in time") {}
};

/// Call once, at the start of main. SIGINT, SIGTERM and SIGHUP are turned into Interrupted.
void catch_interrupts();

/// Waits until one of `fds` is readable (or at its end) and returns which; negative ones are passed
/// over. Throws Interrupted, and TimedOut after `timeout_ms`.
std::size_t wait_readable(std::span<const int> fds, int timeout_ms);

/// Throws Interrupted if a signal has come; for loops that do not wait.
void check_interrupt();

}  // namespace verbatim::perf
