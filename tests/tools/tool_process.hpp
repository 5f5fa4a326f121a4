// SPDX-License-Identifier: BSD-2-Clause
//
// A command-line program run by a test: arguments, environment, what it printed, how it ended.
//
// One thread. A program that outlives its test is killed and collected by the destructor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace verbatim::tools {

using Environment = std::map<std::string, std::string>;

struct Program {
  std::string file;         // what is run ...
  std::string name;         // ... and what it is called: argv[0]
  Environment environment;  // on top of ours
};

struct Ending {
  bool in_time = false;
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

constexpr std::chrono::milliseconds kEnding{30'000};

class ToolProcess {
 public:
  enum class Errors { kPipe, kTerminal };
  ToolProcess(const Program& program, const std::vector<std::string>& arguments,
              Errors errors = Errors::kPipe);
  ~ToolProcess();
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;

  /// Reads until what it wrote holds `text`; false when it ended, or time was up, before.
  bool wait_for_error(const std::string& text, std::chrono::milliseconds wait = kEnding);
  bool wait_for_output(const std::string& text, std::chrono::milliseconds wait = kEnding);
  /// Collects output for `wait`; false as soon as it has closed its output, which is its end.
  bool running_after(std::chrono::milliseconds wait);
  const std::string& errors() const { return ending_.err; }

  Ending finish(std::chrono::milliseconds wait = kEnding);

 private:
  using Clock = std::chrono::steady_clock;
  bool wait_for(const std::string& in, const std::string& text, std::chrono::milliseconds wait);
  bool read_some(Clock::time_point end);  // false: both pipes are closed, or time is up

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Ending ending_;
};

/// Lines that it wrote besides those by which the library explains a failed request
/// (verbatim/explain.h).
long own_lines(const std::string& text);

/// Runs it to its end.
Ending run(const Program& program, const std::vector<std::string>& arguments,
           std::chrono::milliseconds wait = kEnding);

/// The processes that `pid` has started and that live.
std::vector<pid_t> children_of(pid_t pid);

/// A port on which nobody listens now.
int free_port();

/// A server that was started with `-p 0` says which port it got; nothing when it does not.
std::optional<int> listening_port(ToolProcess& server);

}  // namespace verbatim::tools
