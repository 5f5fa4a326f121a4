// SPDX-License-Identifier: BSD-2-Clause
// Constructors of datatypes. Arguments were checked by the caller; numbers that grow too large are
// found out here. Each returns MPI_SUCCESS, MPI_ERR_NO_MEM or MPI_ERR_VALUE_TOO_LARGE, and on success
// a type in `out` with one reference, whose combiner and contents the caller fills in.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

/// Numbers of the program's, in whichever width it has them; or one number for all places.
class Numbers {
 public:
  explicit Numbers(const int* numbers) noexcept : ints_(numbers), is_null_(numbers == nullptr) {}
  explicit Numbers(const std::int64_t* numbers) noexcept
      : longs_(numbers), is_null_(numbers == nullptr) {}
  explicit Numbers(std::int64_t of_all) noexcept : of_all_(of_all) {}
  [[nodiscard]] std::int64_t operator[](std::int64_t i) const noexcept {
    return ints_ != nullptr ? ints_[i] : longs_ != nullptr ? longs_[i] : of_all_;
  }
  /// An array that is none.
  [[nodiscard]] bool is_null() const noexcept { return is_null_; }

 private:
  const int* ints_ = nullptr;
  const std::int64_t* longs_ = nullptr;
  std::int64_t of_all_ = 0;
  bool is_null_ = false;
};

/// Blocks of `length` old types, `stride` bytes apart.
[[nodiscard]] int make_vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                              Datatype& old, Datatype*& out) noexcept;
[[nodiscard]] inline int make_contiguous(std::int64_t count, Datatype& old,
                                         Datatype*& out) noexcept {
  return make_vector(count, 1, old.extent, old, out);
}
/// Displacements are in units of `unit` bytes.
[[nodiscard]] int make_indexed(std::int64_t count, Numbers lengths, Numbers displacements,
                               std::int64_t unit, Datatype& old, Datatype*& out) noexcept;
/// `types[i]`: a handle that was checked.
[[nodiscard]] int make_struct(std::int64_t count, Numbers lengths, Numbers displacements,
                              const MPI_Datatype* types, Datatype*& out) noexcept;
[[nodiscard]] int make_resized(Datatype& old, std::int64_t lb, std::int64_t extent,
                               Datatype*& out) noexcept;
/// Name and commitment too; attributes are the caller's.
[[nodiscard]] int make_duplicate(Datatype& old, Datatype*& out) noexcept;
/// `order`: MPI_ORDER_C (the last dimension is dense) or MPI_ORDER_FORTRAN.
[[nodiscard]] int make_subarray(int dimensions, Numbers sizes, Numbers subsizes, Numbers starts,
                                int order, Datatype& old, Datatype*& out) noexcept;
[[nodiscard]] int make_darray(int size, int rank, int dimensions, Numbers sizes,
                              const int* distributions, const int* arguments,
                              const int* process_sizes, int order, Datatype& old,
                              Datatype*& out) noexcept;

}  // namespace vmpi
