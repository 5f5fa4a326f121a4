// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/process_limits.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/base/cgroup.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::topo {
namespace {

// Version 1 writes "no limit" as the largest page multiple; anything of that order is no limit.
constexpr std::uint64_t kNoLimitFrom = std::uint64_t{1} << 60;

bool read_affinity(NumberSet& set) noexcept {
  // (The system call: the C library's type may be smaller than the kernel's set.)
  unsigned long words[NumberSet::kEnd / (8 * sizeof(unsigned long))] = {};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, sizeof words, words);
  if (bytes <= 0) return false;
  set.clear();
  for (std::uint32_t cpu = 0; cpu < static_cast<std::uint32_t>(bytes) * 8; ++cpu) {
    constexpr std::uint32_t kBits = 8 * sizeof(unsigned long);
    if ((words[cpu / kBits] >> (cpu % kBits) & 1) != 0) set.add(cpu);
  }
  return true;
}

bool read_nodes(NumberSet& set) noexcept {
  char text[8192];
  if (!read_proc_text("/proc/self/status", text, sizeof text)) return false;
  constexpr const char* kName = "\nMems_allowed_list:";
  const char* const line = std::strstr(text, kName);
  return line != nullptr && set.parse(line + std::strlen(kName));
}

bool read_cpuset(NumberSet& set) noexcept {
  for (const bool version_2 : {true, false}) {
    CgroupWalk walk;
    if (!walk.begin("cpuset", version_2)) continue;
    do {
      char path[PATH_MAX];
      char text[4096];
      const int length =
          std::snprintf(path, sizeof path, "%s/%s", walk.directory(),
                        version_2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
      if (length > 0 && static_cast<std::size_t>(length) < sizeof path &&
          read_proc_text(path, text, sizeof text) && set.parse(text) && set.count() != 0)
        return true;
    } while (walk.up());
  }
  return false;
}

std::uint64_t memory_limit() noexcept {
  std::uint64_t tightest = kUnlimited;
  for (const bool version_2 : {true, false}) {
    CgroupWalk walk;
    if (!walk.begin("memory", version_2)) continue;
    do {
      const std::uint64_t limit = read_cgroup_number(
          walk.directory(), version_2 ? "memory.max" : "memory.limit_in_bytes", kUnlimited);
      if (limit < kNoLimitFrom) tightest = std::min(tightest, limit);
    } while (walk.up());
  }
  return tightest;
}

}  // namespace

void read_process_limits(ProcessLimits& limits) noexcept {
  limits.affinity_known = read_affinity(limits.affinity);
  if (!read_cpuset(limits.cpus)) limits.cpus = limits.affinity;
  limits.nodes_known = read_nodes(limits.nodes);
  limits.memory_bytes = memory_limit();
}

bool node_is_allowed(const Machine& machine, const ProcessLimits& limits,
                     std::uint32_t node) noexcept {
  if (node >= machine.nodes().size()) return false;
  return !machine.is_this_host() || !limits.nodes_known ||
         limits.nodes.has(machine.nodes()[node].number);
}

AllowedProcessors allowed_processors(const Machine& machine, const ProcessLimits& limits) noexcept {
  AllowedProcessors allowed;
  if (!machine.known()) {
    allowed.processors = allowed.cores = limits.affinity.count();
    return allowed;
  }
  const bool all = !machine.is_this_host() || !limits.affinity_known;
  for (const Core& core : machine.cores()) {
    std::uint32_t here = 0;
    for (std::uint32_t pu = core.first_pu; pu < core.first_pu + core.pu_count; ++pu)
      here += all || limits.affinity.has(machine.pus()[pu].cpu) ? 1 : 0;
    allowed.processors += here;
    allowed.cores += here != 0 ? 1 : 0;
  }
  return allowed;
}

}  // namespace verbatim::topo
