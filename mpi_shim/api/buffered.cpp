// SPDX-License-Identifier: BSD-2-Clause
// The buffer of buffered sends (MPI 5.0 section 3.6).
#include <cstring>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/buffered.hpp"
#include "mpi_shim/core/errors.hpp"

using vmpi::BigGuard;

VMPI_ENTRY(int, MPI_Buffer_attach, (void* buffer, int size)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Buffer_attach";
  if (size < 0) return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `size` is %d", size);
  if (buffer == nullptr && size != 0)
    return vmpi::raise(nullptr, MPI_ERR_BUFFER, kName, "argument `buffer` is a null pointer");
  const int error = vmpi::attach_buffer(buffer, static_cast<std::uint64_t>(size));
  if (error == MPI_SUCCESS) return error;
  return vmpi::raise(nullptr, error, kName, "a buffer is attached already: detach it first");
}

VMPI_ENTRY(int, MPI_Buffer_detach, (void* buffer_addr, int* size)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Buffer_detach";
  if (buffer_addr == nullptr || size == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `%s` is a null pointer",
                       buffer_addr == nullptr ? "buffer_addr" : "size");
  void* buffer = nullptr;
  std::uint64_t bytes = 0;
  const int error = vmpi::detach_buffer(&buffer, &bytes);
  if (error != MPI_SUCCESS) return vmpi::raise(nullptr, error, kName, "no buffer is attached");
  std::memcpy(buffer_addr, &buffer, sizeof buffer);
  *size = static_cast<int>(bytes);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Buffer_flush, (void)) {
  BigGuard guard;
  vmpi::flush_buffer();
  return MPI_SUCCESS;
}
