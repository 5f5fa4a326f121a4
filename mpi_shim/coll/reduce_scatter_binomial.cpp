// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int reduce_scatter_binomial(Comm& comm, const void* send, void* receive, const int* counts,
                            Datatype& type, const Op& op) noexcept {
  const auto size = static_cast<std::size_t>(comm.size());
  Array<std::int64_t> offsets;
  if (!offsets.resize(size + 1)) return MPI_ERR_NO_MEM;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    total += counts[i];
    offsets[i + 1] = total * type.size;
  }
  const void* const own = send == MPI_IN_PLACE ? receive : send;
  Elements sum;
  Bytes packed;
  if (comm.rank() == 0 && (!sum.make(type, total) || !packed.make(offsets[size])))
    return MPI_ERR_NO_MEM;
  const int reduced = reduce_binomial(comm, own, sum.origin(), total, type, op, 0);
  if (reduced != MPI_SUCCESS && reduced != MPI_ERR_TRUNCATE) return reduced;
  if (comm.rank() == 0) pack_all({sum.origin(), total, &type}, packed.data());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const int scattered =
      scatter_packed_binomial(comm, packed.data(), offsets.data(), {receive, counts[rank], &type});
  return reduced != MPI_SUCCESS ? reduced : scattered;
}

}  // namespace vmpi
