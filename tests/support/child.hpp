// SPDX-License-Identifier: BSD-2-Clause
//
// A process that plays a role (role.hpp) for a test. Its standard error is the test's own, so what
// it logs is judged with the test (log_watch.hpp).
//
// Start it from the thread that will outlive it: the child is killed when its starting thread ends.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "tests/support/control.hpp"

namespace verbatim::harness {

/// How a process ended.
struct Ended {
  bool in_time = false;
  int exit_status = -1;  ///< -1 when a signal ended it
  int signal = 0;
};

class Child {
 public:
  /// `environment` is set in the child on top of ours; an empty value removes the variable.
  explicit Child(const std::string& role,
                 const std::map<std::string, std::string>& environment = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Kills the child if it has not ended, and collects it.
  ~Child();

  Control& control() { return control_; }
  pid_t pid() const { return pid_; }

  Ended wait(std::int32_t wait_ms = kDefaultWaitMs);
  void signal(int number);
  void kill_and_collect();
  /// Whether all of it has come to rest after SIGSTOP.
  bool is_stopped() const;
  /// Whether the child's main thread sits in pause(2), by what the kernel says of it.
  bool is_paused() const;
  /// What the kernel says of its threads, for the message of a test that waits for it in vain.
  std::string whereabouts() const;

 private:
  Child(const std::string& role, const std::map<std::string, std::string>& environment,
        std::pair<Control, Control> ends);
  Control control_;
  pid_t pid_ = -1;
  Ended ended_;
};

}  // namespace verbatim::harness
