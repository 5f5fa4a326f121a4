// SPDX-License-Identifier: BSD-2-Clause
// One rank as a process of ours: a process group of its own, so that what it starts ends with it.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <string>

namespace verbatim::cli {

/// The ends that the launcher keeps; -1: none.
struct RankEnds {
  int pmi = -1;
  int input = -1;  ///< of rank 0
  int output = -1;
  int errors = -1;
};

struct RankStart {
  int rank = 0;
  int size = 1;
  char** program = nullptr;
  bool is_seen = false;  ///< what it writes to its stderr reaches a terminal as it is
  const cpu_set_t* processors = nullptr;  ///< null: any
  const sigset_t* signals = nullptr;      ///< blocked in it: those that were in us
};

/// Starts it; returns its number. Throws Failure.
pid_t start_rank(const RankStart& start, RankEnds& ends);

/// "exited with status 3", "was killed by signal 11 (Segmentation fault)".
std::string how_it_ended(int status);
/// As a shell says it.
int exit_status_of(int status);

}  // namespace verbatim::cli
