// SPDX-License-Identifier: BSD-2-Clause
// What the functions of groups, communicators, topologies and collectives say about arguments. The
// big lock is held.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/info.hpp"
#include "mpi_shim/core/peers.hpp"

namespace vmpi {

template <class Handle, class Object>
[[nodiscard]] Handle handle_of(const Object& object) noexcept {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(object.handle));
}

/// How a handle is told in a message.
template <class Handle>
[[nodiscard]] unsigned long long told(Handle handle) noexcept {
  return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(handle));
}

/// MPI_SUCCESS, or raised. Of hints, which may be none.
[[nodiscard]] inline int check_hints(Comm* comm, const char* function, MPI_Info handle) noexcept {
  if (handle == MPI_INFO_NULL || find_info(handle) != nullptr) return MPI_SUCCESS;
  return raise(comm, MPI_ERR_INFO, function,
               "argument `info` is no info (0x%llx): it was freed, or never made", told(handle));
}

[[nodiscard, gnu::cold]] inline int bad_comm(const char* function, const char* argument,
                                             MPI_Comm handle) noexcept {
  if (handle == MPI_COMM_NULL)
    return raise(nullptr, MPI_ERR_COMM, function, "argument `%s` is MPI_COMM_NULL", argument);
  return raise(nullptr, MPI_ERR_COMM, function,
               "argument `%s` is no communicator (0x%llx): it was freed, or never made", argument,
               told(handle));
}

[[nodiscard, gnu::cold]] inline int bad_group(const char* function, const char* argument,
                                              MPI_Group handle) noexcept {
  if (handle == MPI_GROUP_NULL)
    return raise(nullptr, MPI_ERR_GROUP, function, "argument `%s` is MPI_GROUP_NULL", argument);
  return raise(nullptr, MPI_ERR_GROUP, function,
               "argument `%s` is no group (0x%llx): it was freed, or never made", argument,
               told(handle));
}

[[nodiscard, gnu::cold]] inline int null_pointer(Comm* comm, const char* function,
                                                 const char* argument) noexcept {
  return raise(comm, MPI_ERR_ARG, function, "argument `%s` is a null pointer", argument);
}

[[nodiscard, gnu::cold]] inline int no_memory(Comm* comm, const char* function) noexcept {
  return raise(comm, MPI_ERR_NO_MEM, function, "there is no memory left");
}

/// What all ranks of a communicator had to do together has failed for want of one.
[[nodiscard, gnu::cold]] inline int raise_loss(Comm& comm, const char* function) noexcept {
  if (const int gone = gone_member(comm); gone >= 0)
    return raise(&comm, MPI_ERR_PROC_ABORTED, function,
                 "rank %d of MPI_COMM_WORLD, a member of the communicator, is lost", gone);
  return raise(&comm, MPI_ERR_PROC_ABORTED, function,
               "a rank of the communicator takes no part in its collectives any more");
}

[[nodiscard, gnu::cold]] inline int is_intercommunicator(Comm* comm,
                                                         const char* function) noexcept {
  return raise(comm, MPI_ERR_COMM, function,
               "argument `comm` is an intercommunicator, an intracommunicator is wanted");
}

/// Writes the handle of a communicator with a topology (null: MPI_COMM_NULL), or raises.
inline int give_comm(Comm& from, int error, const Comm* made, MPI_Comm* out,
                     const char* function) noexcept {
  if (error == MPI_ERR_NO_MEM) return no_memory(&from, function);
  if (error == MPI_ERR_PROC_ABORTED) return raise_loss(from, function);
  if (error != MPI_SUCCESS)
    return raise(&from, error, function, "no context is left, or a rank could not be asked");
  *out = made == nullptr ? MPI_COMM_NULL : handle_of<MPI_Comm>(*made);
  return MPI_SUCCESS;
}

}  // namespace vmpi
