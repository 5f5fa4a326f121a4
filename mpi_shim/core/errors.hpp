// SPDX-License-Identifier: BSD-2-Clause
// How a function says no: by the error handler of the communicator that it was called with, or
// MPI_COMM_SELF's where it has none (MPI 5.0 section 9.3).
//
//   if (dest >= size) return raise(comm, MPI_ERR_RANK, "MPI_Send", "dest is %d of %d ranks", ...);
#pragma once

#include <mpi.h>

namespace vmpi {

struct Comm;

/// Calls the error handler: MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT print one line
/// "rank R of N: MPI_Send: dest is 7 of 4 ranks (MPI_ERR_RANK)" and end all ranks; MPI_ERRORS_RETURN
/// returns `error`; a program's handler is called first. `comm`: null for none. The big lock is held.
[[nodiscard, gnu::cold, gnu::format(printf, 4, 5)]] int raise(Comm* comm, int error,
                                                              const char* function,
                                                              const char* format, ...) noexcept;

/// The class of an error code, which may be one of the program's (MPI_Add_error_code).
[[nodiscard]] int class_of(int error) noexcept;
/// "MPI_ERR_RANK: invalid rank"; never null.
[[nodiscard]] const char* text_of(int error) noexcept;

/// Ends all ranks: one line on stderr, the launcher is told, exit with `code`.
[[noreturn, gnu::cold, gnu::format(printf, 2, 3)]] void abort_all(int code, const char* format,
                                                                  ...) noexcept;

}  // namespace vmpi
