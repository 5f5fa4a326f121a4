// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace verbatim::perf {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(double done, std::string_view what) {
  if (!terminal_) return;
  // Carriage return, text, erase to the end of the line: the line never scrolls.
  std::fprintf(stderr, "\r[%3.0f %%] %.*s\033[K", 100 * done, static_cast<int>(what.size()),
               what.data());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::tell(std::string_view what) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r%.*s\033[K", static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace verbatim::perf
