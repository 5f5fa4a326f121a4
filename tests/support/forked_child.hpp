// SPDX-License-Identifier: BSD-2-Clause
// A child of this very process, for what is promised of forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace verbatim::harness {

/// The exit status of a child that runs `body` and nothing else; -1: it did not end by itself.
template <class Body>
int run_in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace verbatim::harness
