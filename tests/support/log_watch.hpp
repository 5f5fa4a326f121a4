// SPDX-License-Identifier: BSD-2-Clause
//
// Reads all that this process and its children write to standard error, passes it on, and fails the
// test during which the library logged a warning or an error that the test had not announced:
//
//   AllowedLog because_we_ask_for_nonsense("max_send_sge");
//
// A test that provokes a complaint says so; every other complaint is a finding. The line that
// explains a failed request (verbatim/explain.h) is none: the completion in error that it is about
// is the test's to expect or not. Such lines are kept apart. A process logs at its default level
// then: warnings and errors. The reading thread and the pipe exist from before the first test until
// after the last.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace verbatim::harness {

class LogWatch {
 public:
  /// Redirects descriptor 2. One per process.
  LogWatch();
  /// Restores it.
  ~LogWatch();
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;

  /// Fails the running test for each unannounced complaint since the last call.
  void judge();
  /// The library's complaints since the last call of judge, announced or not.
  std::vector<std::string> complaints();
  /// The first of the failures that were explained since then.
  std::vector<std::string> explanations();

  static LogWatch* instance();

 private:
  friend class AllowedLog;
  void read_until_closed();
  void synchronise();
  void take_line(const std::string& line);

  int original_stderr_ = -1;
  int pipe_read_ = -1;
  std::mutex mutex_;
  std::condition_variable marker_seen_;
  unsigned marker_sent_ = 0;
  unsigned marker_read_ = 0;
  std::vector<std::string> complaints_;
  std::vector<std::string> explanations_;
  std::vector<std::string> allowed_;
  std::thread reader_;
};

/// Complaints that contain `part` are expected until the end of the test.
class AllowedLog {
 public:
  explicit AllowedLog(std::string part);
};

}  // namespace verbatim::harness
