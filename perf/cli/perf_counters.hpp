// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf` prints beside its results: counters of the port (-W), and how busy the
// host's processors were (--cpu_util). Main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::cli {

class PortCounters {
 public:
  /// Reads each once; throws Failure where the kernel has none of that name.
  PortCounters(const char* device, int port, const std::vector<std::string>& names);
  void start();
  /// How far each has gone since, a line each.
  void print() const;

 private:
  std::uint64_t read(std::size_t counter) const;

  std::string folder_;
  const std::vector<std::string>& names_;
  std::vector<std::uint64_t> before_;
};

/// perftest's figure: of the time that all processors were in programs or idle, the former.
class ProcessorUse {
 public:
  void start() { before_ = now(); }
  double percent() const;

 private:
  struct Times {
    std::uint64_t user = 0, idle = 0;
  };
  static Times now();
  Times before_;
};

}  // namespace verbatim::cli
