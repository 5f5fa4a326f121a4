// SPDX-License-Identifier: BSD-2-Clause
// How a command gives up: one line that names the cause and the fix, and an exit status.
//
// Thrown by value inside the tool (never through the library), caught once at the command's top,
// so that everything that was opened on the way is closed by its owner.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace verbatim::cli {

struct Failure {
  std::string line;
  int status = 1;
};

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  throw Failure{line};
}

}  // namespace verbatim::cli
