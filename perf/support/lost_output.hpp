// SPDX-License-Identifier: BSD-2-Clause
// Standard output that could not be written, of which a line has been said. Main thread.
#pragma once

#include <stdio_ext.h>

#include <cstdio>

namespace verbatim::perf {

/// Drops what is left of it, so that who flushes at the program's end does not fail, and say so,
/// once more.
inline void forget_lost_output() noexcept {
  __fpurge(stdout);
  std::clearerr(stdout);
}

}  // namespace verbatim::perf
