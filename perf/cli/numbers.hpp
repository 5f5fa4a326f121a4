// SPDX-License-Identifier: BSD-2-Clause
// Numbers on a command line, read whole or not at all.
//
// Any thread. The classic tools read "2x" as 2 and "abc" as 0; here a number is the whole argument
// (decimal, 0x hex or 0 octal, as theirs) and lies in its range, or it is refused.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <optional>

namespace verbatim::cli {

inline std::optional<long long> number_in(const char* text, long long low, long long high) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 0);
  if (end == text || *end != '\0' || errno != 0 || value < low || value > high) return {};
  return value;
}

}  // namespace verbatim::cli
