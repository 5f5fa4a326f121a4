// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/host_place.hpp"

#include <unistd.h>

#include <cstddef>

#include "mpi_shim/core/nodes.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/topo/host.hpp"
#include "runtime/topo/process_limits.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kLongestText = 64u << 10;

constinit HostPlace declared;

/// By the kernel's numbers: processes may have read the machine apart. Of a cache that is the number of its
/// first processor.
[[nodiscard]] HostPlace place_of(const verbatim::topo::Machine& machine,
                                 const verbatim::topo::NumberSet& cpus) noexcept {
  using verbatim::topo::kNone;
  using verbatim::topo::NumberSet;
  std::uint32_t node = kNone;
  std::uint32_t group = kNone;
  bool is_first = true;
  for (std::uint32_t cpu = cpus.next(0); cpu != NumberSet::kEnd; cpu = cpus.next(cpu + 1)) {
    const std::uint32_t node_here = machine.node_of_cpu(cpu);
    const std::uint32_t group_here = machine.group_of_cpu(cpu);
    node = is_first || node == node_here ? node_here : kNone;
    group = is_first || group == group_here ? group_here : kNone;
    if (node == kNone && group == kNone) break;
    is_first = false;
  }
  HostPlace place;
  if (node != kNone) place.node = machine.nodes()[node].number;
  if (group != kNone) place.cache = machine.pus()[machine.groups()[group].first_pu].cpu;
  return place;
}

}  // namespace

const char* read_groups() noexcept {
  static constinit char wrong[256];
  const char* const text = verbatim::environment_text("VERBATIM_MPI_GROUPS", kLongestText);
  if (text == nullptr) return nullptr;
  Array<int> groups;
  Array<int> nodes;
  const char* const refused = parse_groups(text, world.size, groups, nodes, wrong);
  if (refused != nullptr) return refused;
  const auto rank = static_cast<std::size_t>(world.rank);
  declared = {static_cast<std::uint32_t>(nodes[rank]), static_cast<std::uint32_t>(groups[rank]), 1};
  return nullptr;
}

bool are_groups_declared() noexcept { return declared.is_declared != 0; }

HostPlace find_host_place() noexcept {
  if (declared.is_declared != 0) return declared;
  verbatim::topo::ProcessLimits limits;
  verbatim::topo::read_process_limits(limits);
  // Who may run anywhere is nowhere in particular, and the machine need not be read for it.
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (!limits.affinity_known || static_cast<long>(limits.affinity.count()) >= processors) return {};
  return place_of(verbatim::topo::host_machine(), limits.affinity);
}

}  // namespace vmpi
