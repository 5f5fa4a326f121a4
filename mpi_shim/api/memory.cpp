// SPDX-License-Identifier: BSD-2-Clause
// Memory that messages reach fastest (MPI 5.0 section 9.2).
#include <cstring>

#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/errors.hpp"

using vmpi::BigGuard;

VMPI_ENTRY(int, MPI_Alloc_mem, (MPI_Aint size, MPI_Info info, void* baseptr)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Alloc_mem";
  if (size < 0)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `size` is %lld",
                       static_cast<long long>(size));
  if (baseptr == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `baseptr` is a null pointer");
  if (const int error = vmpi::check_hints(nullptr, kName, info); error != MPI_SUCCESS) return error;
  void* const memory = vmpi::alloc_mapped(static_cast<std::uint64_t>(size));
  if (memory == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_NO_MEM, kName, "there are no %lld bytes",
                       static_cast<long long>(size));
  std::memcpy(baseptr, &memory, sizeof memory);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Free_mem, (void* base)) {
  BigGuard guard;
  if (base == nullptr || vmpi::free_mapped(base)) return MPI_SUCCESS;
  return vmpi::raise(nullptr, MPI_ERR_BASE, "MPI_Free_mem",
                     "argument `base` is no memory of MPI_Alloc_mem, or was freed before");
}
