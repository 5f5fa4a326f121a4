// SPDX-License-Identifier: BSD-2-Clause
// The collectives of MPI that `verbatim perf coll` calls, as a table: what each is given and gives
// back, and its two forms. Any thread; no state.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>

#include "mpi_shim/coll/select.hpp"

namespace verbatim::cli {

/// What a call has; each collective takes some of it.
struct CollArguments {
  const void* given = nullptr;  ///< or MPI_IN_PLACE
  void* taken = nullptr;        ///< of a bcast the only buffer
  int count = 0;                ///< elements of a slice, or of a vector that is reduced
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_SUM;
  int root = 0;
  MPI_Comm comm = MPI_COMM_WORLD;
  // Of all ranks, where slices are said one by one.
  const int* counts = nullptr;
  const int* displacements = nullptr;
  const int* byte_displacements = nullptr;
  const MPI_Datatype* types = nullptr;
};

/// How many slices a rank gives, or gets.
enum class CollSide { kNone, kOne, kEach, kOneOfRoot, kEachOfRoot };

[[nodiscard]] constexpr std::uint64_t coll_slices(CollSide side, int ranks) {
  if (side == CollSide::kNone) return 0;
  const bool is_of_each = side == CollSide::kEach || side == CollSide::kEachOfRoot;
  return is_of_each ? static_cast<std::uint64_t>(ranks) : 1;
}

struct CollCall {
  const char* name;
  vmpi::Collective family;  ///< whose algorithms do it
  CollSide gives;
  CollSide gets;
  bool reduces;
  bool has_root;
  /// Slices of reductions are shares of the size; others are of the size each.
  bool is_scattered;
  int (*whole)(const CollArguments& a);
  int (*begin)(const CollArguments& a, MPI_Request* request);
};

/// How many bytes of other ranks some rank must have before all of a call of this size are back.
[[nodiscard]] std::uint64_t coll_moved(const CollCall& call, std::uint64_t bytes, int ranks);
/// Whether some rank may return without having waited for another.
[[nodiscard]] bool coll_waits_partly(const CollCall& call);

struct CollName {
  const CollCall* call = nullptr;  ///< null: there is none of this name
  bool is_nonblocking = false;
};

/// "allreduce", or "iallreduce" as its nonblocking form is called.
[[nodiscard]] CollName coll_call_named(std::string_view name);
/// "barrier, bcast, ...".
[[nodiscard]] std::string_view coll_call_names();

}  // namespace verbatim::cli
