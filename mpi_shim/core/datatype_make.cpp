// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/datatype_make.hpp"

#include <cstring>

#include "mpi_shim/core/datatype_parts.hpp"

namespace vmpi {

int make_vector(std::int64_t count, std::int64_t length, std::int64_t stride, Datatype& old,
                Datatype*& out) noexcept {
  NewType made;
  if (!made.hold(old)) return MPI_ERR_NO_MEM;
  TypeBuilder builder(made.get());
  if (length == 0) return made.finish(builder, out);
  if (length == 1) {
    builder.add(old, 0, stride, count);
    return made.finish(builder, out);
  }
  Checked checked;
  const std::int64_t row = checked.product(length, old.extent);
  if (!checked.overflowed() && row == stride) {
    const std::int64_t all = checked.product(count, length);
    if (checked.overflowed()) return MPI_ERR_VALUE_TOO_LARGE;
    builder.add(old, 0, old.extent, all);
    return made.finish(builder, out);
  }
  Datatype* block = nullptr;
  const int error = make_contiguous(length, old, block);
  if (error != MPI_SUCCESS) return error;
  if (!made.adopt(*block)) return MPI_ERR_NO_MEM;
  builder.add(*block, 0, stride, count);
  return made.finish(builder, out);
}

int make_indexed(std::int64_t count, Numbers lengths, Numbers displacements, std::int64_t unit,
                 Datatype& old, Datatype*& out) noexcept {
  NewType made;
  if (!made.hold(old)) return MPI_ERR_NO_MEM;
  TypeBuilder builder(made.get());
  Checked checked;
  for (std::int64_t i = 0; i < count; ++i) {
    if (lengths[i] == 0) continue;
    const std::int64_t offset = checked.product(displacements[i], unit);
    if (checked.overflowed()) return MPI_ERR_VALUE_TOO_LARGE;
    builder.add(old, offset, old.extent, lengths[i]);
  }
  return made.finish(builder, out);
}

int make_struct(std::int64_t count, Numbers lengths, Numbers displacements,
                const MPI_Datatype* types, Datatype*& out) noexcept {
  NewType made;
  if (!made.has_memory()) return MPI_ERR_NO_MEM;
  TypeBuilder builder(made.get());
  for (std::int64_t i = 0; i < count; ++i) {
    Datatype& part = *find_datatype(types[i]);
    if (!made.hold(part)) return MPI_ERR_NO_MEM;
    builder.add(part, displacements[i], part.extent, lengths[i]);
  }
  return made.finish(builder, out);
}

int make_resized(Datatype& old, std::int64_t lb, std::int64_t extent, Datatype*& out) noexcept {
  NewType made;
  if (!made.hold(old)) return MPI_ERR_NO_MEM;
  TypeBuilder builder(made.get());
  builder.add(old, 0, 0, 1);
  builder.set_bounds(lb, extent);
  return made.finish(builder, out);
}

int make_duplicate(Datatype& old, Datatype*& out) noexcept {
  NewType made;
  if (!made.hold(old)) return MPI_ERR_NO_MEM;
  TypeBuilder builder(made.get());
  builder.add(old, 0, 0, 1);
  made.get().is_committed = old.is_committed;
  std::memcpy(made.get().name, old.name, sizeof old.name);
  return made.finish(builder, out);
}

}  // namespace vmpi
