// SPDX-License-Identifier: BSD-2-Clause
// Cartesian topologies (MPI 5.0 section 8.5). Ranks are not reordered: on one host a good order is
// the launcher's.
#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/cartesian.hpp"

namespace vmpi {
namespace {

/// A grid's communicator, or null and the error is in `*error`.
Comm* find_grid(MPI_Comm handle, const char* function, int* error) noexcept {
  Comm* const comm = find_comm(handle);
  if (comm == nullptr)
    *error = bad_comm(function, "comm", handle);
  else if (comm->topology != TopologyKind::kCartesian)
    *error = raise(comm, MPI_ERR_TOPOLOGY, function,
                   "argument `comm` has no cartesian topology (MPI_Cart_create makes one)");
  else
    return comm;
  return nullptr;
}

[[nodiscard]] int dimensions(const Comm& comm) noexcept {
  return static_cast<int>(comm.cartesian.sizes.size());
}

/// How many ranks the grid has; -1: an error has been raised and is in `*error`.
int count_ranks(Comm& comm, int ndims, const int* dims, const int* periods, const char* function,
                int* error) noexcept {
  if (ndims < 0) {
    *error = raise(&comm, MPI_ERR_DIMS, function, "argument `ndims` is %d", ndims);
    return -1;
  }
  if (ndims > 0 && (dims == nullptr || periods == nullptr)) {
    *error = null_pointer(&comm, function, dims == nullptr ? "dims" : "periods");
    return -1;
  }
  std::int64_t ranks = 1;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] <= 0) {
      *error = raise(&comm, MPI_ERR_DIMS, function, "dims[%d] is %d", i, dims[i]);
      return -1;
    }
    ranks *= dims[i];
    if (ranks > comm.size()) break;
  }
  if (ranks > comm.size()) {
    *error = raise(&comm, MPI_ERR_DIMS, function,
                   "the grid has more places than the communicator has ranks, %d", comm.size());
    return -1;
  }
  return static_cast<int>(ranks);
}

/// Makes the ranks below `ranks` a grid.
int make_grid(Comm& from, int ranks, int ndims, const int* dims, const int* periods,
              Comm** out) noexcept {
  const int color = from.rank() < ranks ? 0 : MPI_UNDEFINED;
  const int error = split(from, color, from.rank(), out);
  if (error != MPI_SUCCESS || *out == nullptr) return error;
  Comm& made = **out;
  made.topology = TopologyKind::kCartesian;
  const auto count = static_cast<std::size_t>(ndims);
  if (made.cartesian.sizes.assign(dims, count) && made.cartesian.is_periodic.assign(periods, count))
    return MPI_SUCCESS;
  release(made);
  *out = nullptr;
  return MPI_ERR_NO_MEM;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Dims_create, (int nnodes, int ndims, int dims[])) {
  static constexpr const char* kName = "MPI_Dims_create";
  const BigGuard guard;
  if (nnodes <= 0) return raise(nullptr, MPI_ERR_ARG, kName, "argument `nnodes` is %d", nnodes);
  if (ndims < 0) return raise(nullptr, MPI_ERR_DIMS, kName, "argument `ndims` is %d", ndims);
  if (ndims == 0) return MPI_SUCCESS;
  if (dims == nullptr) return null_pointer(nullptr, kName, "dims");
  const int error = choose_dims(nnodes, ndims, dims);
  if (error == MPI_ERR_NO_MEM) return no_memory(nullptr, kName);
  if (error != MPI_SUCCESS)
    return raise(nullptr, error, kName,
                 "the dimensions that are given are negative, or do not divide %d nodes", nnodes);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_create,
           (MPI_Comm comm_old, int ndims, const int dims[], const int periods[],
            [[maybe_unused]] int reorder, MPI_Comm* comm_cart)) {
  static constexpr const char* kName = "MPI_Cart_create";
  const BigGuard guard;
  Comm* const from = find_comm(comm_old);
  if (from == nullptr) return bad_comm(kName, "comm_old", comm_old);
  if (from->remote != nullptr) return is_intercommunicator(from, kName);
  if (comm_cart == nullptr) return null_pointer(from, kName, "comm_cart");
  int error = MPI_SUCCESS;
  const int ranks = count_ranks(*from, ndims, dims, periods, kName, &error);
  if (ranks < 0) return error;
  Comm* made = nullptr;
  error = make_grid(*from, ranks, ndims, dims, periods, &made);
  return give_comm(*from, error, made, comm_cart, kName);
}

VMPI_ENTRY(int, MPI_Topo_test, (MPI_Comm comm, int* status)) {
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (found == nullptr) return bad_comm("MPI_Topo_test", "comm", comm);
  if (status == nullptr) return null_pointer(found, "MPI_Topo_test", "status");
  *status = found->topology == TopologyKind::kCartesian          ? MPI_CART
            : found->topology == TopologyKind::kGraph            ? MPI_GRAPH
            : found->topology == TopologyKind::kDistributedGraph ? MPI_DIST_GRAPH
                                                                 : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cartdim_get, (MPI_Comm comm, int* ndims)) {
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, "MPI_Cartdim_get", &error);
  if (grid == nullptr) return error;
  if (ndims == nullptr) return null_pointer(grid, "MPI_Cartdim_get", "ndims");
  *ndims = dimensions(*grid);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_get,
           (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])) {
  static constexpr const char* kName = "MPI_Cart_get";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, kName, &error);
  if (grid == nullptr) return error;
  const int count = dimensions(*grid);
  if (maxdims < count)
    return raise(grid, MPI_ERR_ARG, kName, "argument `maxdims` is %d, the grid has %d dimensions",
                 maxdims, count);
  if (count == 0) return MPI_SUCCESS;
  if (dims == nullptr) return null_pointer(grid, kName, "dims");
  if (periods == nullptr) return null_pointer(grid, kName, "periods");
  if (coords == nullptr) return null_pointer(grid, kName, "coords");
  for (int i = 0; i < count; ++i) {
    dims[i] = grid->cartesian.sizes[static_cast<std::size_t>(i)];
    periods[i] = grid->cartesian.is_periodic[static_cast<std::size_t>(i)] != 0 ? 1 : 0;
  }
  coords_of(grid->cartesian, grid->rank(), coords);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_rank, (MPI_Comm comm, const int coords[], int* rank)) {
  static constexpr const char* kName = "MPI_Cart_rank";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, kName, &error);
  if (grid == nullptr) return error;
  if (rank == nullptr) return null_pointer(grid, kName, "rank");
  if (dimensions(*grid) > 0 && coords == nullptr) return null_pointer(grid, kName, "coords");
  const int there = rank_at(grid->cartesian, coords);
  if (there == MPI_PROC_NULL)
    return raise(grid, MPI_ERR_ARG, kName,
                 "argument `coords` is outside of the grid in a direction that is not periodic");
  *rank = there;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[])) {
  static constexpr const char* kName = "MPI_Cart_coords";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, kName, &error);
  if (grid == nullptr) return error;
  if (rank < 0 || rank >= grid->size())
    return raise(grid, MPI_ERR_RANK, kName, "argument `rank` is %d, the grid has %d ranks", rank,
                 grid->size());
  if (maxdims < dimensions(*grid))
    return raise(grid, MPI_ERR_ARG, kName, "argument `maxdims` is %d, the grid has %d dimensions",
                 maxdims, dimensions(*grid));
  if (dimensions(*grid) == 0) return MPI_SUCCESS;
  if (coords == nullptr) return null_pointer(grid, kName, "coords");
  coords_of(grid->cartesian, rank, coords);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_shift,
           (MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest)) {
  static constexpr const char* kName = "MPI_Cart_shift";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, kName, &error);
  if (grid == nullptr) return error;
  if (direction < 0 || direction >= dimensions(*grid))
    return raise(grid, MPI_ERR_DIMS, kName, "argument `direction` is %d of %d dimensions",
                 direction, dimensions(*grid));
  if (rank_source == nullptr) return null_pointer(grid, kName, "rank_source");
  if (rank_dest == nullptr) return null_pointer(grid, kName, "rank_dest");
  // -INT_MIN is no int; one size less is the same place, and outside of a line either way.
  const int back = disp == -0x7fffffff - 1 ? 0x7fffffff : -disp;
  *rank_source = neighbour(grid->cartesian, grid->rank(), direction, back);
  *rank_dest = neighbour(grid->cartesian, grid->rank(), direction, disp);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm)) {
  static constexpr const char* kName = "MPI_Cart_sub";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const grid = find_grid(comm, kName, &error);
  if (grid == nullptr) return error;
  if (newcomm == nullptr) return null_pointer(grid, kName, "newcomm");
  const auto count = static_cast<std::size_t>(dimensions(*grid));
  if (count > 0 && remain_dims == nullptr) return null_pointer(grid, kName, "remain_dims");
  Array<int> coords;
  Array<int> sizes;
  Array<int> periods;
  if (!coords.resize(count) || !sizes.reserve(count) || !periods.reserve(count))
    return no_memory(grid, kName);
  coords_of(grid->cartesian, grid->rank(), coords.data());
  // Ranks that differ in what remains only have one color; they keep their order.
  int color = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int size = grid->cartesian.sizes[i];
    if (remain_dims[i] == 0) {
      color = color * size + coords[i];
    } else if (!sizes.push_back(size) || !periods.push_back(grid->cartesian.is_periodic[i])) {
      return no_memory(grid, kName);
    }
  }
  Comm* made = nullptr;
  error = split(*grid, color, grid->rank(), &made);
  if (error == MPI_SUCCESS) {
    made->topology = TopologyKind::kCartesian;
    made->cartesian.sizes = static_cast<Array<int>&&>(sizes);
    made->cartesian.is_periodic = static_cast<Array<int>&&>(periods);
  }
  return give_comm(*grid, error, made, newcomm, kName);
}

VMPI_ENTRY(int, MPI_Cart_map,
           (MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank)) {
  static constexpr const char* kName = "MPI_Cart_map";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (found == nullptr) return bad_comm(kName, "comm", comm);
  if (found->remote != nullptr) return is_intercommunicator(found, kName);
  if (newrank == nullptr) return null_pointer(found, kName, "newrank");
  int error = MPI_SUCCESS;
  const int ranks = count_ranks(*found, ndims, dims, periods, kName, &error);
  if (ranks < 0) return error;
  *newrank = found->rank() < ranks ? found->rank() : MPI_UNDEFINED;
  return MPI_SUCCESS;
}
