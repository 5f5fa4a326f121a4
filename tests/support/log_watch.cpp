// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/log_watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>

namespace verbatim::harness {
namespace {

LogWatch* the_watch = nullptr;
constexpr std::string_view kMarker = "\x01 end of test ";

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// Tests with thousands of failures look at what the heap has grown by.
constexpr std::size_t kMostExplanations = 16;

/// A line of the library's, which at its default level are warnings and errors.
bool is_complaint(std::string_view line) {
  return line.find("verbatim: ") != std::string_view::npos;
}

/// "verbatim: QP 0x05d000 (RC, process 812 client) ...".
bool is_explanation(std::string_view line) {
  if (line.find("failures are said here") != std::string_view::npos) return true;
  // An XRC queue's stands in the place of a queue pair that only others have.
  const std::size_t queue = line.find("verbatim: XRC SRQ 0x");
  if (queue != std::string_view::npos)
    return line.find(" by QP 0x", queue) != std::string_view::npos;
  const std::size_t at = line.find("verbatim: QP 0x");
  return at != std::string_view::npos && line.find(", process ", at) < at + 40;
}

}  // namespace

LogWatch::LogWatch() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return;
  original_stderr_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
  dup2(fds[1], STDERR_FILENO);
  close(fds[1]);
  pipe_read_ = fds[0];
  reader_ = std::thread([this] { read_until_closed(); });
  the_watch = this;
}

LogWatch::~LogWatch() {
  the_watch = nullptr;
  if (original_stderr_ < 0) return;
  // Closes the pipe's last writing end, unless a child outlived the tests; then the marker ends it.
  synchronise();
  write_all(STDERR_FILENO, std::string(kMarker) + "0\n");
  dup2(original_stderr_, STDERR_FILENO);
  reader_.join();
  close(pipe_read_);
  close(original_stderr_);
}

LogWatch* LogWatch::instance() { return the_watch; }

void LogWatch::read_until_closed() {
  std::string pending;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(pipe_read_, buffer, sizeof buffer);
    if (n <= 0) return;
    pending.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
      const std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      const std::size_t marker = line.find(kMarker);
      if (marker == std::string::npos) {
        take_line(line);
        continue;
      }
      if (marker != 0) take_line(line.substr(0, marker));
      const unsigned number =
          static_cast<unsigned>(std::stoul(line.substr(marker + kMarker.size())));
      if (number == 0) return;
      const std::lock_guard lock(mutex_);
      marker_read_ = number;
      marker_seen_.notify_all();
    }
  }
}

void LogWatch::take_line(const std::string& line) {
  write_all(original_stderr_, line + "\n");
  if (!is_complaint(line)) return;
  const std::lock_guard lock(mutex_);
  if (!is_explanation(line))
    complaints_.push_back(line);
  else if (explanations_.size() < kMostExplanations)
    explanations_.push_back(line);
}

/// Waits until the reader has seen everything that was written so far.
void LogWatch::synchronise() {
  std::unique_lock lock(mutex_);
  const unsigned mine = ++marker_sent_;
  lock.unlock();
  write_all(STDERR_FILENO, std::string(kMarker) + std::to_string(mine) + "\n");
  lock.lock();
  marker_seen_.wait_for(lock, std::chrono::seconds(20), [&] { return marker_read_ >= mine; });
}

std::vector<std::string> LogWatch::complaints() {
  if (original_stderr_ < 0) return {};
  synchronise();
  const std::lock_guard lock(mutex_);
  return complaints_;
}

std::vector<std::string> LogWatch::explanations() {
  if (original_stderr_ < 0) return {};
  synchronise();
  const std::lock_guard lock(mutex_);
  return explanations_;
}

void LogWatch::judge() {
  const std::vector<std::string> lines = complaints();
  const std::lock_guard lock(mutex_);
  for (const std::string& line : lines) {
    const bool expected = std::any_of(allowed_.begin(), allowed_.end(), [&](const auto& part) {
      return line.find(part) != std::string::npos;
    });
    EXPECT_TRUE(expected) << "the library complained: " << line;
  }
  complaints_.clear();
  explanations_.clear();
  allowed_.clear();
}

AllowedLog::AllowedLog(std::string part) {
  if (the_watch == nullptr) return;
  const std::lock_guard lock(the_watch->mutex_);
  the_watch->allowed_.push_back(std::move(part));
}

}  // namespace verbatim::harness
