// SPDX-License-Identifier: BSD-2-Clause
// Compiles a type map: a new type is made of copies of others, added in the order of the map.
//
// What few copies of few blocks are is written out; of more the blocks keep a pointer to the inner
// type. So a type costs memory by its constructor's arguments, never by the length of its map.
#pragma once

#include "mpi_shim/core/checked.hpp"
#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

class TypeBuilder {
 public:
  /// Up to so many Blocks are written out rather than pointed to.
  static constexpr std::int64_t kWrittenOut = 64;
  /// Types nested deeper are written out whatever their number: the walk over them recurses.
  static constexpr std::int32_t kDeepest = 128;
  static constexpr std::int64_t kMostWrittenOut = 1 << 24;

  explicit TypeBuilder(Datatype& type) noexcept : type_(type) {}

  /// `count` elements of `part`, the first at `offset` bytes, `stride` bytes apart. The new type is
  /// to hold a reference to `part`, or to what holds one.
  void add(const Datatype& part, std::int64_t offset, std::int64_t stride,
           std::int64_t count) noexcept;
  /// Bounds that override those of the parts.
  void set_bounds(std::int64_t lb, std::int64_t extent) noexcept;
  /// A predefined type's own bytes.
  void add_basic(std::uint32_t basic, std::int64_t offset, std::int64_t bytes,
                 std::int32_t alignment) noexcept;
  /// MPI_SUCCESS, MPI_ERR_NO_MEM, or MPI_ERR_VALUE_TOO_LARGE: some number has more than 63 bits.
  [[nodiscard]] int finish() noexcept;

 private:
  void add_blocks(const Datatype& part, std::int64_t offset, std::int64_t stride,
                  std::int64_t count) noexcept;
  void add_signature(const Datatype& part, std::int64_t count) noexcept;
  void push(Blocks next) noexcept;
  void push(Signature next) noexcept;
  void widen_data(std::int64_t from, std::int64_t to) noexcept;

  Datatype& type_;
  Checked checked_;
  bool has_memory_ = true;
  bool has_data_ = false;
  std::int64_t data_from_ = 0, data_to_ = 0;
  std::int64_t lower_ = 0, upper_ = 0;  ///< of bounds that were given
};

}  // namespace vmpi
