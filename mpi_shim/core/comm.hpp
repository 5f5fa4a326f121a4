// SPDX-License-Identifier: BSD-2-Clause
// Groups and communicators. A communicator has two contexts: messages of one never match receives
// of the other. `context` is the program's, context + 1 that of collectives.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/handle.hpp"
#include "mpi_shim/core/nodes.hpp"

namespace vmpi {

/// Shared by communicators; immutable once made.
struct Group {
  std::uint32_t handle = 0;
  std::int32_t references = 1;
  std::int32_t handles = 0;  ///< the program's, each with a reference: it frees no more than it has
  int rank = MPI_UNDEFINED;  ///< this process's
  Array<int> members;        ///< ranks in MPI_COMM_WORLD, by rank in the group

  [[nodiscard]] int size() const noexcept { return static_cast<int>(members.size()); }
  [[nodiscard]] std::uint32_t world_rank(int rank_here) const noexcept {
    return static_cast<std::uint32_t>(members[static_cast<std::size_t>(rank_here)]);
  }
};

enum class TopologyKind : std::uint8_t { kNone, kCartesian, kGraph, kDistributedGraph };

struct Cartesian {
  Array<int> sizes;
  Array<int> is_periodic;
};

/// Of all ranks: those of rank i are edges[index[i - 1]] up to edges[index[i]].
struct Graph {
  Array<int> index;
  Array<int> edges;
};

/// Of this rank alone. Weights are as many as ranks where there are weights, else none.
struct DistributedGraph {
  Array<int> sources;
  Array<int> source_weights;
  Array<int> destinations;
  Array<int> destination_weights;
  bool is_weighted = false;
};

/// Ranks of a communicator: nobody has looked, all share a node, each has its own, or neither.
enum class NodeState : std::uint8_t { kUnknown, kOne, kApart, kComposed };

struct Costs;

struct Comm {
  std::uint32_t handle = 0;
  std::int32_t references = 1;      ///< the program's handle, and operations under way
  std::uint32_t context = 0;        ///< a multiple of 4, or 2 more: a local one's
  Group* group = nullptr;           ///< holds a reference; of an intercommunicator the local one
  Group* remote = nullptr;          ///< of an intercommunicator
  Comm* local = nullptr;            ///< of an intercommunicator: the local group's own, context + 2
  std::uint32_t error_handler = 0;  ///< number of a handle
  std::uint32_t collectives = 0;    ///< begun on it: part of the tags of collective messages
  std::uint32_t collectives_waited =
      0;                           ///< those of them that had no team yet (coll/host_team.hpp)
  class HostTeam* team = nullptr;  ///< of ranks that are on one host
  Nodes nodes;                     ///< of kComposed (comm_nodes.hpp)
  Comm* node = nullptr;            ///< of those ranks that share this one's: context + 2
  const Costs* costs =
      nullptr;  ///< what all its ranks choose algorithms by; null: nobody has (costs.hpp)
  const Comm* whole = nullptr;  ///< of a local one, or of a node's: the communicator that it is of
  NodeState node_state = NodeState::kUnknown;
  int odd_rank = -1;      ///< of a collective that ends with MPI_ERR_TRUNCATE: whose length differs
  bool is_freed = false;  ///< by the program: operations under way keep it
  bool has_failed = false;  ///< of teams: nothing begins on it any more
  TopologyKind topology = TopologyKind::kNone;
  Cartesian cartesian;
  Graph graph;
  DistributedGraph distributed;
  Array<AttributeValue> attributes;
  char name[MPI_MAX_OBJECT_NAME] = {};

  [[nodiscard]] int rank() const noexcept { return group->rank; }
  [[nodiscard]] int size() const noexcept { return group->size(); }
  /// Those that messages go to.
  [[nodiscard]] const Group& peers() const noexcept { return remote != nullptr ? *remote : *group; }
};

/// MPI_COMM_WORLD, MPI_COMM_SELF and MPI_GROUP_EMPTY, by what `world` says. False: no memory.
[[nodiscard]] bool make_predefined_comms() noexcept;
/// MPI_Finalize's part, after the attributes of MPI_COMM_SELF were deleted (attributes.hpp): gives
/// the memory of all communicators, groups and keyvals back.
void drop_all_comms() noexcept;
[[nodiscard]] Comm* find_comm(MPI_Comm handle) noexcept;
/// The one whose `context` this is, among all that there are, freed ones too; null: none.
[[nodiscard]] const Comm* comm_of_context(std::uint32_t context) noexcept;
[[nodiscard]] Group* find_group(MPI_Group handle) noexcept;
void retain(Comm& comm) noexcept;
void release(Comm& comm) noexcept;
/// Set while there are teams (coll/host_team.hpp).
extern void (*end_host_team)(HostTeam* team) noexcept;
void retain(Group& group) noexcept;
void release(Group& group) noexcept;

/// A group of these world ranks, with one reference; null: no memory. Of none: MPI_GROUP_EMPTY.
[[nodiscard]] Group* make_group(const int* members, std::size_t count) noexcept;

/// A communicator over `group` (a reference is taken) with its context, and the error handler of
/// `parent`; null: no memory. `remote` makes it an intercommunicator.
[[nodiscard]] Comm* make_comm(const Comm& parent, Group& group, Group* remote,
                              std::uint32_t context) noexcept;

}  // namespace vmpi
