// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim topo` tells, gathered once: the machine as the library sees it, what this process
// may use of it, and what follows for buffers and threads. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/topo/host.hpp"
#include "runtime/topo/launcher.hpp"
#include "runtime/topo/process_limits.hpp"

namespace verbatim::cli {

struct TopoDevice {
  std::string name;
  std::uint32_t node;  // an index of the machine; topo::kNone: near to nothing in particular
};

struct TopoFacts {
  const topo::Machine* machine;
  topo::ProcessLimits limits;
  topo::AllowedProcessors allowed;
  topo::LocalRanks ranks;
  std::uint32_t cpu;   // where the calling thread ran when it was asked; topo::kNone: unknown
  std::uint32_t node;  // its node, an index of the machine
  std::vector<TopoDevice> devices;

  /// Whether the processor may be used by the calling thread.
  bool may_run_on(std::uint32_t cpu_number) const {
    return !machine->is_this_host() || !limits.affinity_known || limits.affinity.has(cpu_number);
  }
  /// Nodes that memory for a thread on `from` comes from, the nearest first: those it may use.
  std::vector<std::uint32_t> memory_order(std::uint32_t from) const;
  /// The machine's own words for where it was read from.
  const char* origin() const;
};

void gather(TopoFacts& facts);

/// "0-3,8": numbers in rising order, as the kernel writes them.
std::string ranges(const std::vector<std::uint32_t>& numbers);
std::string ranges(const topo::NumberSet& numbers);
/// "64 GiB", "1.5 MiB".
std::string bytes_text(std::uint64_t bytes);

/// The numbers of the processors of a part of the machine's order.
std::vector<std::uint32_t> cpus_of(const topo::Machine& machine, std::uint32_t first_pu,
                                   std::uint32_t pu_count);
/// The numbers of the processors near a node.
std::vector<std::uint32_t> cpus_near(const topo::Machine& machine, std::uint32_t node);

}  // namespace verbatim::cli
