// SPDX-License-Identifier: BSD-2-Clause
// How a function says no: by the error handler of the communicator that it was called with, or
// MPI_COMM_SELF's where it has none (MPI 5.0 section 9.3).
//
//   if (dest >= size) return raise(comm, MPI_ERR_RANK, "MPI_Send", "dest is %d of %d ranks", ...);
#pragma once

#include <mpi.h>

#include <cstdint>

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
/// "MPI_ERR_RANK: invalid rank"; empty for a code of the program's without a text, null for what is
/// no code.
[[nodiscard]] const char* text_of(int error) noexcept;

/// A handler of the program's.
struct ErrorHandler {
  std::uint32_t handle = 0;
  std::int32_t program_handles = 0;
  MPI_Comm_errhandler_function* function = nullptr;
};

/// One for each function: handlers stay, so communicators keep numbers of them and no references.
/// Null: no memory.
[[nodiscard]] ErrorHandler* make_error_handler(MPI_Comm_errhandler_function* function) noexcept;
/// Null: none of the program's, or freed as often as it was made or got.
[[nodiscard]] ErrorHandler* find_error_handler(MPI_Errhandler handle) noexcept;
/// Also one that only communicators still have.
[[nodiscard]] ErrorHandler* find_error_handler_by_number(std::uint32_t number) noexcept;
/// MPI_Finalize.
void drop_error_handlers() noexcept;

// Classes, codes and texts of the program's (MPI 5.0 section 9.5). Numbers count up from
// MPI_ERR_LASTCODE + 1, classes and codes in one row.

/// 0: no memory, or no number.
[[nodiscard]] int add_error_class() noexcept;
[[nodiscard]] int add_error_code(int error_class) noexcept;
/// MPI_ERR_ARG: not one of the program's. MPI_ERR_NO_MEM.
[[nodiscard]] int set_error_text(int error, const char* text) noexcept;
/// MPI_ERR_ARG: not one of the program's, or of the other kind, or a class that still has codes.
[[nodiscard]] int remove_error(int error, bool is_class) noexcept;
/// The value of the attribute MPI_LASTUSEDCODE.
[[nodiscard]] int* last_used_code() noexcept;
void drop_added_errors() noexcept;

/// Ends all ranks: one line on stderr, the launcher is told, exit with `code`.
[[noreturn, gnu::cold, gnu::format(printf, 2, 3)]] void abort_all(int code, const char* format,
                                                                  ...) noexcept;

}  // namespace vmpi
