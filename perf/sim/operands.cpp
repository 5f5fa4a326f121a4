// SPDX-License-Identifier: BSD-2-Clause
#include "perf/sim/operands.hpp"

#include <algorithm>
#include <new>

namespace verbatim::sim {

using vmpi::Collective;
using vmpi::Operands;
using vmpi::Plan;

std::unique_ptr<vmpi::Nodes> even_nodes(int ranks, int ranks_of_node) {
  auto nodes = std::make_unique<vmpi::Nodes>();
  std::vector<int> numbers(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) numbers[static_cast<std::size_t>(i)] = i / ranks_of_node;
  if (!nodes->set(numbers.data(), ranks)) throw std::bad_alloc();
  return nodes;
}

std::vector<std::unique_ptr<Plan>> plans_of(Collective which, const vmpi::KnownAlgorithm& algorithm,
                                            const vmpi::Shape& shape, const vmpi::Nodes* nodes,
                                            std::uint64_t most_state, std::string& why) {
  const int ranks = shape.ranks;
  const std::int64_t bytes = shape.bytes;
  // Nobody looks at them: an address that no plan takes for MPI_IN_PLACE or a null pointer.
  static std::byte given[1];
  static std::byte taken[1];
  vmpi::Datatype& byte = vmpi::byte_type();
  vmpi::Datatype& real = *vmpi::find_datatype(MPI_DOUBLE);
  const std::int64_t slice = which == Collective::kAllgather ? (bytes + ranks - 1) / ranks : bytes;
  const vmpi::Typed own = {given, slice, &byte};
  vmpi::Slices in;
  in.buffer = given;
  in.count = slice;
  in.one_type = &byte;
  vmpi::Slices out = in;
  out.buffer = taken;
  const std::int64_t elements = bytes / 8;
  const vmpi::Reduced what = {given, taken, elements, &real, vmpi::find_op(MPI_SUM)};
  std::vector<int> counts(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i)
    counts[static_cast<std::size_t>(i)] =
        static_cast<int>(elements * (i + 1) / ranks - elements * i / ranks);
  Operands of;
  of.own = &own;
  of.in = &in;
  of.out = &out;
  of.what = &what;
  of.counts = counts.data();

  std::vector<std::unique_ptr<Plan>> plans;
  std::uint64_t state = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    plans.push_back(std::make_unique<Plan>(rank, ranks));
    Plan& plan = *plans.back();
    plan.lie_on(nodes);
    algorithm.plan(plan, of);
    if (!plan.is_good()) {
      why = "there is no memory for its plans";
      return {};
    }
    state += sizeof(Plan) + plan.size_in_steps() * sizeof(vmpi::Step);
    // All ranks have about as many steps: the first few say what all will take.
    const std::uint64_t expected =
        rank < 4 ? state / static_cast<std::uint64_t>(rank + 1) * static_cast<std::uint64_t>(ranks)
                 : state;
    if (expected > most_state) {
      why = "its plans would take " + std::to_string(expected >> 20) + " MiB";
      return {};
    }
  }
  return plans;
}

vmpi::Costs costs_of(const Model& model) {
  using vmpi::CostOf;
  vmpi::Costs costs = vmpi::built_in_costs();
  for (const CostOf each : {CostOf::kNearLatency, CostOf::kFarLatency})
    costs.set(each, model.within.latency);
  costs.set(CostOf::kHostOverhead, model.within.overhead);
  costs.set(CostOf::kHostGap, model.within.gap);
  // A model has one way for messages of all lengths, which copies nothing beside.
  for (const CostOf each : {CostOf::kHandshake, CostOf::kLongHandshake}) costs.set(each, 0);
  for (const CostOf each : {CostOf::kPut, CostOf::kFetch})
    costs.set(each, model.within.gap_of_bytes / 2);
  costs.set(CostOf::kKernel, model.within.gap_of_bytes);
  costs.set(CostOf::kCombine, model.combine_of_bytes);
  costs.set(CostOf::kLatency, model.between.latency);
  costs.set(CostOf::kOverhead, model.between.overhead);
  costs.set(CostOf::kGap, model.between.gap);
  costs.set(CostOf::kByte, model.between.gap_of_bytes);
  return costs;
}

vmpi::Shape shape_of(int ranks, std::int64_t bytes, const vmpi::Nodes* nodes,
                     const vmpi::Costs& costs) {
  vmpi::Shape shape = {.ranks = ranks, .bytes = bytes, .is_apart = true, .costs = &costs};
  if (nodes == nullptr || nodes->count() == ranks) return shape;
  shape.is_apart = false;
  shape.has_nodes = nodes->are_composed();
  shape.are_nodes_alike = nodes->are_alike();
  shape.nodes = shape.has_nodes ? nodes->count() : 1;
  shape.ranks_of_node = shape.has_nodes ? nodes->most() : 1;
  return shape;
}

}  // namespace verbatim::sim
