// SPDX-License-Identifier: BSD-2-Clause
// How many system calls a thread makes while it works: the kernel gives each of them back to the
// program (syscall user dispatch, Linux 5.11), which counts it and makes it. So each takes a
// microsecond longer meanwhile, and what is counted is not timed. Needs no right and no tracer.
// x86-64. One thread of a process at a time.
#pragma once

#include <cstdint>
#include <optional>

namespace verbatim::perf {

/// Counts those of its thread from its beginning to its end.
class CallCount {
 public:
  CallCount();
  ~CallCount();
  CallCount(const CallCount&) = delete;
  CallCount& operator=(const CallCount&) = delete;

  /// Nothing where this machine does not offer it, or the thread has started another one or changed
  /// its mask of signals: from then on none was counted.
  [[nodiscard]] std::optional<std::uint64_t> calls() const;

 private:
  bool counts_;
};

/// What is done meanwhile is no part of what is counted. Any thread; cheap.
class CallCountPause {
 public:
  CallCountPause() noexcept;
  ~CallCountPause();
  CallCountPause(const CallCountPause&) = delete;
  CallCountPause& operator=(const CallCountPause&) = delete;

 private:
  char before_;
};

}  // namespace verbatim::perf
