// SPDX-License-Identifier: BSD-2-Clause
//
// The output of a pingpong, read as scripts read it: line by line, by pattern.
#pragma once

#include <optional>
#include <string>

#include "tests/tools/pattern.hpp"

namespace verbatim::tools {

struct PingpongOutput {
  std::string local;  // "LID 0x0001, QPN 0x000010, PSN 0x123456, GID ::", a line per queue pair
  std::string remote;
  long long bytes = 0;
  double seconds = 0;
  double mbit_per_second = 0;
  long long iters = 0;
  double usec_per_iter = 0;
};

/// Nothing unless the output is exactly a finished run's.
inline std::optional<PingpongOutput> parse_pingpong_output(const std::string& out) {
  static const Pattern kWhole(
      "^((  local address:  LID 0x[0-9a-f]{4}, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}[,:] GID "
      "[0-9a-f:.]+\n)+)"
      "((  remote address: LID 0x[0-9a-f]{4}, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID "
      "[0-9a-f:.]+\n)+)"
      "([0-9]+) bytes in ([0-9]+\\.[0-9]{2}) seconds = ([0-9]+\\.[0-9]{2}) Mbit/sec\n"
      "([0-9]+) iters in [0-9]+\\.[0-9]{2} seconds = ([0-9]+\\.[0-9]{2}) usec/iter\n$");
  static const Pattern kWhose("  (local address: |remote address:) ");
  static const Pattern kColon(": GID");  // as the datagram tool writes its own
  const auto match = kWhole.find(out);
  if (!match) return {};
  PingpongOutput read;
  read.local = kColon.replace_all(kWhose.replace_all((*match)[1], ""), ", GID");
  read.remote = kWhose.replace_all((*match)[3], "");
  read.bytes = std::stoll((*match)[5]);
  read.seconds = std::stod((*match)[6]);
  read.mbit_per_second = std::stod((*match)[7]);
  read.iters = std::stoll((*match)[8]);
  read.usec_per_iter = std::stod((*match)[9]);
  return read;
}

}  // namespace verbatim::tools
