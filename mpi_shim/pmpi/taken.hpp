// SPDX-License-Identifier: BSD-2-Clause
// The collectives, with arguments as the program gave them: true, and the answer in `result`, or
// false, and it is the MPI's call.
//
// Whether a call is taken is decided by what all ranks know alike: the communicator, the collective,
// how many bytes move, of a reduction its operation and type, which MPI wants to be the same at all.
// Of other collectives the types need not be, and so all are taken (packing.hpp). Arguments that
// cannot be are the exception: the MPI underneath refuses them before it waits for anybody.
#pragma once

#include "mpi_shim/pmpi/library.hpp"

namespace vmpi::pmpi {

[[nodiscard]] bool take_barrier(Handle communicator, int& result) noexcept;
[[nodiscard]] bool take_bcast(void* buffer, Count count, Handle type, int root, Handle communicator,
                              int& result) noexcept;
[[nodiscard]] bool take_allgather(const void* send, Count send_count, Handle send_type,
                                  void* receive, Count receive_count, Handle receive_type,
                                  Handle communicator, int& result) noexcept;
[[nodiscard]] bool take_alltoall(const void* send, Count send_count, Handle send_type,
                                 void* receive, Count receive_count, Handle receive_type,
                                 Handle communicator, int& result) noexcept;
[[nodiscard]] bool take_reduce(const void* send, void* receive, Count count, Handle type,
                               Handle operation, int root, Handle communicator,
                               int& result) noexcept;
[[nodiscard]] bool take_allreduce(const void* send, void* receive, Count count, Handle type,
                                  Handle operation, Handle communicator, int& result) noexcept;

}  // namespace vmpi::pmpi
