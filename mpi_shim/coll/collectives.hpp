// SPDX-License-Identifier: BSD-2-Clause
// Blocking collectives, by the algorithm that select.hpp chooses. Every rank calls the same one;
// arguments were checked as far as one rank can; the big lock is held. They return MPI_SUCCESS or the
// first error. Counts that differ between ranks end in MPI_ERR_TRUNCATE, never in memory that was
// not named.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/coll/algorithms.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {

/// Of one collective; all its ranks have counted alike.
[[nodiscard]] inline int next_tag(Comm& comm) noexcept {
  return static_cast<int>(comm.collectives++ & (kApart - 1));
}
/// Of calls that are not made by all ranks of the communicator, by the program's tag.
[[nodiscard]] inline int apart_tag(int tag) noexcept { return (tag & (kApart - 1)) | kApart; }

/// Of an intracommunicator.
[[nodiscard]] int do_collective(Collective which, Comm& comm, const Operands& of) noexcept;

[[nodiscard]] inline int bcast_bytes(Comm& comm, void* buffer, std::int64_t bytes,
                                     int root) noexcept {
  const Typed data = {buffer, bytes, &byte_type()};
  Operands of;
  of.root = root;
  of.own = &data;
  return do_collective(Collective::kBcast, comm, of);
}
[[nodiscard]] inline int allgather(Comm& comm, const Typed& in, const Slices& out) noexcept {
  Operands of;
  of.own = &in;
  of.out = &out;
  return do_collective(Collective::kAllgather, comm, of);
}

}  // namespace vmpi
