// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/noise.hpp"

#include <sys/resource.h>

#include <cstdio>
#include <fstream>

#include "perf/support/affinity.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

// Beyond these a difference of some percent between two runs says nothing about what was measured.
constexpr double kMostStolen = 0.02, kMostWaited = 0.02, kWidestFloor = 0.3;

void add_reason(std::string& reasons, double found, double most, const char* what) {
  if (!(found > most)) return;  // nothing is known, or it is little
  char text[96];
  std::snprintf(text, sizeof text, "%s%.1f %% %s", reasons.empty() ? "" : "; ", 100 * found, what);
  reasons += text;
}

}  // namespace

std::string Noise::unreliable() const {
  std::string reasons;
  add_reason(reasons, stolen, kMostStolen, "of the processors' time was stolen by the hypervisor");
  add_reason(reasons, waited, kMostWaited, "of the time other processes had the core");
  add_reason(reasons, floor_spread, kWidestFloor, "between the quartiles of the floor");
  return reasons;
}

NoiseWatch::Ticks NoiseWatch::ticks() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  Ticks found;
  // user nice system idle iowait irq softirq steal
  double value = 0;
  for (int column = 0; column < 8 && file >> value; ++column) {
    found.all += value;
    if (column == 7) found.stolen = value;
  }
  return found;
}

NoiseWatch::NoiseWatch()
    : before_(ticks()), waited_before_ns_(waited_for_core_ns()), start_ns_(now_ns()) {}

Noise NoiseWatch::noise() const {
  const Ticks now = ticks();
  const double seconds_ns = static_cast<double>(now_ns() - start_ns_);
  Noise noise;
  if (now.all > before_.all) noise.stolen = (now.stolen - before_.stolen) / (now.all - before_.all);
  if (seconds_ns > 0) noise.waited = (waited_for_core_ns() - waited_before_ns_) / seconds_ns;
  return noise;
}

Usage usage_now() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return {};
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  return {ns(used.ru_utime) + ns(used.ru_stime),
          static_cast<double>(used.ru_nvcsw) + static_cast<double>(used.ru_nivcsw)};
}

Usage usage_since(const Usage& before) {
  const Usage now = usage_now();
  return {now.cpu_ns - before.cpu_ns, now.switches - before.switches};
}

}  // namespace verbatim::perf
