// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_job.hpp"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "perf/cli/failure.hpp"
#include "perf/cli/run_binding.hpp"

namespace verbatim::cli {
namespace {

constexpr int kMostTold = 8;
constexpr auto kPromptDelay = std::chrono::milliseconds(200);

[[gnu::format(printf, 1, 2)]] void tell(const char* format, ...) {
  char line[1024];
  std::va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  std::string text = "verbatim run: ";
  text.append(line).append("\n");
  (void)write_all(STDERR_FILENO, text);
}

}  // namespace

Job::Job(const RunOptions& options)
    : options_{options}, pmi_{options.ranks, "verbatim_" + std::to_string(getpid())} {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&ours, each);
  sigprocmask(SIG_BLOCK, &ours, &signals_before_);
  // Who reads what ranks print may go first: that is an error of a write, which ends them.
  (void)::signal(SIGPIPE, SIG_IGN);
  // An ignored SIGCHLD, inherited, would take the exits of ranks away.
  (void)::signal(SIGCHLD, SIG_DFL);
  signal_fd_ = signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd_ < 0) fail("verbatim run: no descriptor is left: %s", std::strerror(errno));
  shows_prompts_ = isatty(STDOUT_FILENO) != 0;
}

Job::~Job() {
  clean_up();
  if (rank_input_ >= 0) close(rank_input_);
  if (signal_fd_ >= 0) close(signal_fd_);
  sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
}

void Job::raise_descriptor_limit() const {
  const rlim_t needed = 64 + 3 * static_cast<rlim_t>(options_.ranks);
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void Job::start_one(int rank, const cpu_set_t* processors) {
  RankEnds ends;
  RankStart start;
  start.rank = rank;
  start.size = options_.ranks;
  start.program = options_.program;
  start.is_seen = rank == 0 && !options_.has_prefix && isatty(STDERR_FILENO) == 1;
  start.processors = processors;
  start.signals = &signals_before_;
  const pid_t pid = start_rank(start, ends);
  guard_->watch(pid);
  const std::string prefix = options_.has_prefix ? "[" + std::to_string(rank) + "] " : "";
  ranks_.push_back(Rank{pid, ends.pmi, 0, false, RankOutput(ends.output, STDOUT_FILENO, prefix),
                        RankOutput(ends.errors, STDERR_FILENO, prefix)});
  if (ends.input >= 0) rank_input_ = ends.input;
  ++running_;
}

void Job::start() {
  guard_.emplace();
  raise_descriptor_limit();
  std::vector<cpu_set_t> cores;
  if (options_.binding != Binding::kNone) cores = allowed_cores();
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  const bool binds =
      !cores.empty() && (options_.binding == Binding::kCore || cores.size() >= ranks);
  ranks_.reserve(ranks);
  for (std::size_t i = 0; i < ranks; ++i)
    start_one(static_cast<int>(i), binds ? &cores[i % cores.size()] : nullptr);
}

void Job::watch(int fd, int events, Source source, int rank) {
  if (fd < 0) return;
  polled_.push_back({fd, static_cast<short>(events), 0});
  watched_.push_back({source, rank});
}

void Job::watch_all() {
  polled_.clear();
  watched_.clear();
  for (int i = 0; i < options_.ranks; ++i) {
    // In this order: a progress line is wiped away before what follows it is printed.
    watch(of(i).errors.fd(), POLLIN, Source::kErrors, i);
    watch(of(i).output.fd(), POLLIN, Source::kOutput, i);
    const int answering = pmi_.answers(i).empty() ? 0 : POLLOUT;
    watch(of(i).pmi, POLLIN | answering, Source::kPmi, i);
  }
  if (rank_input_ >= 0) {
    if (!input_.empty()) watch(rank_input_, POLLOUT, Source::kRankInput, 0);
    // A terminal whose foreground is another job's stops who reads it.
    const pid_t foreground = tcgetpgrp(STDIN_FILENO);
    if (input_.empty() && has_input_ && (foreground < 0 || foreground == getpgrp()))
      watch(STDIN_FILENO, POLLIN, Source::kOurInput, 0);
  }
  // The last, so that what a rank had to say is known when it has ended.
  watch(signal_fd_, POLLIN, Source::kSignals, 0);
}

int Job::poll_timeout() const {
  if (shows_prompts_ && of(0).output.has_partial_line())
    return static_cast<int>(kPromptDelay.count());
  if (!is_ending_ || was_killed_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(kill_at_ - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

void Job::run_to_the_end() {
  while (has_running()) {
    watch_all();
    const int ready = poll(polled_.data(), polled_.size(), poll_timeout());
    if (ready < 0 && errno != EINTR) fail("verbatim run: poll failed: %s", std::strerror(errno));
    if (ready == 0 && shows_prompts_ && !of(0).output.flush()) lose(of(0).output);
    for (std::size_t i = 0; ready > 0 && i < polled_.size(); ++i)
      if (polled_[i].revents != 0) take_event(watched_[i]);
    for (int i = 0; i < options_.ranks; ++i) answer(i);
    if (is_ending_ && !was_killed_ && Clock::now() >= kill_at_) {
      was_killed_ = true;
      send_all(SIGKILL);
    }
  }
  clean_up();
  // What they printed last; who holds a pipe still is none of ours.
  for (Rank& rank : ranks_) {
    for (RankOutput* const each : {&rank.output, &rank.errors}) {
      if (each->fd() >= 0) pass_on(*each);
      if (!each->flush()) lose(*each);
      each->close();
    }
  }
  if (told_ > kMostTold) tell("and %d more ranks", told_ - kMostTold);
}

void Job::take_event(const Watched& what) {
  switch (what.source) {
    case Source::kSignals:
      return take_signals();
    case Source::kOurInput:
      return take_input();
    case Source::kRankInput:
      return give_input();
    case Source::kPmi:
      return take_pmi(what.rank);
    case Source::kOutput:
      return pass_on(of(what.rank).output);
    case Source::kErrors:
      return pass_on(of(what.rank).errors);
  }
}

void Job::take_signals() {
  signalfd_siginfo news;
  while (read(signal_fd_, &news, sizeof(news)) == static_cast<ssize_t>(sizeof(news))) {
    const int number = static_cast<int>(news.ssi_signo);
    if (number == SIGCHLD) {
      take_exits();
      continue;
    }
    // The second time they have no choice.
    const bool is_again = signal_ != 0;
    if (signal_ == 0) signal_ = number;
    if (!is_ending_)
      kill_at_ = Clock::now() +
                 std::chrono::milliseconds(static_cast<long>(options_.grace_seconds * 1000));
    is_ending_ = true;
    send_all(is_again ? SIGKILL : number);
  }
}

void Job::take_exits() {
  std::vector<int> exited;
  for (int i = 0; i < options_.ranks; ++i) {
    Rank& rank = of(i);
    if (rank.has_exited) continue;
    // They stay to be waited for, so that their numbers, and those of their groups, stay theirs.
    siginfo_t info;
    info.si_pid = 0;
    if (waitid(P_PID, static_cast<id_t>(rank.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      continue;
    rank.has_exited = true;
    rank.status = info.si_code == CLD_EXITED
                      ? (info.si_status & 0xff) << 8
                      : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    --running_;
    exited.push_back(i);
  }
  // All that have ended by now are told, before the first of them ends the others.
  const bool was_ending = is_ending_;
  for (const int rank : exited) {
    take_pmi(rank);
    pass_on(of(rank).output);
    pass_on(of(rank).errors);
    if (!was_ending) tell_exit(rank);
  }
}

void Job::tell_exit(int number) {
  const int status = of(number).status;
  const bool is_within = pmi_.is_within(number);
  const bool is_missed = !pmi_.leave(number);
  if (status == 0 && is_missed) {
    tell("%s exited without MPI_Init, in which others wait for it", name_of(number).c_str());
    return fail_rank(1);
  }
  if (status == 0 && !is_within) return;
  const std::string how = how_it_ended(status);
  const bool has_failed = WIFSIGNALED(status) || is_within || !pmi_.has_ended(number);
  if (told_++ < kMostTold)
    tell("%s %s%s", name_of(number).c_str(), how.c_str(),
         is_within && WIFEXITED(status) ? " before MPI_Finalize" : "");
  if (has_failed) {
    fail_rank(status == 0 ? 1 : exit_status_of(status));
  } else if (exit_status_ == 0) {
    exit_status_ = exit_status_of(status);
  }
}

void Job::take_input() {
  if (rank_input_ < 0) return;
  char bytes[65536];
  const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    has_input_ = false;
    close(std::exchange(rank_input_, -1));
    return;
  }
  input_.assign(bytes, static_cast<std::size_t>(got));
  give_input();
}

void Job::give_input() {
  if (rank_input_ < 0) return;
  const ssize_t given = write(rank_input_, input_.data(), input_.size());
  if (given > 0) input_.erase(0, static_cast<std::size_t>(given));
  if (given >= 0 || errno == EAGAIN || errno == EINTR) return;
  // Rank 0 reads no more.
  input_.clear();
  close(std::exchange(rank_input_, -1));
}

void Job::take_pmi(int number) {
  Rank& rank = of(number);
  char bytes[8192];
  while (rank.pmi >= 0) {
    const ssize_t got = recv(rank.pmi, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(std::exchange(rank.pmi, -1));
      return;
    }
    const PmiEvent event = pmi_.take(number, {bytes, static_cast<std::size_t>(got)});
    if (event.kind == PmiEvent::Kind::kNone) {
      answer(number);
      continue;
    }
    close(std::exchange(rank.pmi, -1));
    pass_on(rank.errors);
    if (event.kind == PmiEvent::Kind::kAbort) {
      if (!is_ending_)
        tell("%s called MPI_Abort with code %d%s%s", name_of(number).c_str(), event.code,
             event.text.empty() ? "" : ": ", event.text.c_str());
      const int code = event.code & 0xff;
      fail_rank(code == 0 ? 1 : code);
    } else {
      if (!is_ending_)
        tell("%s was ended, since it does not speak PMI-1: %s", name_of(number).c_str(),
             event.text.c_str());
      fail_rank(1);
      // It is not asked: who knows what it is.
      if (!rank.has_exited) (void)kill(-rank.pid, SIGKILL);
    }
    return;
  }
}

void Job::answer(int number) {
  Rank& rank = of(number);
  std::string& answers = pmi_.answers(number);
  if (answers.empty()) return;
  if (rank.pmi < 0) {
    answers.clear();
    return;
  }
  const ssize_t sent = send(rank.pmi, answers.data(), answers.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) answers.erase(0, static_cast<std::size_t>(sent));
}

void Job::pass_on(RankOutput& output) {
  if (output.fd() < 0 || output.pass_on()) return;
  lose(output);
}

void Job::lose(RankOutput& output) {
  output.close();
  // Nobody reads what they print: they end as a program does that gets SIGPIPE.
  if (output.error() == EPIPE) return fail_rank(128 + SIGPIPE);
  if (!is_ending_) tell("cannot write all of the output: %s", std::strerror(output.error()));
  fail_rank(1);
}

void Job::fail_rank(int exit_status) {
  if (is_ending_) return;
  exit_status_ = exit_status;
  is_ending_ = true;
  kill_at_ =
      Clock::now() + std::chrono::milliseconds(static_cast<long>(options_.grace_seconds * 1000));
  send_all(SIGTERM);
}

void Job::send_all(int number) {
  for (const Rank& rank : ranks_) {
    if (rank.has_exited) continue;
    (void)kill(-rank.pid, number);
    // One that is stopped hears nothing else.
    if (number != SIGKILL) (void)kill(-rank.pid, SIGCONT);
  }
}

void Job::clean_up() {
  // What a rank has started is in its group, whose number is its own until it is waited for.
  for (Rank& rank : ranks_) {
    if (rank.pid <= 0) continue;
    (void)kill(-rank.pid, SIGKILL);
    while (waitpid(rank.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    rank.pid = 0;
    if (rank.pmi >= 0) close(std::exchange(rank.pmi, -1));
  }
}

std::string Job::name_of(int rank) const {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(of(rank).pid) + ")";
}

}  // namespace verbatim::cli
