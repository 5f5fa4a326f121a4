// SPDX-License-Identifier: BSD-2-Clause
// In round k each rank tells the one 2^k above it and hears from the one 2^k below: after
// ceil(log2 P) rounds it has heard of all.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {

int barrier_dissemination(Comm& comm) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  Datatype& bytes = byte_type();
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (comm.rank() + distance) % size;
    const int from = (comm.rank() - distance + size) % size;
    const int error = exchange(comm, Plane::kCollective, to, tag, nullptr, 0, bytes, from, tag,
                               nullptr, 0, bytes);
    if (error != MPI_SUCCESS) return error;
    if (distance > size / 2) break;  // doubling further may overflow
  }
  return MPI_SUCCESS;
}

}  // namespace vmpi
