// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/stop_signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/deadline.hpp"
#include "perf/cli/failure.hpp"

namespace verbatim::cli {

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now;
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&watched_, signal);
    }
  }
  sigprocmask(SIG_BLOCK, &watched_, &before_);
  fd_ = signalfd(-1, &watched_, SFD_NONBLOCK | SFD_CLOEXEC);
}

StopSignals::~StopSignals() {
  if (fd_ >= 0) close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool StopSignals::pending() const {
  sigset_t set;
  if (sigpending(&set) != 0) return false;
  for (const int signal : {SIGINT, SIGTERM}) {
    if (sigismember(&set, signal) == 1 && sigismember(&watched_, signal) == 1) return true;
  }
  return false;
}

bool wait_for(int fd, short events, long milliseconds, const StopSignals& stop) {
  const Deadline deadline(milliseconds);
  for (;;) {
    pollfd fds[2] = {{fd, events, 0}, {stop.fd(), POLLIN, 0}};  // poll skips a negative fd
    const int ready = poll(fds, 2, deadline.left());
    if (ready < 0 && errno != EINTR) fail("poll failed: %s", std::strerror(errno));
    if (ready > 0 && fds[1].revents != 0) throw Stopped{};
    if (ready > 0 && fds[0].revents != 0) return true;
    if (ready == 0) return false;
  }
}

}  // namespace verbatim::cli
