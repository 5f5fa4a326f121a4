// SPDX-License-Identifier: BSD-2-Clause
// The frame of a command of the tool that is an MPI program: whether a launcher has started it, and
// how its ranks begin and end together. Main thread.
#pragma once

#include <mpi.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {

/// Whether this process is one of a launcher's: what it found in its environment is then MPI_Init's
/// to judge.
[[nodiscard]] bool is_started_as_rank();

/// Starts this program again as so many ranks on this host, as `verbatim run` does, with `words`
/// behind its name. Returns the exit status.
[[nodiscard]] int run_own_ranks(int ranks, std::vector<std::string> words);

/// Whether all ranks are of one host, whose clock and cores they share. By all ranks at once.
[[nodiscard]] bool ranks_share_host();

/// Returns when all ranks are here. Meanwhile they sleep, so that one of them can measure what the
/// cores do by themselves.
void meet_asleep();

/// What a rank meets that the others do not ends the job, with its line.
[[noreturn]] void end_all_ranks(int rank, const Failure& failure);

/// At the rank that reports, until the program ends: who stops it (Ctrl-C) is told by a line that
/// what was measured till then is all, and it dies of the signal.
void tell_when_interrupted();

/// While it lives no signal stops this rank: a row is printed and written, or is not.
class UninterruptedReport {
 public:
  UninterruptedReport();
  ~UninterruptedReport();
  UninterruptedReport(const UninterruptedReport&) = delete;
  UninterruptedReport& operator=(const UninterruptedReport&) = delete;

 private:
  sigset_t before_;
};

/// MPI from its beginning to its end around `run(rank, ranks)`, which returns the exit status. What
/// is `wrong` already was met by all ranks: one says so.
template <class Run>
int run_among_ranks(int argc, char** argv, const std::string& wrong, Run run) {
  // It is measured once, and not in the middle of a test.
  (void)perf::ns_per_tick();
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int status = 1;
  if (wrong.empty())
    status = run(rank, ranks);
  else if (rank == 0)
    std::fprintf(stderr, "%s\n", wrong.c_str());
  MPI_Finalize();
  return status;
}

}  // namespace verbatim::cli
