// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

int signal_pipe[2] = {-1, -1};
volatile std::sig_atomic_t signal_seen = 0;

void on_signal(int number) {
  const int saved = errno;
  signal_seen = number;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = write(signal_pipe[1], &byte, 1);
  errno = saved;
}

}  // namespace

void catch_interrupts() {
  if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

void check_interrupt() {
  if (signal_seen != 0) throw Interrupted{signal_seen};
}

std::size_t wait_readable(std::span<const int> fds, int timeout_ms) {
  const std::uint64_t deadline = now_ns() + static_cast<std::uint64_t>(timeout_ms) * 1'000'000u;
  std::vector<pollfd> watched;
  for (const int fd : fds) watched.push_back({fd, POLLIN, 0});
  watched.push_back({signal_pipe[0], POLLIN, 0});
  while (true) {
    check_interrupt();
    const std::uint64_t now = now_ns();
    if (now >= deadline) throw TimedOut{};
    // Rounded up: a wait of 0 ms near the deadline would spin.
    const int ready =
        poll(watched.data(), watched.size(), static_cast<int>((deadline - now) / 1'000'000u) + 1);
    if (ready < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "poll");
    }
    for (std::size_t i = 0; ready > 0 && i < fds.size(); ++i) {
      if (watched[i].revents != 0) return i;
    }
  }
}

}  // namespace verbatim::perf
