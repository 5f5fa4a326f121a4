// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_placement.hpp"

#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "perf/cli/failure.hpp"
#include "perf/cli/file_handle.hpp"
#include "runtime/topo/cpu_list.hpp"

namespace verbatim::cli {
namespace {

topo::NumberSet cores_of_node(std::uint32_t node) {
  const std::string name = "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist";
  const FileHandle file(std::fopen(name.c_str(), "re"));
  char text[4096] = {};
  if (!file || std::fgets(text, sizeof text, file.get()) == nullptr) {
    fail("this host has no NUMA node %u (%s: %s): another --numa_node", node, name.c_str(),
         std::strerror(file ? EIO : errno));
  }
  topo::NumberSet cores;
  if (!cores.parse(text) || cores.count() == 0) {
    fail("NUMA node %u of this host has no cores: another --numa_node", node);
  }
  return cores;
}

}  // namespace

void place(const PerfOptions& options) {
  topo::NumberSet cores;
  if (options.numa_node) cores = cores_of_node(*options.numa_node);
  for (const int core : options.cores) cores.add(static_cast<std::uint32_t>(core));
  if (cores.count() == 0) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (std::uint32_t core = cores.next(0); core < CPU_SETSIZE; core = cores.next(core + 1)) {
    CPU_SET(core, &wanted);
  }
  if (sched_setaffinity(0, sizeof wanted, &wanted) != 0) {
    fail("Couldn't run on the cores asked for: %s; are they of this host, and allowed? (%s)",
         std::strerror(errno), options.numa_node ? "--numa_node" : "--pin_cores");
  }
}

}  // namespace verbatim::cli
