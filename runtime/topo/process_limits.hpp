// SPDX-License-Identifier: BSD-2-Clause
//
// What of the machine this process may use at this moment: each process asks for itself, since
// affinity, control groups and containers differ between processes of one host. Any thread; reads a
// few files of /proc and /sys, some 100 us, so ask when something is placed, not when it is used.
// Spec: sched_getaffinity(2), cpuset(7), cgroups(7).
#pragma once

#include <cstdint>

#include "runtime/topo/cpu_list.hpp"
#include "runtime/topo/machine.hpp"

namespace verbatim::topo {

inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

struct ProcessLimits {
  /// The processors that the calling thread may run on.
  NumberSet affinity;
  /// How far affinity may be widened (cpuset); `affinity` where that cannot be read.
  NumberSet cpus;
  /// Nodes whose memory may be used.
  NumberSet nodes;
  /// The tightest limit of the memory groups that we are in (version 1 and 2).
  std::uint64_t memory_bytes = kUnlimited;
  bool affinity_known = false;
  bool nodes_known = false;
};

/// Fills `limits`; what cannot be read stays unknown.
void read_process_limits(ProcessLimits& limits) noexcept;

/// Whether memory of the node (an index of `machine`) may be used. True where nobody knows, and on
/// a machine that is made up: there, limits of this host mean nothing.
[[nodiscard]] bool node_is_allowed(const Machine& machine, const ProcessLimits& limits,
                                   std::uint32_t node) noexcept;

/// Processors and cores of the machine in the calling thread's affinity; all of a machine that is
/// made up. Without a machine, cores are counted as processors.
struct AllowedProcessors {
  std::uint32_t cores = 0;
  std::uint32_t processors = 0;
};
[[nodiscard]] AllowedProcessors allowed_processors(const Machine& machine,
                                                   const ProcessLimits& limits) noexcept;

}  // namespace verbatim::topo
