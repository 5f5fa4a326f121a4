// SPDX-License-Identifier: BSD-2-Clause
// A process beside the launcher that kills the ranks when the launcher itself is killed (SIGKILL, no
// memory): it hears of that as the end of a pipe. It is there before the first rank, so it keeps
// none of their descriptors.
#pragma once

#include <sys/types.h>

namespace verbatim::cli {

class RunGuard {
 public:
  /// Without a process or a descriptor left there is no guard, and ranks run as well.
  RunGuard();
  /// No rank is left.
  ~RunGuard();
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

  /// A process group that is to end with us.
  void watch(pid_t group) const;

 private:
  int pipe_ = -1;
  pid_t pid_ = -1;
};

}  // namespace verbatim::cli
