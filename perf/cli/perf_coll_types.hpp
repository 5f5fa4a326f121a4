// SPDX-License-Identifier: BSD-2-Clause
// The element types and operations that `verbatim perf coll` measures with, and what an operation
// makes of values, told by itself rather than by MPI. Any thread; no state.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbatim::cli {

enum class CollClass { kText, kBytes, kInteger, kReal };

struct CollType {
  const char* name;      ///< "double", on the command line also "mpi_double"
  const char* mpi_name;  ///< "MPI_DOUBLE"
  MPI_Datatype handle;
  std::size_t size;
  CollClass is;
  /// Writes `count` values that rank `rank` gives, from the `first` one of its vector on.
  void (*fill)(void* at, std::int64_t first, std::int64_t count, int rank, std::uint64_t round,
               bool is_product);
  /// The first of `count` elements that differs from what ranks [from, to) together make of it by
  /// `op`; -1: none.
  std::int64_t (*first_wrong)(const void* at, std::int64_t first, std::int64_t count, int from,
                              int to, std::uint64_t round, int op);
};

struct CollOp {
  const char* name;  ///< "sum"
  const char* mpi_name;
  MPI_Op handle;
  bool takes_reals;
  bool takes_bytes;
};

/// Null: there is none of this name.
[[nodiscard]] const CollType* coll_type_named(std::string_view name);
[[nodiscard]] const CollOp* coll_op_named(std::string_view name);
[[nodiscard]] int number_of(const CollOp& op);
[[nodiscard]] bool takes(const CollOp& op, const CollType& type);

}  // namespace verbatim::cli
