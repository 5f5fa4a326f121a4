// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_binding.hpp"

#include "runtime/topo/host.hpp"

namespace verbatim::cli {

std::vector<cpu_set_t> allowed_cores() {
  std::vector<cpu_set_t> cores;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails on machines with more processors than a cpu_set_t has: then nobody is bound.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  const topo::Machine& machine = topo::host_machine();
  if (machine.is_this_host()) {
    for (const topo::Core& core : machine.cores()) {
      cpu_set_t processors;
      CPU_ZERO(&processors);
      for (std::uint32_t i = 0; i < core.pu_count; ++i) {
        const std::uint32_t cpu = machine.pus()[core.first_pu + i].cpu;
        if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &processors);
      }
      if (CPU_COUNT(&processors) != 0) cores.push_back(processors);
    }
    return cores;
  }
  // Nothing is known of cores: each processor is one.
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(cpu, &processor);
    cores.push_back(processor);
  }
  return cores;
}

StartedOn::StartedOn(const cpu_set_t& processors) {
  is_changed_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 &&
                sched_setaffinity(0, sizeof(processors), &processors) == 0;
}

StartedOn::~StartedOn() {
  if (is_changed_) (void)sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace verbatim::cli
