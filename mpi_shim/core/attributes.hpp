// SPDX-License-Identifier: BSD-2-Clause
// Keyvals, and the values that communicators and datatypes keep under them (MPI 5.0 section 7.7).
// The program's callbacks are called with the big lock given up. Values go in the order in which
// they were set, and leave in the reverse order.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

enum class KeyvalOwner : std::uint8_t { kComm, kDatatype };

/// Functions of a keyval: which pair it is follows from its owner. The constants of mpi.h that are
/// no functions (MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN ...) are kept as they are.
union CopyFunction {
  MPI_Comm_copy_attr_function* comm;
  MPI_Type_copy_attr_function* type;
};
union DeleteFunction {
  MPI_Comm_delete_attr_function* comm;
  MPI_Type_delete_attr_function* type;
};

/// What a keyval of another language calls: the functions above are that language's, and ask for these.
struct ForeignFunctions {
  void (*copy)();
  void (*remove)();
};

struct Keyval {
  std::uint32_t handle = 0;
  std::int32_t references = 1;  ///< the program's, and one for each value under it
  KeyvalOwner owner = KeyvalOwner::kComm;
  bool is_freed = false;
  CopyFunction copy = {};
  DeleteFunction remove = {};
  ForeignFunctions foreign = {};
  void* extra_state = nullptr;
};

/// Null: no memory.
[[nodiscard]] Keyval* make_keyval(KeyvalOwner owner) noexcept;
/// Null: none of this owner's, or a freed one.
[[nodiscard]] Keyval* find_keyval(int number, KeyvalOwner owner) noexcept;
void free_keyval(Keyval& keyval) noexcept;
void drop_all_keyvals() noexcept;
/// By the number of a keyval that lives; the big lock is not held.
void set_foreign_functions(int keyval, ForeignFunctions functions) noexcept;
[[nodiscard]] ForeignFunctions foreign_functions_of(int keyval) noexcept;

// Errors are MPI_ERR_NO_MEM, or what a callback returned.

/// An old value under the keyval is deleted first.
[[nodiscard]] int set_attribute(Comm& comm, Keyval& keyval, void* value) noexcept;
[[nodiscard]] int set_attribute(Datatype& type, Keyval& keyval, void* value) noexcept;
[[nodiscard]] bool get_attribute(const Comm& comm, const Keyval& keyval, void** value) noexcept;
[[nodiscard]] bool get_attribute(const Datatype& type, const Keyval& keyval, void** value) noexcept;
/// Nothing is under it: no error.
[[nodiscard]] int delete_attribute(Comm& comm, Keyval& keyval) noexcept;
[[nodiscard]] int delete_attribute(Datatype& type, Keyval& keyval) noexcept;

/// MPI_Comm_dup's part; that of datatypes is in datatype.hpp.
[[nodiscard]] int copy_attributes(const Comm& from, Comm& to) noexcept;
/// MPI_Comm_free's part; of MPI_COMM_SELF it is what MPI_Finalize does first.
[[nodiscard]] int delete_attributes(Comm& comm) noexcept;

/// The value of MPI_TAG_UB and its kin: a pointer to an int; null for a value that nobody knows.
/// False: the keyval is none of these.
[[nodiscard]] bool predefined_attribute(int keyval, int** value) noexcept;

}  // namespace vmpi
