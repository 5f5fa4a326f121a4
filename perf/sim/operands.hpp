// SPDX-License-Identifier: BSD-2-Clause
// Plans of all ranks for a collective over buffers that they share: for the times that a model tells,
// not for the data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/core/costs.hpp"
#include "perf/sim/simulation.hpp"

namespace verbatim::sim {

/// `bytes` are what Shape::bytes are of the collective, in whole elements of 8 bytes (or in bytes, where
/// nothing is computed); `nodes` of the shape's ranks, or null. Empty: they would take more than
/// `most_state` bytes, as `why` says.
[[nodiscard]] std::vector<std::unique_ptr<vmpi::Plan>> plans_of(
    vmpi::Collective which, const vmpi::KnownAlgorithm& algorithm, const vmpi::Shape& shape,
    const vmpi::Nodes* nodes, std::uint64_t most_state, std::string& why);

/// Of ranks in order, so many on each; the last node may have fewer.
[[nodiscard]] std::unique_ptr<vmpi::Nodes> even_nodes(int ranks, int ranks_of_node);

/// The costs by which the library would choose as this model times.
[[nodiscard]] vmpi::Costs costs_of(const Model& model);
/// A call of ranks on such nodes; null: each is on its own.
[[nodiscard]] vmpi::Shape shape_of(int ranks, std::int64_t bytes, const vmpi::Nodes* nodes,
                                   const vmpi::Costs& costs);

}  // namespace verbatim::sim
