// SPDX-License-Identifier: BSD-2-Clause
// Standard output that could not be written: the line that says so, and who has said it already.
// Main thread.
#pragma once

#include <stdio_ext.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace verbatim::perf {

/// Drops what is left of it, so that who flushes at the program's end does not fail, and say so,
/// once more.
inline void forget_lost_output() noexcept {
  __fpurge(stdout);
  std::clearerr(stdout);
}

/// The exit status of a program that ends with `status`: a script is to see that what it reads is
/// not all.
inline int status_of_output(const char* program, int status) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return status;
  // Also of a command that has failed: what it found may have been in the output alone.
  std::fprintf(stderr, "%s: cannot write all of the output: %s\n", program,
               flushed ? "is the disk full?" : std::strerror(errno));
  return status != 0 ? status : 1;
}

}  // namespace verbatim::perf
