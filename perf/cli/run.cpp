// SPDX-License-Identifier: BSD-2-Clause
// `verbatim run`: starts the ranks of an MPI program on this host. Main thread.
#include <signal.h>

#include <cstdio>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/run_job.hpp"
#include "perf/cli/run_options.hpp"
#include "perf/cli/run_sweep.hpp"

namespace verbatim::cli {
namespace {

void run_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s -n <ranks> [options] <program> [arguments]\n"
      "                        start an MPI program's ranks on this host\n"
      "\n"
      "Options:\n"
      "  -n, -np <ranks>       how many (default 1)\n"
      "  --prefix, -l          print '[rank] ' before each line of their output\n"
      "  --bind-to core|none   each rank to a core of its own, neighbours near each other, or to\n"
      "                        none (default: core, when there is one for each rank)\n"
      "  --grace <seconds>     what ranks have to end in when one has failed (default 3)\n"
      "  -ppn <ranks>          as mpiexec has it: no fewer than -n, since there is one host\n"
      "  -h, --help            print a help text and exit\n"
      "\n"
      "When a rank fails (a signal kills it, it calls MPI_Abort, it exits before MPI_Finalize), a\n"
      "line says which and how, and the others are ended. The exit status is that of the first\n"
      "rank that failed, 128 and the signal's number if one killed it. Standard input goes to\n"
      "rank 0; SIGINT, SIGTERM and SIGHUP go to all, and those that come again kill.\n",
      name);
}

}  // namespace

int run_job(const RunOptions& options) {
  int signal = 0;
  int status = 1;
  {
    Job job(options);
    job.start();
    job.run_to_the_end();
    status = job.exit_status();
    signal = job.signal();
    if (status != 0 || signal != 0) sweep_fabric_folder();
  }
  if (signal == 0) return status;
  // Whoever started us sees that it was the signal.
  (void)std::fflush(nullptr);
  (void)::signal(signal, SIG_DFL);
  (void)::raise(signal);
  return 128 + signal;
}

int run(Calling, int argc, char** argv) {
  try {
    const RunOptions options = parse_run(argc, argv);
    if (options.wants_help) {
      run_usage(argv[0]);
      return 0;
    }
    return run_job(options);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
