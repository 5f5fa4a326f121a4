// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

#include "perf/cli/run_options.hpp"

namespace verbatim::cli {
namespace {

/// The guard's whole life. Another process than the launcher's, with one thread.
[[noreturn]] void guard(int pipe) {
  // Out of the terminal's reach, and holding nothing open that somebody waits to be closed.
  (void)setpgid(0, 0);
  (void)dup2(pipe, STDIN_FILENO);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    close(fd);
    (void)open("/dev/null", O_WRONLY);
  }
  (void)syscall(SYS_close_range, 3u, ~0u, 0u);
  pid_t groups[kMostRanks];
  int count = 0;
  for (;;) {
    pid_t group = 0;
    const ssize_t got = read(STDIN_FILENO, &group, sizeof(group));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(group))) break;
    if (group == 0) _exit(0);
    if (count < kMostRanks) groups[count++] = group;
  }
  for (int i = 0; i < count; ++i) (void)kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

RunGuard::RunGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

RunGuard::~RunGuard() {
  watch(0);
  if (pipe_ >= 0) close(pipe_);
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void RunGuard::watch(pid_t group) const {
  while (pipe_ >= 0 && write(pipe_, &group, sizeof(group)) < 0 && errno == EINTR) {
  }
}

}  // namespace verbatim::cli
