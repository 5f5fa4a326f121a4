// SPDX-License-Identifier: BSD-2-Clause
// Runs a program that gets less from the system than whoever started it:
//   conditioned "limit memlock 65536" "deny process_vm_readv" -- <file> <name> <argument> ...
// The file is opened first, since the conditions may take the right to reach it.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/condition.hpp"

int main(int argc, char** argv) {
  int at = 1;
  while (at < argc && std::strcmp(argv[at], "--") != 0) ++at;
  if (at + 2 >= argc) return 127;
  const int file = open(argv[at + 1], O_RDONLY);
  for (int i = 1; i < at; ++i) {
    setenv(verbatim::harness::kCondition, argv[i], 1);
    verbatim::harness::apply_condition();
  }
  unsetenv(verbatim::harness::kCondition);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  fexecve(file, argv + at + 2, environ);
  std::perror(argv[at + 1]);
  return 127;
}
