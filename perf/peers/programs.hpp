// SPDX-License-Identifier: BSD-2-Clause
// Running another library's measuring program as it is meant to be run: a server and a client that
// meet on a TCP port of the loopback interface, each pinned to one of our two cores.
#pragma once

#include <string>
#include <vector>

#include "perf/support/affinity.hpp"

namespace verbatim::perf {

struct Programs {
  std::vector<std::string> server;  // "%PORT%" stands for the port
  std::vector<std::string> client;
  std::vector<std::string> environment;
};

struct ProgramsRun {
  std::string output;    // of the client
  double waited_ns = 0;  // how long either main thread was kept from its core
};

/// Runs both to their end. Throws std::runtime_error with the end of its output when one of them
/// fails, Interrupted on Ctrl-C.
ProgramsRun run_programs(const Programs& programs, const CorePair& cores);

/// If this program was started to pin and become another one (by run_programs), does so and does
/// not return.
void become_program_if_asked(int argc, char** argv);

}  // namespace verbatim::perf
