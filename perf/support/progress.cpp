// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/progress.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace verbatim::perf {

std::string stream_identity(int fd) {
  struct stat about;
  if (fstat(fd, &about) != 0) return "";
  return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

bool stderr_is_seen() {
  if (isatty(STDERR_FILENO) == 1) return true;
  const char* const passed_on = std::getenv(kPassedOnStderr);
  return passed_on != nullptr && *passed_on != '\0' && stream_identity(STDERR_FILENO) == passed_on;
}

Progress::Progress() : terminal_(stderr_is_seen()) {}

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
