// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/cost_formulas.hpp"

#include <algorithm>

#include "mpi_shim/coll/owners.hpp"
#include "mpi_shim/core/wire.hpp"

namespace vmpi {
namespace {

[[nodiscard]] Level level_of_host(const Costs& costs, double latency) noexcept {
  const double overhead = costs.ns(CostOf::kHostOverhead);
  // A core copies what it sends and what it receives; or the kernel copies once, for whoever receives.
  const double by_rings = costs.ns(CostOf::kPut) + costs.ns(CostOf::kFetch);
  return {latency + 2 * overhead, std::max(overhead, costs.ns(CostOf::kHostGap)),
          std::min(by_rings, costs.ns(CostOf::kKernel)), costs.ns(CostOf::kHandshake)};
}

[[nodiscard]] Level level_of_network(const Costs& costs) noexcept {
  const double overhead = costs.ns(CostOf::kOverhead);
  return {costs.ns(CostOf::kLatency) + 2 * overhead, std::max(overhead, costs.ns(CostOf::kGap)),
          costs.ns(CostOf::kByte), costs.ns(CostOf::kLongHandshake)};
}

constexpr auto kSegment = static_cast<double>(kPipelineSegment);

}  // namespace

double Level::time(double bytes) const noexcept {
  return round + bytes * byte + (bytes > static_cast<double>(kEagerBytes) ? handshake : 0);
}

CostedCall::CostedCall(const Shape& shape, const Costs& costs) noexcept
    : across(shape.has_nodes || shape.is_apart
                 ? level_of_network(costs)
                 : level_of_host(costs, costs.ns(CostOf::kFarLatency))),
      here(shape.is_apart ? across : level_of_host(costs, costs.ns(CostOf::kFarLatency))),
      combine(costs.ns(CostOf::kCombine)),
      copy(costs.ns(CostOf::kPut)),
      n(static_cast<double>(shape.bytes)),
      ranks(shape.ranks),
      nodes(shape.has_nodes ? shape.nodes : 1),
      on_node(shape.has_nodes ? shape.ranks_of_node : 1),
      log_ranks(log_of(shape.ranks)),
      log_nodes(log_of(shape.has_nodes ? shape.nodes : 1)),
      log_on_node(log_of(shape.has_nodes ? shape.ranks_of_node : 1)),
      active(1),
      are_nodes_alike(shape.are_nodes_alike) {
  while (active <= shape.ranks / 2) active *= 2;
}

double CostedCall::exchange(int distance, double bytes) const noexcept {
  if (distance < on_node) return here.time(bytes);
  return across.time(bytes) + (across.gap + bytes * across.byte) * (on_node - 1);
}

double CostedCall::halves(double combine_of_byte) const noexcept {
  double sum = 0;
  double part = n / 2;
  for (int distance = 1; distance < active; distance *= 2, part /= 2)
    sum += exchange(distance * spacing(), part) + part * combine_of_byte;
  return sum;
}

double CostedCall::ring(double bytes) const noexcept {
  if (nodes == 1) return (ranks - 1) * message(bytes);
  // Blocks of a node follow each other to the next one without waiting.
  const double period = across.gap + bytes * across.byte;
  return (ranks - 1) * std::max(period, message_here(bytes)) + nodes * across.time(0);
}

double CostedCall::behind_first() const noexcept { return ranks > 2 ? ranks - 2 : 0; }

double CostedCall::fold_in(double combine_of_byte) const noexcept {
  return active == ranks ? 0 : message_here(n) + n * combine_of_byte;
}
double CostedCall::fold_out() const noexcept { return active == ranks ? 0 : message_here(n); }

double CostedCall::scatter() const noexcept {
  double sum = 0;
  double part = n / 2;
  for (int i = 0; i < log_ranks; ++i, part /= 2) sum += message(part);
  return sum;
}

namespace cost {
namespace {

[[nodiscard]] double segments_of(const CostedCall& of) noexcept {
  return std::clamp(of.n / of.on_node / static_cast<double>(OwnedReduction::kLeastSegment), 1.0,
                    static_cast<double>(OwnedReduction::kMostSegments));
}
/// Of work between nodes and within them in segments, all but the longest are hidden behind each other.
[[nodiscard]] double overlapped(const CostedCall& of, double between, double within) noexcept {
  return std::max(between, within) + std::min(between, within) / segments_of(of);
}

}  // namespace

double barrier_dissemination(const CostedCall& of) noexcept {
  double sum = 0;
  for (int distance = 1; distance < of.ranks; distance *= 2) sum += of.exchange(distance, 0);
  // Of several nodes some rank's partner is on another one in each round.
  return of.nodes > 1 ? of.log_ranks * of.message(0) : sum;
}
double barrier_tree(const CostedCall& of) noexcept { return 2 * of.log_ranks * of.message(0); }
double barrier_leaders(const CostedCall& of) noexcept {
  return 2 * of.log_on_node * of.message_here(0) + of.log_nodes * of.message(0);
}

double bcast_binomial(const CostedCall& of) noexcept { return of.log_ranks * of.message(of.n); }
double bcast_scatter_allgather(const CostedCall& of) noexcept {
  return of.scatter() + of.ring(of.n / of.ranks);
}
double bcast_chain(const CostedCall& of) noexcept {
  const double first = std::min(of.n, kSegment);
  const double more = of.n > kSegment ? of.n / kSegment - 1 : 0;
  return (of.ranks - 1) * of.message(first) + more * (of.across.gap + kSegment * of.across.byte);
}
double bcast_leaders(const CostedCall& of) noexcept {
  return of.log_nodes * of.message(of.n) + of.log_on_node * of.message_here(of.n);
}
double bcast_node_chain(const CostedCall& of) noexcept {
  const double first = std::min(of.n, kSegment);
  const double more = of.n > kSegment ? of.n / kSegment - 1 : 0;
  // A leader hands on both ways.
  const double period = kSegment * std::max(of.across.byte, of.here.byte) + 2 * of.across.gap;
  return (of.nodes - 1) * of.message(first) + (of.on_node - 1) * of.message_here(first) +
         more * period;
}

double rooted_binomial(const CostedCall& of) noexcept {
  double sum = 0;
  double part = of.n;
  for (int i = 0; i < of.log_ranks; ++i, part *= 2)
    sum += of.message(std::min(part, (of.ranks - 1) * of.n));
  return sum + of.ranks / 2 * of.n * of.copy;
}
double rooted_linear(const CostedCall& of) noexcept {
  return of.message(of.n) + of.behind_first() * (of.across.gap + of.n * of.across.byte);
}

double allgather_recursive_doubling(const CostedCall& of) noexcept {
  double sum = 0;
  double part = of.n / of.ranks;
  for (int distance = 1; distance < of.ranks; distance *= 2, part *= 2)
    sum += of.exchange(distance, part);
  return sum;
}
double allgather_bruck(const CostedCall& of) noexcept {
  double sum = 0;
  const double slice = of.n / of.ranks;
  for (int distance = 1; distance < of.ranks; distance *= 2)
    sum += of.exchange(distance, std::min<double>(distance, of.ranks - distance) * slice);
  return sum + of.n * of.copy;
}
double allgather_neighbour_exchange(const CostedCall& of) noexcept {
  const double slice = of.n / of.ranks;
  return of.message(slice) + (of.ring(2 * slice) - of.message(2 * slice)) / 2;
}
double allgather_ring(const CostedCall& of) noexcept { return of.ring(of.n / of.ranks); }
double allgather_leaders(const CostedCall& of) noexcept {
  const double of_node = of.n / of.nodes;
  return of.message_here(0) + of_node * of.here.byte + of.log_nodes * of.message(0) +
         (of.nodes - 1) * of_node * of.across.byte + of.log_on_node * of.message_here(of.n);
}
double allgather_owners(const CostedCall& of) noexcept {
  if (!of.are_nodes_alike) return kNever;
  const double slice = of.n / of.ranks;
  const double between =
      (of.nodes - 1) * (of.message(slice) + (of.on_node - 1) * slice * of.across.byte);
  const double within = of.nodes * (of.on_node - 1) * slice * of.here.byte;
  return of.message_here(slice) + std::max(between, within) + std::min(between, within) / of.nodes;
}

double alltoall_bruck(const CostedCall& of) noexcept {
  double sum = of.ranks * of.n * of.copy * (2 + of.log_ranks);
  for (int distance = 1; distance < of.ranks; distance *= 2)
    sum += of.exchange(distance, of.ranks / 2 * of.n);
  return sum;
}
double alltoall_spread(const CostedCall& of) noexcept {
  // Several send to one at once: beyond so many ranks long ones are in each other's way.
  constexpr double kManyRanks = 16;
  const bool are_in_the_way = of.ranks > kManyRanks && of.n > static_cast<double>(kEagerBytes);
  const double bytes = of.behind_first() * of.n * of.across.byte * (are_in_the_way ? 1.25 : 1);
  return of.message(of.n) + of.behind_first() * of.across.gap + bytes * of.on_node;
}
double alltoall_pairwise(const CostedCall& of) noexcept {
  const double sum = (of.ranks - of.on_node) * of.exchange(static_cast<int>(of.on_node), of.n);
  return sum + (of.on_node - 1) * of.message_here(of.n);
}

double reduce_binomial(const CostedCall& of) noexcept {
  return of.log_ranks * (of.message(of.n) + of.n * of.combine);
}
double reduce_rabenseifner(const CostedCall& of) noexcept {
  return of.fold_in(of.combine) + of.halves(of.combine) + of.scatter();
}
double reduce_ring(const CostedCall& of) noexcept {
  const double block = of.n / of.ranks;
  return of.ring(block) + (of.ranks - 1) * block * of.combine + of.message(block) +
         of.behind_first() * (of.across.gap + block * of.across.byte);
}
double reduce_leaders(const CostedCall& of) noexcept {
  const double combined = of.n * of.combine;
  return of.log_on_node * (of.message_here(of.n) + combined) +
         of.log_nodes * (of.message(of.n) + combined);
}
double reduce_owners(const CostedCall& of) noexcept {
  if (!of.are_nodes_alike) return kNever;
  const double between = of.n * (1 + 1 / of.on_node) * of.across.byte;
  const double within = of.n * (of.on_node - 1) / of.on_node * of.here.byte + of.n * of.combine;
  // The root has a part of each rank.
  return (of.log_nodes + segments_of(of) + 1) * of.message(0) + of.ranks * of.across.gap +
         overlapped(of, between, within);
}

double allreduce_recursive_doubling(const CostedCall& of) noexcept {
  double sum = of.fold_in(of.combine) + of.fold_out();
  for (int distance = 1; distance < of.active; distance *= 2)
    sum += of.exchange(distance * of.spacing(), of.n) + of.n * of.combine;
  return sum;
}
double allreduce_rabenseifner(const CostedCall& of) noexcept {
  return of.fold_in(of.combine) + of.halves(of.combine) + of.halves(0) + of.fold_out();
}
double allreduce_ring(const CostedCall& of) noexcept {
  const double block = of.n / of.ranks;
  return 2 * of.ring(block) + (of.ranks - 1) * block * of.combine;
}
double allreduce_reduce_bcast(const CostedCall& of) noexcept {
  return of.log_ranks * (2 * of.message(of.n) + of.n * of.combine);
}
double allreduce_leaders(const CostedCall& of) noexcept {
  const double combined = of.n * of.combine;
  const bool is_folded = of.nodes > 2 && (1 << of.log_nodes) != static_cast<int>(of.nodes);
  return of.log_on_node * (2 * of.message_here(of.n) + combined) +
         of.log_nodes * (of.message(of.n) + combined) + (is_folded ? of.message(of.n) : 0);
}
double allreduce_owners(const CostedCall& of) noexcept {
  if (!of.are_nodes_alike) return kNever;
  const double between = 2 * of.n * (of.nodes - 1) / of.nodes * of.across.byte;
  const double within = 2 * of.n * (of.on_node - 1) / of.on_node * of.here.byte + of.n * of.combine;
  return (2 * of.log_nodes + segments_of(of) + 1) * of.message(0) + 2 * of.on_node * of.here.gap +
         overlapped(of, between, within);
}

double reduce_scatter_recursive_halving(const CostedCall& of) noexcept {
  double sum = of.fold_in(of.combine) + (of.fold_out() > 0 ? of.message_here(of.n / of.ranks) : 0);
  double part = of.n / 2;
  for (int distance = of.active / 2; distance > 0; distance /= 2, part /= 2)
    sum += of.exchange(distance * of.spacing(), part) + part * of.combine;
  return sum;
}
double reduce_scatter_pairwise(const CostedCall& of) noexcept {
  const double slice = of.n / of.ranks;
  return (of.ranks - 1) * (of.exchange(static_cast<int>(of.on_node), slice) + slice * of.combine);
}
double reduce_scatter_binomial(const CostedCall& of) noexcept {
  return reduce_binomial(of) + of.scatter();
}

double scan_recursive_doubling(const CostedCall& of) noexcept {
  return of.log_ranks * (of.message(of.n) + 2 * of.n * of.combine);
}
double scan_linear(const CostedCall& of) noexcept {
  return (of.ranks - 1) * (of.message(of.n) + of.n * of.combine);
}

}  // namespace cost

}  // namespace vmpi
