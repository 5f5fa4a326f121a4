// SPDX-License-Identifier: BSD-2-Clause
// Graphs that every rank knows (MPI 5.0 section 8.5.3). Ranks are not reordered.
#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// A graph's communicator, or null and the error is in `*error`.
Comm* find_graph(MPI_Comm handle, const char* function, int* error) noexcept {
  Comm* const comm = find_comm(handle);
  if (comm == nullptr)
    *error = bad_comm(function, "comm", handle);
  else if (comm->topology != TopologyKind::kGraph)
    *error = raise(comm, MPI_ERR_TOPOLOGY, function,
                   "argument `comm` has no graph topology (MPI_Graph_create makes one)");
  else
    return comm;
  return nullptr;
}

/// MPI_SUCCESS, or raised.
int check_graph(Comm& comm, int nodes, const int* index, const int* edges,
                const char* function) noexcept {
  if (nodes < 0 || nodes > comm.size())
    return raise(&comm, MPI_ERR_ARG, function,
                 "argument `nnodes` is %d, the communicator has %d ranks", nodes, comm.size());
  if (nodes == 0) return MPI_SUCCESS;
  if (index == nullptr) return null_pointer(&comm, function, "index");
  for (int i = 0; i < nodes; ++i)
    if (index[i] < (i == 0 ? 0 : index[i - 1]))
      return raise(&comm, MPI_ERR_ARG, function, "index[%d] is %d, less than the one before", i,
                   index[i]);
  if (index[nodes - 1] > 0 && edges == nullptr) return null_pointer(&comm, function, "edges");
  for (int i = 0; i < index[nodes - 1]; ++i)
    if (edges[i] < 0 || edges[i] >= nodes)
      return raise(&comm, MPI_ERR_ARG, function, "edges[%d] is %d, there are %d nodes", i, edges[i],
                   nodes);
  return MPI_SUCCESS;
}

int make_graph(Comm& from, int nodes, const int* index, const int* edges, Comm** out) noexcept {
  const int color = from.rank() < nodes ? 0 : MPI_UNDEFINED;
  const int error = split(from, color, from.rank(), out);
  if (error != MPI_SUCCESS || *out == nullptr) return error;
  Comm& made = **out;
  made.topology = TopologyKind::kGraph;
  if (made.graph.index.assign(index, static_cast<std::size_t>(nodes)) &&
      made.graph.edges.assign(edges, static_cast<std::size_t>(index[nodes - 1])))
    return MPI_SUCCESS;
  release(made);
  *out = nullptr;
  return MPI_ERR_NO_MEM;
}

/// Where the neighbours of a rank are in a graph's edges. MPI_SUCCESS, or raised.
int find_row(Comm& graph, int rank, const char* function, int* begin, int* count) noexcept {
  if (rank < 0 || rank >= graph.size())
    return raise(&graph, MPI_ERR_RANK, function, "argument `rank` is %d, the graph has %d ranks",
                 rank, graph.size());
  const auto at = static_cast<std::size_t>(rank);
  *begin = rank == 0 ? 0 : graph.graph.index[at - 1];
  *count = graph.graph.index[at] - *begin;
  return MPI_SUCCESS;
}

void copy_some(const Array<int>& from, int begin, int count, int* to) noexcept {
  for (int i = 0; i < count; ++i) to[i] = from[static_cast<std::size_t>(begin + i)];
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Graph_create,
           (MPI_Comm comm_old, int nnodes, const int indx[], const int edges[],
            [[maybe_unused]] int reorder, MPI_Comm* comm_graph)) {
  static constexpr const char* kName = "MPI_Graph_create";
  const BigGuard guard;
  Comm* const from = find_comm(comm_old);
  if (from == nullptr) return bad_comm(kName, "comm_old", comm_old);
  if (from->remote != nullptr) return is_intercommunicator(from, kName);
  if (comm_graph == nullptr) return null_pointer(from, kName, "comm_graph");
  int error = check_graph(*from, nnodes, indx, edges, kName);
  if (error != MPI_SUCCESS) return error;
  Comm* made = nullptr;
  error = make_graph(*from, nnodes, indx, edges, &made);
  return give_comm(*from, error, made, comm_graph, kName);
}

VMPI_ENTRY(int, MPI_Graphdims_get, (MPI_Comm comm, int* nnodes, int* nedges)) {
  static constexpr const char* kName = "MPI_Graphdims_get";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const graph = find_graph(comm, kName, &error);
  if (graph == nullptr) return error;
  if (nnodes == nullptr) return null_pointer(graph, kName, "nnodes");
  if (nedges == nullptr) return null_pointer(graph, kName, "nedges");
  *nnodes = static_cast<int>(graph->graph.index.size());
  *nedges = static_cast<int>(graph->graph.edges.size());
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Graph_get,
           (MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])) {
  static constexpr const char* kName = "MPI_Graph_get";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const graph = find_graph(comm, kName, &error);
  if (graph == nullptr) return error;
  const int nodes = static_cast<int>(graph->graph.index.size());
  const int count = static_cast<int>(graph->graph.edges.size());
  if (maxindex < nodes)
    return raise(graph, MPI_ERR_ARG, kName, "argument `maxindex` is %d, the graph has %d nodes",
                 maxindex, nodes);
  if (maxedges < count)
    return raise(graph, MPI_ERR_ARG, kName, "argument `maxedges` is %d, the graph has %d edges",
                 maxedges, count);
  if (indx == nullptr) return null_pointer(graph, kName, "index");
  if (edges == nullptr && count > 0) return null_pointer(graph, kName, "edges");
  copy_some(graph->graph.index, 0, nodes, indx);
  copy_some(graph->graph.edges, 0, count, edges);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Graph_neighbors_count, (MPI_Comm comm, int rank, int* nneighbors)) {
  static constexpr const char* kName = "MPI_Graph_neighbors_count";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const graph = find_graph(comm, kName, &error);
  if (graph == nullptr) return error;
  if (nneighbors == nullptr) return null_pointer(graph, kName, "nneighbors");
  int begin = 0;
  int count = 0;
  error = find_row(*graph, rank, kName, &begin, &count);
  if (error == MPI_SUCCESS) *nneighbors = count;
  return error;
}

VMPI_ENTRY(int, MPI_Graph_neighbors, (MPI_Comm comm, int rank, int maxneighbors, int neighbors[])) {
  static constexpr const char* kName = "MPI_Graph_neighbors";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const graph = find_graph(comm, kName, &error);
  if (graph == nullptr) return error;
  int begin = 0;
  int count = 0;
  error = find_row(*graph, rank, kName, &begin, &count);
  if (error != MPI_SUCCESS) return error;
  if (maxneighbors < count)
    return raise(graph, MPI_ERR_ARG, kName, "argument `maxneighbors` is %d, there are %d",
                 maxneighbors, count);
  if (neighbors == nullptr && count > 0) return null_pointer(graph, kName, "neighbors");
  copy_some(graph->graph.edges, begin, count, neighbors);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Graph_map,
           (MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank)) {
  static constexpr const char* kName = "MPI_Graph_map";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (found == nullptr) return bad_comm(kName, "comm", comm);
  if (found->remote != nullptr) return is_intercommunicator(found, kName);
  if (newrank == nullptr) return null_pointer(found, kName, "newrank");
  if (const int error = check_graph(*found, nnodes, indx, edges, kName); error != MPI_SUCCESS)
    return error;
  *newrank = found->rank() < nnodes ? found->rank() : MPI_UNDEFINED;
  return MPI_SUCCESS;
}
