// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/affinity.hpp"

#include <sched.h>
#include <sys/utsname.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

namespace verbatim::perf {
namespace {

// -1 where the file is missing (containers may hide it): then every CPU counts as a core of its
// own.
int topology_value(int cpu, const char* leaf) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + leaf);
  int value = -1;
  file >> value;
  return file ? value : -1;
}

struct Place {
  int package;
  int core;
};

Place place_of(int cpu) {
  const int core = topology_value(cpu, "core_id");
  return {topology_value(cpu, "physical_package_id"), core < 0 ? cpu : core};
}

/// The machine's, also for a process that is bound to some of them.
std::vector<int> online_cpus() {
  std::vector<int> cpus;
  std::ifstream file("/sys/devices/system/cpu/online");
  int first = 0;
  while (file >> first) {
    int last = first;
    if (file.peek() == '-') {
      file.ignore();
      file >> last;
    }
    for (int cpu = first; file && cpu <= last && cpu < CPU_SETSIZE; ++cpu) cpus.push_back(cpu);
    file.ignore();
  }
  return cpus.empty() ? allowed_cpus() : cpus;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

CorePair choose_core_pair(const std::vector<int>& allowed) {
  CorePair pair;
  if (allowed.empty()) return pair;
  pair.near = pair.far = allowed.front();
  pair.note = "one core only: figures between cores mean nothing here";
  const Place first = place_of(pair.near);
  int best = 0;
  for (const int cpu : allowed) {
    if (cpu == pair.near) continue;
    const Place place = place_of(cpu);
    const bool same_package = place.package == first.package;
    const int rank = same_package && place.core == first.core ? 1 : same_package ? 3 : 2;
    if (rank <= best) continue;
    best = rank;
    pair.far = cpu;
  }
  pair.distinct = best > 1;
  if (best == 1) pair.note = "sibling threads of one core";
  if (best == 2) pair.note = "different packages";
  if (best == 3) pair.note = "different cores of one package";
  return pair;
}

void pin_to(int cpu) { allow_only({cpu, cpu, false, {}}); }

void allow_only(const CorePair& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cores.near), &set);
  CPU_SET(static_cast<unsigned>(cores.far), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    const std::string both = cores.near == cores.far ? "" : " and CPU " + std::to_string(cores.far);
    throw std::system_error(errno, std::generic_category(),
                            "pin to CPU " + std::to_string(cores.near) + both);
  }
}

double waited_for_core_ns(int pid) {
  // "time on the core, time waited for it, times started"
  std::ifstream file("/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + "/schedstat");
  double ran = 0;
  double waited = 0;
  file >> ran >> waited;
  return file ? waited : 0;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown processor";
}

std::string topology_text() {
  std::set<std::pair<int, int>> cores;
  std::set<int> packages;
  const std::vector<int> cpus = online_cpus();
  for (const int cpu : cpus) {
    const Place place = place_of(cpu);
    cores.insert({place.package, place.core});
    packages.insert(place.package);
  }
  const auto counted = [](std::size_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  return counted(cpus.size(), "CPU") + ", " + counted(cores.size(), "core") + ", " +
         counted(packages.size(), "package");
}

}  // namespace verbatim::perf
