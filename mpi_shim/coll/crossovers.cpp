// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/crossovers.hpp"

#include "mpi_shim/coll/cost_formulas.hpp"
#include "runtime/topo/hash.hpp"

namespace vmpi {
namespace {

// Crossings are told to a power of two, which is nearer than models are.
constexpr std::int64_t kLeastBytes = 8;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
/// An algorithm takes over from the one of fewer bytes where it is clearly faster: where two are about as
/// fast rows would come and go, and formulas are not that exact.
constexpr double kClearly = 0.9;

[[nodiscard]] const KnownAlgorithm& fastest(Collective which, const Shape& shape,
                                            const KnownAlgorithm* before) noexcept {
  const CostedCall call(shape, shape.costs != nullptr ? *shape.costs : built_in_costs());
  const KnownAlgorithm* best = nullptr;
  double least = 0;
  double of_before = kNever;
  for (const KnownAlgorithm& each : facts_of(which).algorithms) {
    if (unmet(each, shape) != nullptr) continue;
    const double ns = each.formula(call);
    if (&each == before) of_before = ns;
    if (best != nullptr && ns >= least) continue;
    best = &each;
    least = ns;
  }
  return before != nullptr && least >= kClearly * of_before ? *before : *best;
}

/// What tables differ by.
struct Key {
  std::uint64_t digest = 0;
  std::uint32_t ranks = 0;  ///< 0: of none
  std::uint32_t nodes = 0;
  std::uint32_t ranks_of_node = 0;
  std::uint32_t kind = 0;  ///< collective, and what it allows

  bool operator==(const Key&) const = default;
};

[[nodiscard]] Key key_of(Collective which, const Shape& shape) noexcept {
  const auto bit = [](bool is, int place) noexcept {
    return static_cast<std::uint32_t>(is ? 1 : 0) << place;
  };
  return {shape.costs != nullptr ? shape.costs->digest : built_in_costs().digest,
          static_cast<std::uint32_t>(shape.ranks), static_cast<std::uint32_t>(shape.nodes),
          static_cast<std::uint32_t>(shape.ranks_of_node),
          static_cast<std::uint32_t>(which) | bit(shape.is_commutative, 8) |
              bit(shape.are_alike, 9) | bit(shape.has_nodes, 10) |
              bit(shape.are_nodes_in_order, 11) | bit(shape.are_nodes_alike, 12) |
              bit(shape.is_apart, 13)};
}

struct Kept {
  Key key;
  Crossovers table;
};
constinit Kept tables[kKeptTables] = {};

/// Numbers of ranks are mostly powers of two, which a plain sum would let meet.
[[nodiscard]] std::size_t place_of(const Key& key) noexcept {
  using verbatim::topo::mix;
  const std::uint64_t of_ranks = mix(key.digest, std::uint64_t{key.ranks} << 32 | key.kind);
  return mix(of_ranks, std::uint64_t{key.nodes} << 32 | key.ranks_of_node) % kKeptTables;
}

}  // namespace

void Crossovers::make(Collective which, const Shape& shape) noexcept {
  Shape call = shape;
  count_ = 0;
  const KnownAlgorithm* before = nullptr;
  for (call.bytes = kLeastBytes; call.bytes <= kMostBytes; call.bytes *= 2) {
    const KnownAlgorithm* const best = &fastest(which, call, before);
    // Of more rows than there is room for, the last one's algorithm goes on.
    if (best != before && count_ < kMostRows) rows_[count_++].algorithm = before = best;
    rows_[count_ - 1].to_bytes = call.bytes;
  }
  rows_[count_ - 1].to_bytes = kAnyBytes;
}

std::size_t place_of_table(Collective which, const Shape& shape) noexcept {
  return place_of(key_of(which, shape));
}

const KnownAlgorithm& choose(Collective which, const Shape& shape) noexcept {
  const Key key = key_of(which, shape);
  Kept& kept = tables[place_of(key)];
  if (!(kept.key == key)) [[unlikely]] {
    kept.table.make(which, shape);
    kept.key = key;
  }
  return kept.table.of(shape.bytes);
}

double model_ns(const KnownAlgorithm& algorithm, const Shape& shape) noexcept {
  return algorithm.formula(
      CostedCall(shape, shape.costs != nullptr ? *shape.costs : built_in_costs()));
}

}  // namespace vmpi
