// SPDX-License-Identifier: BSD-2-Clause
// Datatypes as the standard defines them, slow and plain: a type is its type map, a list of
// predefined types with displacements, and bounds that were given (MPI 5.0 sections 5.1.1, 5.1.6).
// Knows nothing of the library.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <random>
#include <vector>

namespace model {

struct Entry {
  std::int64_t at;
  int bytes;
  int alignment;
};

struct Type {
  std::vector<Entry> map;
  bool has_bounds = false;
  std::int64_t given_lb = 0, given_ub = 0;

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t true_lb() const;
  [[nodiscard]] std::int64_t true_ub() const;
  [[nodiscard]] std::int64_t lb() const;
  [[nodiscard]] std::int64_t ub() const;
  [[nodiscard]] std::int64_t extent() const { return ub() - lb(); }

  /// A copy of `other` follows, moved by `by`.
  void append(const Type& other, std::int64_t by);
  /// A block of copies, each an extent behind the last.
  void append_block(const Type& other, std::int64_t at, std::int64_t count);
};

/// A type in both worlds.
struct Both {
  Type model;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  bool is_ours = false;  ///< to be freed
};

/// What the library and the model make of one random sequence of constructors, up to `depth` deep,
/// with at most some thousand entries.
[[nodiscard]] Both random_type(std::mt19937& random, int depth);

}  // namespace model
