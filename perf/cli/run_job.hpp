// SPDX-License-Identifier: BSD-2-Clause
// The ranks of one `verbatim run`, from their start to their end. Main thread; it blocks signals.
//
// A rank fails when a signal kills it, when it exits between MPI_Init and MPI_Finalize, when it
// exits with another status than 0 without MPI_Finalize, when it calls MPI_Abort, and when it speaks
// nonsense over PMI. The first that fails is told, and the others are asked to end (SIGTERM), and
// after the grace made to (SIGKILL). What ranks have started ends with them.
#pragma once

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "perf/cli/run_guard.hpp"
#include "perf/cli/run_options.hpp"
#include "perf/cli/run_output.hpp"
#include "perf/cli/run_pmi.hpp"
#include "perf/cli/run_process.hpp"

namespace verbatim::cli {

class Job {
 public:
  explicit Job(const RunOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Throws Failure when they cannot be started.
  void start();
  void run_to_the_end();
  /// Of the first rank that failed; else the first that is not 0.
  int exit_status() const { return exit_status_; }
  /// That was sent to us and that we are to die of; 0: none.
  int signal() const { return signal_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    pid_t pid;
    int pmi;
    int status = 0;
    bool has_exited = false;
    RankOutput output;
    RankOutput errors;
  };
  enum class Source { kSignals, kOurInput, kRankInput, kPmi, kOutput, kErrors };
  struct Watched {
    Source source;
    int rank;
  };

  void raise_descriptor_limit() const;
  void start_one(int rank, const cpu_set_t* processors);
  void watch(int fd, int events, Source source, int rank);
  void watch_all();
  int poll_timeout() const;
  void take_event(const Watched& what);
  void take_signals();
  void take_exits();
  void tell_exit(int rank);
  void take_input();
  void give_input();
  void take_pmi(int rank);
  void answer(int rank);
  void pass_on(RankOutput& output);
  /// What a rank prints cannot be written.
  void lose(RankOutput& output);
  void fail_rank(int exit_status);
  void send_all(int signal);
  void clean_up();
  bool has_running() const { return running_ > 0; }
  std::string name_of(int rank) const;
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  const RunOptions& options_;
  PmiServer pmi_;
  std::optional<RunGuard> guard_;
  sigset_t signals_before_;
  int signal_fd_ = -1;
  std::vector<Rank> ranks_;
  std::vector<pollfd> polled_;
  std::vector<Watched> watched_;
  int running_ = 0;
  int rank_input_ = -1;
  std::string input_;  ///< read, and not yet given to rank 0
  bool has_input_ = true;
  bool shows_prompts_ = false;
  bool is_ending_ = false;
  bool was_killed_ = false;
  Clock::time_point kill_at_;
  int told_ = 0;  ///< ranks, of which the first few have a line each
  int exit_status_ = 0;
  int signal_ = 0;
};

/// All of it. Returns the exit status; throws Failure; dies of a signal that was sent to us, when the
/// ranks have.
[[nodiscard]] int run_job(const RunOptions& options);

}  // namespace verbatim::cli
