// SPDX-License-Identifier: BSD-2-Clause
// How much of a run went to others: time that the hypervisor took (steal), time that this process
// waited for a core that somebody else had, and how far a floor lay apart. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace verbatim::perf {

/// Fractions; NaN where nothing is known.
struct Noise {
  double stolen = std::numeric_limits<double>::quiet_NaN();
  double waited = std::numeric_limits<double>::quiet_NaN();
  /// Quartile distance of floor F1, or of the figure that stands for it, as a part of its median.
  double floor_spread = std::numeric_limits<double>::quiet_NaN();

  /// Empty, or what makes the figures of the run no ground for a claim.
  std::string unreliable() const;
};

/// Looks at /proc/stat and at this process's own waiting when made, and again when asked.
class NoiseWatch {
 public:
  NoiseWatch();
  /// Since it was made; `floor_spread` is left for who knows it.
  Noise noise() const;

 private:
  struct Ticks {
    double stolen = 0, all = 0;
  };
  static Ticks ticks();
  Ticks before_;
  double waited_before_ns_;
  std::uint64_t start_ns_;
};

/// Processor time and context switches of this process and of all its threads so far.
struct Usage {
  double cpu_ns = 0;
  double switches = 0;                                             // voluntary and involuntary
  double system_calls = std::numeric_limits<double>::quiet_NaN();  // of who counts them
};
Usage usage_now();
Usage usage_since(const Usage& before);

}  // namespace verbatim::perf
