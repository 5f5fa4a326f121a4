// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_ranks.hpp"

#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "perf/cli/numbers.hpp"
#include "perf/cli/run_job.hpp"

namespace verbatim::cli {
namespace {

/// A look at who is there must not fall into every block that is measured meanwhile.
constexpr long kAsleepNs = 10'000'000;
constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};

void tell_and_die(int number) {
  static constexpr char kLine[] = "interrupted: what was measured till then is all\n";
  // Its own action is back by SA_RESETHAND, and it is not held by SA_NODEFER.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine, sizeof kLine - 1);
  (void)raise(number);
}

}  // namespace

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

bool ranks_share_host() {
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int here = 0, fewest = 0, ranks = 0;
  MPI_Comm_size(host, &here);
  MPI_Comm_free(&host);
  MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return fewest == ranks;
}

void meet_asleep() {
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int are_here = 0;;) {
    MPI_Test(&all, &are_here, MPI_STATUS_IGNORE);
    if (are_here != 0) return;
    const timespec pause = {0, kAsleepNs};
    (void)nanosleep(&pause, nullptr);
  }
}

void tell_when_interrupted() {
  struct sigaction action {};
  action.sa_handler = tell_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int number : kStops) {
    struct sigaction now {};
    // What our parent has set to be ignored stays so.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      (void)sigaction(number, &action, nullptr);
  }
}

UninterruptedReport::UninterruptedReport() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : kStops) sigaddset(&held, number);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

UninterruptedReport::~UninterruptedReport() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void end_all_ranks(int rank, const Failure& failure) {
  std::fprintf(stderr, "rank %d: %s\n", rank, failure.line.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, failure.status);
  std::abort();
}

}  // namespace verbatim::cli
