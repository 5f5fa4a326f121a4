// SPDX-License-Identifier: BSD-2-Clause
//
// What the tests of vbt_explain ask with, and the words in which it names things.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/endpoint.hpp"

namespace verbatim::harness {

inline constexpr std::uint64_t kId = 4711;

[[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}
inline std::string key(std::uint32_t number) { return text("0x%08x", number); }
inline std::string qp(const QpInfo& info) { return text("QP 0x%06x", info.qpn); }
inline std::string range(std::uint64_t first, std::uint64_t bytes) {
  return text("[0x%llx, 0x%llx)", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + bytes));
}

/// Of how many queue pairs the lines speak.
inline std::size_t count_spoken_of(const std::vector<std::string>& lines) {
  std::size_t count = lines.size();
  for (const std::string& line : lines) {
    unsigned more = 0;
    const std::size_t at = line.rfind("; ");
    if (at != std::string::npos &&
        std::sscanf(line.c_str() + at, "; %u more queue pairs with process", &more) == 1)
      count += more;
  }
  return count;
}

}  // namespace verbatim::harness
