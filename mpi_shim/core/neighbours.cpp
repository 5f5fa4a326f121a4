// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/neighbours.hpp"

#include "mpi_shim/core/cartesian.hpp"

namespace vmpi {
namespace {

[[nodiscard]] bool copy_list(const Array<int>& from, Array<int>& to) noexcept {
  return to.assign(from.data(), from.size());
}

}  // namespace

bool Neighbours::find(const Comm& comm) noexcept {
  are_pairs = comm.topology == TopologyKind::kCartesian;
  if (are_pairs) {
    for (int i = 0; i < static_cast<int>(comm.cartesian.sizes.size()); ++i)
      for (const int step : {-1, 1}) {
        const int rank = neighbour(comm.cartesian, comm.rank(), i, step);
        if (!sources.push_back(rank) || !destinations.push_back(rank)) return false;
      }
    return true;
  }
  if (comm.topology == TopologyKind::kDistributedGraph)
    return copy_list(comm.distributed.sources, sources) &&
           copy_list(comm.distributed.destinations, destinations);
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto begin = rank == 0 ? 0u : static_cast<std::size_t>(comm.graph.index[rank - 1]);
  const std::size_t count = static_cast<std::size_t>(comm.graph.index[rank]) - begin;
  const int* const edges = comm.graph.edges.data() + begin;
  return sources.assign(edges, count) && destinations.assign(edges, count);
}

bool copy_topology(const Comm& from, Comm& to) noexcept {
  to.topology = from.topology;
  to.distributed.is_weighted = from.distributed.is_weighted;
  return copy_list(from.cartesian.sizes, to.cartesian.sizes) &&
         copy_list(from.cartesian.is_periodic, to.cartesian.is_periodic) &&
         copy_list(from.graph.index, to.graph.index) &&
         copy_list(from.graph.edges, to.graph.edges) &&
         copy_list(from.distributed.sources, to.distributed.sources) &&
         copy_list(from.distributed.source_weights, to.distributed.source_weights) &&
         copy_list(from.distributed.destinations, to.distributed.destinations) &&
         copy_list(from.distributed.destination_weights, to.distributed.destination_weights);
}

}  // namespace vmpi
