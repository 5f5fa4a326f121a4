// SPDX-License-Identifier: BSD-2-Clause
// Which algorithm does a collective: by a table from what all its ranks know alike (crossovers.hpp), which
// costs that were measured on the host have made, or by the user's word (VERBATIM_COLL_ALLREDUCE=ring).
// `verbatim mpi --explain` prints both.
#pragma once

#include <cstdint>
#include <span>

#include "mpi_shim/coll/algorithms.hpp"
#include "mpi_shim/core/costs.hpp"

namespace vmpi {

class CostedCall;

/// What a choice is made by. All ranks of a call have the same one.
struct Shape {
  int ranks = 0;
  /// Of bcast and the reductions all data of one rank, of allgather those of all ranks together, else
  /// a slice; 0 where not all ranks know.
  std::int64_t bytes = 0;
  bool is_commutative = true;
  bool are_alike = true;   ///< the slices
  bool has_nodes = false;  ///< several, of which one has several ranks
  bool are_nodes_in_order = true;
  bool are_nodes_alike = true;   ///< none has twice as many ranks as another
  bool is_apart = false;         ///< each rank on a node of its own
  int nodes = 1;                 ///< of those that has_nodes tells of
  int ranks_of_node = 1;         ///< of the largest
  const Costs* costs = nullptr;  ///< null: built in
};

/// What an algorithm wants of a call, as bits.
enum Wants : std::uint8_t {
  kNothing = 0,
  kCommutative = 1,
  kAlikeSlices = 2,
  kPowerOfTwo = 4,
  kEvenRanks = 8,
  kNodes = 16,
  kOrderOfNodes = 32,  ///< or an operation that commutes
};

struct KnownAlgorithm {
  const char* name;
  Algorithm* plan;
  std::uint8_t wants;
  const char* wins;
  const char* cost;
  double (*formula)(const CostedCall& call) noexcept;  ///< `cost` as code, in ns
};

struct CollectiveFacts {
  const char* name;      ///< "allreduce"
  const char* variable;  ///< "VERBATIM_COLL_ALLREDUCE"
  const char* bytes;     ///< what Shape::bytes are of it
  std::span<const KnownAlgorithm> algorithms;
};
[[nodiscard]] const CollectiveFacts& facts_of(Collective which) noexcept;

/// Null, or why this algorithm cannot do such a call: "wants a number of ranks that is a power of
/// two".
[[nodiscard]] const char* unmet(const KnownAlgorithm& algorithm, const Shape& shape) noexcept;
/// Null: there is none of this name.
[[nodiscard]] const KnownAlgorithm* find_algorithm(Collective which, const char* name) noexcept;

/// The user's word where it can be followed; it is said once where it cannot.
[[nodiscard]] Algorithm* select(Collective which, const Shape& shape) noexcept;
/// The user's word; null: none.
[[nodiscard]] const KnownAlgorithm* chosen_by_user(Collective which) noexcept;

// Ranks of one host that hear each other by flags and lines of mapped memory come before the table.

inline constexpr int kMostRanksOfHost = 64;
/// What goes with a flag, in its line.
inline constexpr std::int64_t kBytesOfLine = 56;
/// Beyond that messages are faster than rooms that are few; of so many ranks they are more.
inline constexpr std::int64_t kBytesThroughRooms = 256 << 10;
inline constexpr int kMostRanksOfLongRooms = 4;
/// From so many bytes on rooms and messages are compared; below, rounds count more than copies.
inline constexpr std::int64_t kLeastLong = 64 << 10;

/// Where they run: groups share an L3 cache.
struct HostLayout {
  int ranks = 0;
  int groups = 1;
  int largest_group = 0;
  int nodes = 1;  ///< NUMA nodes
  int most_groups_of_node = 0;
  bool is_declared = false;  ///< by VERBATIM_MPI_GROUPS
  // To hear a line within a group, and from another one.
  double near_ns = 60;
  double far_ns = 150;
  void hear_by(const Costs& costs) noexcept;
};
/// How short barriers, broadcasts and reductions are done: every rank hears every other; leaders of groups
/// hear theirs, then each other; or leaders of NUMA nodes stand between.
enum class HostLevels : std::uint8_t { kFlat, kCaches, kCachesAndNodes };
[[nodiscard]] HostLevels levels_for(const HostLayout& layout) noexcept;
/// Of fewer it never pays.
inline constexpr int kLeastRanksOfGroups = 5;

/// What they do, as the table's rows, of barrier, bcast, reduce and allreduce.
struct HostWay {
  const char* name;
  std::int64_t to_bytes;
  const char* why;
  const char* cost;
};
/// By bytes; of others none.
[[nodiscard]] std::span<const HostWay> host_ways_of(Collective which) noexcept;
/// Null: the table is asked, where buffers are not of MPI_Alloc_mem.
[[nodiscard]] const HostWay* host_way_for(Collective which, std::int64_t bytes,
                                          const HostLayout& layout, const Costs& costs) noexcept;
/// Whether long data of other memory should go by rooms that there are, not by messages as the table says.
[[nodiscard]] bool are_rooms_faster(Collective which, const Shape& shape) noexcept;

/// Reads VERBATIM_COLL_*: null, or what is wrong with one. Weak in MPI_Init: a program without
/// collectives does not have this file.
[[nodiscard, gnu::weak]] const char* read_algorithm_choices() noexcept;

}  // namespace vmpi
