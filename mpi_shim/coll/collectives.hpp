// SPDX-License-Identifier: BSD-2-Clause
// The blocking collectives of intracommunicators, an algorithm per file. Every rank calls the same
// one; arguments were checked as far as one rank can; the big lock is held. They return MPI_SUCCESS
// or the first error. Counts that differ between ranks end in MPI_ERR_TRUNCATE, never in memory that
// was not named.
//
// Costs below: P ranks, a message of n bytes costs a + n b.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/coll/slices.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/op.hpp"

namespace vmpi {

/// Of one collective; all its ranks have counted alike.
[[nodiscard]] inline int next_tag(Comm& comm) noexcept {
  return static_cast<int>(comm.collectives++ & 0x3fffffffu);
}
/// Of calls that are not made by all ranks of the communicator, by the program's tag.
[[nodiscard]] inline int apart_tag(int tag) noexcept {
  return static_cast<int>((static_cast<std::uint32_t>(tag) & 0x3fffffffu) | 0x40000000u);
}

[[nodiscard]] inline Datatype& byte_type() noexcept { return *find_datatype(MPI_BYTE); }

/// ceil(log2 P) rounds of a.
[[nodiscard]] int barrier_dissemination(Comm& comm) noexcept;
/// ceil(log2 P) (a + n b).
[[nodiscard]] int bcast_binomial(Comm& comm, void* buffer, std::int64_t count, Datatype& type,
                                 int root) noexcept;

// `in` of these is MPI_IN_PLACE where the rank's own part is in `out` already; `out` counts at the
// root alone.

/// ceil(log2 P) a + n P b. REQUIRES: all slices of `out` are alike.
[[nodiscard]] int gather_binomial(Comm& comm, const Typed& in, const Slices& out,
                                  int root) noexcept;
/// (P - 1) (a + n b) at the root.
[[nodiscard]] int gather_linear(Comm& comm, const Typed& in, const Slices& out, int root) noexcept;
/// REQUIRES: all slices of `in` are alike.
[[nodiscard]] int scatter_binomial(Comm& comm, const Slices& in, const Typed& out,
                                   int root) noexcept;
[[nodiscard]] int scatter_linear(Comm& comm, const Slices& in, const Typed& out, int root) noexcept;

/// ceil(log2 P) a + n P b, whatever the slices are.
[[nodiscard]] int allgather_bruck(Comm& comm, const Typed& in, const Slices& out) noexcept;

/// ceil(log2 P) (a + n P b / 2). REQUIRES: all slices of each are alike; not in place.
[[nodiscard]] int alltoall_bruck(Comm& comm, const Slices& in, const Slices& out) noexcept;
/// (P - 1) (a + n b), all under way together.
[[nodiscard]] int alltoall_spread(Comm& comm, const Slices& in, const Slices& out) noexcept;
/// As `out` says, from where it will be.
[[nodiscard]] int alltoall_in_place(Comm& comm, const Slices& out) noexcept;

// Reductions combine in the order of ranks when the operation does not commute. `send` may be
// MPI_IN_PLACE.

/// ceil(log2 P) (a + n b); an operation that does not commute costs one message more.
[[nodiscard]] int reduce_binomial(Comm& comm, const void* send, void* receive, std::int64_t count,
                                  Datatype& type, const Op& op, int root) noexcept;
/// (ceil(log2 P) + 2 when P is no power of two) (a + n b).
[[nodiscard]] int allreduce_recursive_doubling(Comm& comm, const void* send, void* receive,
                                               std::int64_t count, Datatype& type,
                                               const Op& op) noexcept;
/// A reduction to rank 0, and a binomial scatter of slices of counts[i] elements.
[[nodiscard]] int reduce_scatter_binomial(Comm& comm, const void* send, void* receive,
                                          const int* counts, Datatype& type, const Op& op) noexcept;
/// ceil(log2 P) (a + n b).
[[nodiscard]] int scan_recursive_doubling(Comm& comm, const void* send, void* receive,
                                          std::int64_t count, Datatype& type,
                                          const Op& op) noexcept;
[[nodiscard]] int exscan_recursive_doubling(Comm& comm, const void* send, void* receive,
                                            std::int64_t count, Datatype& type,
                                            const Op& op) noexcept;

/// Packed data of the root to ranks by a binomial tree: rank i gets the bytes from offsets[i] up to
/// offsets[i + 1], which it packs out into `out`. Every rank knows `offsets` (P + 1 of them).
/// `packed` counts at rank 0 alone, which is the root.
[[nodiscard]] int scatter_packed_binomial(Comm& comm, const unsigned char* packed,
                                          const std::int64_t* offsets, const Typed& out) noexcept;

}  // namespace vmpi
