// SPDX-License-Identifier: BSD-2-Clause
// Ctrl-C that leaves nothing behind.
//
// One object, made first and destroyed last, main thread. While it lives SIGINT and SIGTERM stay
// pending instead of killing: waits watch fd() beside their own, busy loops ask pending() now and
// then, and both unwind through Stopped. The destructor lets the pending signal act, so the shell
// sees a process that died of it. A signal that our parent set to be ignored stays ignored.
#pragma once

#include <signal.h>

namespace verbatim::cli {

struct Stopped {};

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable while a stop is pending; -1 where the kernel has none to give.
  int fd() const { return fd_; }
  bool pending() const;

 private:
  sigset_t watched_;
  sigset_t before_;
  int fd_;
};

/// Waits for `events` on `fd`, at most `milliseconds` (-1: for ever). True: there; false: time is
/// up. Throws Stopped.
bool wait_for(int fd, short events, long milliseconds, const StopSignals& stop);

}  // namespace verbatim::cli
