// SPDX-License-Identifier: BSD-2-Clause
// Subarrays and distributed arrays (MPI 5.0 sections 5.1.3 and 5.1.4), a dimension after the other
// from the dense one on. Their bounds are those of the whole array.
#include "mpi_shim/core/datatype_make.hpp"
#include "mpi_shim/core/datatype_parts.hpp"

namespace vmpi {
namespace {

/// The array so far: its dense dimensions.
class Inner {
 public:
  explicit Inner(Datatype& old) noexcept : type_(&old), stride_(old.extent) {}
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
  ~Inner() {
    if (is_ours_) release(*type_);
  }

  /// Of the next dimension's `size` indices `blocks` blocks of `length`, `apart` indices apart, the
  /// first at index `start`; then `rest` more behind the last block's beginning + `apart`.
  [[nodiscard]] int extend(std::int64_t size, std::int64_t start, std::int64_t blocks,
                           std::int64_t length, std::int64_t apart, std::int64_t rest) noexcept {
    NewType made;
    if (!made.hold(*type_)) return MPI_ERR_NO_MEM;
    TypeBuilder builder(made.get());
    Checked checked;
    const std::int64_t first = checked.product(start, stride_);
    const std::int64_t step = checked.product(apart, stride_);
    const std::int64_t behind = checked.sum(first, checked.product(blocks, step));
    if (checked.overflowed()) return MPI_ERR_VALUE_TOO_LARGE;
    if (blocks == 1 || length <= 1) {
      builder.add(*type_, first, blocks == 1 ? stride_ : step, blocks == 1 ? length : blocks);
    } else if (blocks > 1) {
      Datatype* block = nullptr;
      const int error = make_vector(length, 1, stride_, *type_, block);
      if (error != MPI_SUCCESS) return error;
      if (!made.adopt(*block)) return MPI_ERR_NO_MEM;
      builder.add(*block, first, step, blocks);
    }
    builder.add(*type_, behind, stride_, rest);
    Datatype* next = nullptr;
    const int error = made.finish(builder, next);
    if (error != MPI_SUCCESS) return error;
    if (is_ours_) release(*type_);
    type_ = next;
    is_ours_ = true;
    stride_ = checked.product(stride_, size);
    return checked.overflowed() ? MPI_ERR_VALUE_TOO_LARGE : MPI_SUCCESS;
  }

  /// Of all dimensions.
  [[nodiscard]] int finish(Datatype& old, Datatype*& out) noexcept {
    NewType made;
    if (!made.hold(old)) return MPI_ERR_NO_MEM;
    TypeBuilder builder(made.get());
    builder.add(*type_, 0, 0, 1);
    if (is_ours_) {
      is_ours_ = false;
      if (!made.adopt(*type_)) return MPI_ERR_NO_MEM;
    }
    builder.set_bounds(0, stride_);
    return made.finish(builder, out);
  }

 private:
  Datatype* type_;
  std::int64_t stride_;  ///< bytes from an index of the next dimension to its successor
  bool is_ours_ = false;
};

}  // namespace

int make_subarray(int dimensions, Numbers sizes, Numbers subsizes, Numbers starts, int order,
                  Datatype& old, Datatype*& out) noexcept {
  Inner inner(old);
  for (int i = 0; i < dimensions; ++i) {
    const int d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
    const int error = inner.extend(sizes[d], starts[d], 1, subsizes[d], 0, 0);
    if (error != MPI_SUCCESS) return error;
  }
  return inner.finish(old, out);
}

int make_darray(int size, int rank, int dimensions, Numbers sizes, const int* distributions,
                const int* arguments, const int* process_sizes, int order, Datatype& old,
                Datatype*& out) noexcept {
  // Ranks fill the grid of processes with its last dimension the dense one, whatever `order` is.
  Array<int> coordinates;
  if (!coordinates.resize(static_cast<std::size_t>(dimensions))) return MPI_ERR_NO_MEM;
  for (int d = 0, left = size, of = rank; d < dimensions; ++d) {
    left /= process_sizes[d];
    coordinates[static_cast<std::size_t>(d)] = of / left;
    of %= left;
  }
  Inner inner(old);
  for (int i = 0; i < dimensions; ++i) {
    const int d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
    const std::int64_t all = sizes[d];
    const std::int64_t processes = process_sizes[d];
    std::int64_t length = arguments[d];
    if (distributions[d] == MPI_DISTRIBUTE_NONE)
      length = all;
    else if (length == MPI_DISTRIBUTE_DFLT_DARG)
      length = distributions[d] == MPI_DISTRIBUTE_CYCLIC ? 1 : (all + processes - 1) / processes;
    // A block that is longer than the array is as good as one of its length.
    if (length > all) length = all;
    const std::int64_t start = coordinates[static_cast<std::size_t>(d)] * length;
    const std::int64_t apart = processes * length;
    const std::int64_t mine = start < all ? all - start : 0;  // indices from my first on
    std::int64_t blocks = mine / apart;
    std::int64_t rest = mine % apart;
    if (rest >= length) {
      ++blocks;
      rest = 0;
    }
    const int error = inner.extend(all, start, blocks, length, apart, rest);
    if (error != MPI_SUCCESS) return error;
  }
  return inner.finish(old, out);
}

}  // namespace vmpi
