// SPDX-License-Identifier: BSD-2-Clause
// One line on stderr that says what is measured now; nothing at all when stderr is not a terminal,
// or passed on to one.
#pragma once

#include <string>
#include <string_view>

namespace verbatim::perf {

/// In the environment of a rank of 'verbatim run': its stderr, a pipe whose lines reach a terminal.
inline constexpr char kPassedOnStderr[] = "VERBATIM_RUN_STDERR";
/// What that variable says of a descriptor, so that no other one is taken for it.
std::string stream_identity(int fd);

/// Whether a line is seen that is written over and over.
bool stderr_is_seen();

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` in [0, 1].
  void show(double done, std::string_view what);
  /// Where nobody knows how much is left.
  void tell(std::string_view what);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace verbatim::perf
