// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_ranks.hpp"

#include <unistd.h>

#include <cstdlib>

#include "perf/cli/numbers.hpp"
#include "perf/cli/run_job.hpp"

namespace verbatim::cli {

bool is_started_as_rank() {
  for (const char* const name :
       {"PMI_FD", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMI_ID", "PMIX_NAMESPACE", "PMIX_RANK"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr && number_in(tasks, 2, 1 << 20).has_value();
}

int run_own_ranks(int ranks, std::vector<std::string> words) {
  char own[4096];
  const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (length <= 0) fail("this program cannot find its own file to start its ranks (/proc)");
  own[length] = '\0';
  std::vector<char*> program = {own};
  for (std::string& word : words) program.push_back(word.data());
  program.push_back(nullptr);
  RunOptions options;
  options.ranks = ranks;
  options.program = program.data();
  return run_job(options);
}

void end_all_ranks(int rank, const Failure& failure) {
  std::fprintf(stderr, "rank %d: %s\n", rank, failure.line.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, failure.status);
  std::abort();
}

}  // namespace verbatim::cli
