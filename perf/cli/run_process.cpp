// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/run_binding.hpp"
#include "perf/support/progress.hpp"

namespace verbatim::cli {
namespace {

/// Where a rank finds its launcher.
constexpr int kPmiFd = 3;

/// What other launchers have told us is not for our ranks.
bool is_a_launchers(std::string_view variable) {
  for (const std::string_view prefix :
       {"PMI_", "PMI2_", "PMIX_", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=", "OMPI_COMM_WORLD_",
        perf::kPassedOnStderr})
    if (variable.starts_with(prefix)) return true;
  return false;
}

class Environment {
 public:
  /// `stderr_seen`: the rank's, where it reaches a terminal; else -1.
  Environment(int rank, int size, int stderr_seen) {
    for (char** each = environ; *each != nullptr; ++each)
      if (!is_a_launchers(*each)) pointers_.push_back(*each);
    own_ = {"PMI_FD=" + std::to_string(kPmiFd),        "PMI_RANK=" + std::to_string(rank),
            "PMI_SIZE=" + std::to_string(size),        "PMI_SPAWNED=0",
            "MPI_LOCALNRANKS=" + std::to_string(size), "MPI_LOCALRANKID=" + std::to_string(rank)};
    if (stderr_seen >= 0)
      own_.push_back(std::string(perf::kPassedOnStderr) + "=" + perf::stream_identity(stderr_seen));
    for (std::string& each : own_) pointers_.push_back(each.data());
    pointers_.push_back(nullptr);
  }
  char** pointers() { return pointers_.data(); }

 private:
  std::vector<std::string> own_;
  std::vector<char*> pointers_;
};

/// Both ends close with an exec; ours does not make us wait.
class Ends {
 public:
  enum class Way { kFromRank, kToRank, kBoth };
  explicit Ends(Way way) {
    int pair[2];
    const bool made = way == Way::kBoth
                          ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0
                          : pipe2(pair, O_CLOEXEC) == 0;
    if (!made)
      fail("verbatim run: no descriptors are left for a rank: %s (see 'ulimit -n')",
           std::strerror(errno));
    ours = pair[way == Way::kToRank ? 1 : 0];
    theirs = pair[way == Way::kToRank ? 0 : 1];
    (void)fcntl(ours, F_SETFL, O_NONBLOCK);
  }
  ~Ends() {
    if (ours >= 0) close(ours);
    if (theirs >= 0) close(theirs);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  int keep_ours() {
    const int fd = ours;
    ours = -1;
    return fd;
  }

  int ours;
  int theirs;
};

class FileActions {
 public:
  FileActions() { (void)posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void give(int fd, int as) {
    if (posix_spawn_file_actions_adddup2(&actions_, fd, as) != 0)
      fail("verbatim run: no memory is left");
  }
  void open_nothing(int as) {
    if (posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDONLY, 0) != 0)
      fail("verbatim run: no memory is left");
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(const sigset_t& blocked) {
    (void)posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    (void)posix_spawnattr_setsigdefault(&attributes_, &all);
    (void)posix_spawnattr_setsigmask(&attributes_, &blocked);
    (void)posix_spawnattr_setpgroup(&attributes_, 0);
    (void)posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

pid_t start_rank(const RankStart& start, RankEnds& ends) {
  Ends pmi(Ends::Way::kBoth);
  Ends output(Ends::Way::kFromRank);
  Ends errors(Ends::Way::kFromRank);
  std::optional<Ends> input;
  FileActions actions;
  if (start.rank == 0) {
    input.emplace(Ends::Way::kToRank);
    actions.give(input->theirs, STDIN_FILENO);
  } else {
    actions.open_nothing(STDIN_FILENO);
  }
  actions.give(output.theirs, STDOUT_FILENO);
  actions.give(errors.theirs, STDERR_FILENO);
  // The last: another end may have had this number.
  actions.give(pmi.theirs, kPmiFd);

  const Attributes attributes(*start.signals);
  Environment environment(start.rank, start.size, start.is_seen ? errors.theirs : -1);
  std::optional<StartedOn> bound;
  if (start.processors != nullptr) bound.emplace(*start.processors);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, start.program[0], actions.get(), attributes.get(),
                                 start.program, environment.pointers());
  if (error != 0)
    fail("verbatim run: cannot start '%s': %s", start.program[0], std::strerror(error));
  ends.pmi = pmi.keep_ours();
  ends.output = output.keep_ours();
  ends.errors = errors.keep_ours();
  if (input) ends.input = input->keep_ours();
  return pid;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* const name = strsignal(signal);
    return "was killed by signal " + std::to_string(signal) + " (" +
           (name != nullptr ? name : "a real-time signal") + ")" +
           (WCOREDUMP(status) ? ", core dumped" : "");
  }
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

int exit_status_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace verbatim::cli
