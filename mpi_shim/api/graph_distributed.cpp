// SPDX-License-Identifier: BSD-2-Clause
// Graphs of which each rank knows its part (MPI 5.0 section 8.5.4). Ranks are not reordered; weights
// are kept for those who ask.
#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

struct Edge {
  std::int32_t from;
  std::int32_t to;
  std::int32_t weight;
};

/// One side of a rank's edges.
struct Side {
  int count;
  const int* ranks;
  const int* weights;
  const char* names[3];

  [[nodiscard]] bool is_weighted() const noexcept { return weights != MPI_UNWEIGHTED; }
};

/// MPI_SUCCESS, or raised.
int check_side(Comm& comm, const Side& side, const char* function) noexcept {
  if (side.count < 0)
    return raise(&comm, MPI_ERR_ARG, function, "argument `%s` is %d", side.names[0], side.count);
  if (side.count == 0) return MPI_SUCCESS;
  if (side.ranks == nullptr) return null_pointer(&comm, function, side.names[1]);
  for (int i = 0; i < side.count; ++i)
    if (side.ranks[i] < 0 || side.ranks[i] >= comm.size())
      return raise(&comm, MPI_ERR_RANK, function, "%s[%d] is %d, the communicator has %d ranks",
                   side.names[1], i, side.ranks[i], comm.size());
  if (!side.is_weighted()) return MPI_SUCCESS;
  if (side.weights == nullptr || side.weights == MPI_WEIGHTS_EMPTY)
    return raise(&comm, MPI_ERR_ARG, function, "argument `%s` has no weights for %d edges",
                 side.names[2], side.count);
  for (int i = 0; i < side.count; ++i)
    if (side.weights[i] < 0)
      return raise(&comm, MPI_ERR_ARG, function, "%s[%d] is %d", side.names[2], i, side.weights[i]);
  return MPI_SUCCESS;
}

[[nodiscard]] bool keep_side(const Side& side, Array<int>& ranks, Array<int>& weights) noexcept {
  const auto count = static_cast<std::size_t>(side.count);
  return ranks.assign(side.ranks, count) &&
         (!side.is_weighted() || count == 0 || weights.assign(side.weights, count));
}

/// A communicator of the old one's ranks that takes the graph over.
int make(Comm& from, DistributedGraph& graph, MPI_Comm* out, const char* function) noexcept {
  Comm* made = nullptr;
  const int error = create_from_group(from, *from.group, &made);
  if (error == MPI_SUCCESS) {
    made->topology = TopologyKind::kDistributedGraph;
    made->distributed = static_cast<DistributedGraph&&>(graph);
  }
  return give_comm(from, error, made, out, function);
}

/// Edges of all ranks, in the order of those who gave them.
int gather_edges(Comm& comm, const Array<Edge>& own, Array<Edge>& all) noexcept {
  const auto size = static_cast<std::size_t>(comm.size());
  Array<std::int64_t> numbers;
  Array<std::int64_t> offsets;
  if (!numbers.resize(size) || !offsets.resize(size + 1)) return MPI_ERR_NO_MEM;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Edge));
  numbers[static_cast<std::size_t>(comm.rank())] = static_cast<std::int64_t>(own.size());
  Slices one_each;
  one_each.buffer = numbers.data();
  one_each.count = sizeof(std::int64_t);
  one_each.one_type = &byte_type();
  int error = allgather(comm, {MPI_IN_PLACE, 0, &byte_type()}, one_each);
  if (error != MPI_SUCCESS) return error;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::size_t i = 0; i < size; ++i) {
    if (numbers[i] < 0 || numbers[i] > kMost) return MPI_ERR_OTHER;
    offsets[i + 1] = offsets[i] + numbers[i] * kBytes;
  }
  if (!all.resize(static_cast<std::size_t>(offsets[size] / kBytes))) return MPI_ERR_NO_MEM;
  Slices rows;
  rows.form = Slices::Form::kPacked;
  rows.buffer = all.data();
  rows.offsets = offsets.data();
  const auto own_bytes = static_cast<std::int64_t>(own.size()) * kBytes;
  error = allgather(comm, {const_cast<Edge*>(own.data()), own_bytes, &byte_type()}, rows);
  return error;
}

[[nodiscard]] bool add_edge(int rank, int weight, bool is_weighted, Array<int>& ranks,
                            Array<int>& weights) noexcept {
  return ranks.push_back(rank) && (!is_weighted || weights.push_back(weight));
}

/// MPI_SUCCESS, or raised.
int list_edges(Comm& comm, int n, const int* sources, const int* degrees, const int* destinations,
               const int* weights, Array<Edge>& out, const char* function) noexcept {
  if (n < 0) return raise(&comm, MPI_ERR_ARG, function, "argument `n` is %d", n);
  if (n > 0 && sources == nullptr) return null_pointer(&comm, function, "sources");
  if (n > 0 && degrees == nullptr) return null_pointer(&comm, function, "degrees");
  int total = 0;
  for (int i = 0; i < n; ++i)
    if (degrees[i] < 0 || __builtin_add_overflow(total, degrees[i], &total))
      return raise(&comm, MPI_ERR_ARG, function, "degrees[%d] is %d", i, degrees[i]);
  if (const int error =
          check_side(comm, {n, sources, MPI_UNWEIGHTED, {"n", "sources", ""}}, function);
      error != MPI_SUCCESS)
    return error;
  const Side side = {total, destinations, weights, {"degrees", "destinations", "weights"}};
  if (const int error = check_side(comm, side, function); error != MPI_SUCCESS) return error;
  if (!out.reserve(static_cast<std::size_t>(total))) return no_memory(&comm, function);
  int at = 0;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < degrees[i]; ++k, ++at)
      if (!out.push_back({sources[i], destinations[at], side.is_weighted() ? weights[at] : 0}))
        return no_memory(&comm, function);
  return MPI_SUCCESS;
}

/// A graph's communicator, or null and the error is in `*error`.
Comm* find_distributed(MPI_Comm handle, const char* function, int* error) noexcept {
  Comm* const comm = find_comm(handle);
  if (comm == nullptr)
    *error = bad_comm(function, "comm", handle);
  else if (comm->topology != TopologyKind::kDistributedGraph)
    *error = raise(comm, MPI_ERR_TOPOLOGY, function,
                   "argument `comm` has no distributed graph (MPI_Dist_graph_create makes one)");
  else
    return comm;
  return nullptr;
}

/// As many as there is room for. MPI_SUCCESS, or raised.
int copy_side(Comm& comm, int room, const Array<int>& ranks, const Array<int>& weights, int* out,
              int* weights_out, const char* const (&names)[2], const char* function) noexcept {
  if (room < 0) return raise(&comm, MPI_ERR_ARG, function, "argument `%s` is %d", names[0], room);
  const std::size_t count =
      static_cast<std::size_t>(room) < ranks.size() ? static_cast<std::size_t>(room) : ranks.size();
  if (count > 0 && out == nullptr) return null_pointer(&comm, function, names[1]);
  const bool has_weights = weights_out != MPI_UNWEIGHTED && weights_out != nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = ranks[i];
    if (has_weights && i < weights.size()) weights_out[i] = weights[i];
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Dist_graph_create_adjacent,
           (MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
            int outdegree, const int destinations[], const int destweights[], MPI_Info info,
            [[maybe_unused]] int reorder, MPI_Comm* comm_dist_graph)) {
  static constexpr const char* kName = "MPI_Dist_graph_create_adjacent";
  const BigGuard guard;
  Comm* const from = find_comm(comm_old);
  if (from == nullptr) return bad_comm(kName, "comm_old", comm_old);
  if (from->remote != nullptr) return is_intercommunicator(from, kName);
  if (comm_dist_graph == nullptr) return null_pointer(from, kName, "comm_dist_graph");
  if (const int error = check_hints(from, kName, info); error != MPI_SUCCESS) return error;
  const Side in = {indegree, sources, sourceweights, {"indegree", "sources", "sourceweights"}};
  const Side out = {
      outdegree, destinations, destweights, {"outdegree", "destinations", "destweights"}};
  for (const Side* const side : {&in, &out})
    if (const int error = check_side(*from, *side, kName); error != MPI_SUCCESS) return error;
  DistributedGraph graph;
  graph.is_weighted = in.is_weighted() && out.is_weighted();
  if (!keep_side(in, graph.sources, graph.source_weights) ||
      !keep_side(out, graph.destinations, graph.destination_weights))
    return no_memory(from, kName);
  return make(*from, graph, comm_dist_graph, kName);
}

VMPI_ENTRY(int, MPI_Dist_graph_create,
           (MPI_Comm comm_old, int n, const int sources[], const int degrees[],
            const int destinations[], const int weights[], MPI_Info info,
            [[maybe_unused]] int reorder, MPI_Comm* comm_dist_graph)) {
  static constexpr const char* kName = "MPI_Dist_graph_create";
  const BigGuard guard;
  Comm* const from = find_comm(comm_old);
  if (from == nullptr) return bad_comm(kName, "comm_old", comm_old);
  if (from->remote != nullptr) return is_intercommunicator(from, kName);
  if (comm_dist_graph == nullptr) return null_pointer(from, kName, "comm_dist_graph");
  if (const int error = check_hints(from, kName, info); error != MPI_SUCCESS) return error;
  Array<Edge> own;
  Array<Edge> all;
  int error = list_edges(*from, n, sources, degrees, destinations, weights, own, kName);
  if (error != MPI_SUCCESS) return error;
  error = gather_edges(*from, own, all);
  if (error != MPI_SUCCESS) return give_comm(*from, error, nullptr, comm_dist_graph, kName);
  DistributedGraph graph;
  graph.is_weighted = weights != MPI_UNWEIGHTED;
  for (const Edge& edge : all) {
    if ((edge.from == from->rank() && !add_edge(edge.to, edge.weight, graph.is_weighted,
                                                graph.destinations, graph.destination_weights)) ||
        (edge.to == from->rank() &&
         !add_edge(edge.from, edge.weight, graph.is_weighted, graph.sources, graph.source_weights)))
      return no_memory(from, kName);
    if (edge.from < 0 || edge.from >= from->size() || edge.to < 0 || edge.to >= from->size())
      return give_comm(*from, MPI_ERR_OTHER, nullptr, comm_dist_graph, kName);
  }
  return make(*from, graph, comm_dist_graph, kName);
}

VMPI_ENTRY(int, MPI_Dist_graph_neighbors_count,
           (MPI_Comm comm, int* indegree, int* outdegree, int* weighted)) {
  static constexpr const char* kName = "MPI_Dist_graph_neighbors_count";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const graph = find_distributed(comm, kName, &error);
  if (graph == nullptr) return error;
  if (indegree == nullptr) return null_pointer(graph, kName, "indegree");
  if (outdegree == nullptr) return null_pointer(graph, kName, "outdegree");
  if (weighted == nullptr) return null_pointer(graph, kName, "weighted");
  *indegree = static_cast<int>(graph->distributed.sources.size());
  *outdegree = static_cast<int>(graph->distributed.destinations.size());
  *weighted = graph->distributed.is_weighted ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Dist_graph_neighbors,
           (MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
            int destinations[], int destweights[])) {
  static constexpr const char* kName = "MPI_Dist_graph_neighbors";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const comm_found = find_distributed(comm, kName, &error);
  if (comm_found == nullptr) return error;
  const DistributedGraph& graph = comm_found->distributed;
  error = copy_side(*comm_found, maxindegree, graph.sources, graph.source_weights, sources,
                    sourceweights, {"maxindegree", "sources"}, kName);
  if (error != MPI_SUCCESS) return error;
  return copy_side(*comm_found, maxoutdegree, graph.destinations, graph.destination_weights,
                   destinations, destweights, {"maxoutdegree", "destinations"}, kName);
}
