// SPDX-License-Identifier: BSD-2-Clause
// Checks of arguments that functions about datatypes share. Zero: go on; else the function's result.
// The big lock is held.
#pragma once

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/datatype_make.hpp"
#include "mpi_shim/core/errors.hpp"

namespace vmpi {

[[nodiscard, gnu::cold]] inline int refuse_type(Comm* comm, const char* function,
                                                const char* argument,
                                                MPI_Datatype handle) noexcept {
  if (handle == MPI_DATATYPE_NULL)
    return raise(comm, MPI_ERR_TYPE, function, "%s is MPI_DATATYPE_NULL", argument);
  return raise(comm, MPI_ERR_TYPE, function, "%s is %p, which is no datatype or was freed",
               argument, static_cast<void*>(handle));
}

[[nodiscard]] inline int check_type(Comm* comm, const char* function, const char* argument,
                                    MPI_Datatype handle, Datatype*& out) noexcept {
  out = find_datatype(handle);
  return out != nullptr ? 0 : refuse_type(comm, function, argument, handle);
}

[[nodiscard]] inline int check_not_null(const char* function, const char* argument,
                                        const void* pointer) noexcept {
  if (pointer != nullptr) return 0;
  return raise(nullptr, MPI_ERR_ARG, function, "%s is a null pointer", argument);
}

[[nodiscard]] inline int check_array_given(const char* function, const char* argument,
                                           std::int64_t count, Numbers numbers) noexcept {
  if (count == 0 || !numbers.is_null()) return 0;
  return raise(nullptr, MPI_ERR_ARG, function, "%s is a null pointer", argument);
}

/// `error`: MPI_ERR_COUNT or MPI_ERR_ARG.
[[nodiscard]] inline int check_not_negative(const char* function, int error, const char* argument,
                                            std::int64_t value) noexcept {
  if (value >= 0) return 0;
  return raise(nullptr, error, function, "%s is %lld", argument, static_cast<long long>(value));
}

}  // namespace vmpi
