// SPDX-License-Identifier: BSD-2-Clause
// One line on stderr that says what is measured now; nothing at all when stderr is not a terminal.
#pragma once

#include <string_view>

namespace verbatim::perf {

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
