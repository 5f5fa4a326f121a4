// SPDX-License-Identifier: BSD-2-Clause
// Constructors of datatypes (MPI 5.0 sections 5.1.2 and 5.1.7) in both widths of counts.
#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/datatype_contents.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/checked.hpp"
#include "mpi_shim/core/datatype_make.hpp"

namespace vmpi {

int give_type(const char* function, int error, Datatype* made, int combiner,
              const Contents& contents, MPI_Datatype* out) noexcept {
  if (error == MPI_SUCCESS && !contents.has_memory()) {
    release(*made);
    error = MPI_ERR_NO_MEM;
  }
  if (error == MPI_ERR_VALUE_TOO_LARGE)
    return raise(nullptr, error, function, "the new type's size or extent has more than 63 bits");
  if (error != MPI_SUCCESS)
    return raise(nullptr, error, function, "there is no memory for the new type");
  made->combiner = combiner;
  *out = handle_of(*made);
  return MPI_SUCCESS;
}

namespace {

int check_old(const char* function, MPI_Datatype handle, MPI_Datatype* out,
              Datatype*& old) noexcept {
  if (const int error = check_type(nullptr, function, "oldtype", handle, old)) return error;
  return check_not_null(function, "newtype", out);
}

int check_lengths(const char* function, std::int64_t count, Numbers lengths,
                  Numbers displacements) noexcept {
  if (const int error = check_array_given(function, "array_of_blocklengths", count, lengths))
    return error;
  if (const int error = check_array_given(function, "array_of_displacements", count, displacements))
    return error;
  for (std::int64_t i = 0; i < count; ++i)
    if (lengths[i] < 0)
      return raise(nullptr, MPI_ERR_ARG, function, "array_of_blocklengths[%lld] is %lld",
                   static_cast<long long>(i), static_cast<long long>(lengths[i]));
  return 0;
}

int contiguous(const char* function, std::int64_t count, bool is_large, MPI_Datatype handle,
               MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_old(function, handle, out, old)) return error;
  if (const int error = check_not_negative(function, MPI_ERR_COUNT, "count", count)) return error;
  Datatype* made = nullptr;
  const int error = make_contiguous(count, *old, made);
  return give_type(function, error, made, MPI_COMBINER_CONTIGUOUS,
                   Contents(made, is_large).number(count), out);
}

/// `in_bytes`: MPI_Type_create_hvector.
int vector(const char* function, std::int64_t count, std::int64_t length, std::int64_t stride,
           bool in_bytes, bool is_large, MPI_Datatype handle, MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_old(function, handle, out, old)) return error;
  if (const int error = check_not_negative(function, MPI_ERR_COUNT, "count", count)) return error;
  if (const int error = check_not_negative(function, MPI_ERR_ARG, "blocklength", length))
    return error;
  Checked checked;
  const std::int64_t step = in_bytes ? stride : checked.product(stride, old->extent);
  Datatype* made = nullptr;
  const int error =
      checked.overflowed() ? MPI_ERR_VALUE_TOO_LARGE : make_vector(count, length, step, *old, made);
  Contents contents(made, is_large);
  contents.number(count).number(length);
  if (in_bytes)
    contents.address(stride);
  else
    contents.number(stride);
  return give_type(function, error, made, in_bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR,
                   contents, out);
}

struct Indexed {
  const char* function;
  int combiner;
  bool in_bytes;
  bool is_block;  ///< one length for all
  bool is_large;
};

int indexed(const Indexed& form, std::int64_t count, Numbers lengths, Numbers displacements,
            MPI_Datatype handle, MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_old(form.function, handle, out, old)) return error;
  if (const int error = check_not_negative(form.function, MPI_ERR_COUNT, "count", count))
    return error;
  if (form.is_block)
    if (const int error = check_not_negative(form.function, MPI_ERR_ARG, "blocklength", lengths[0]))
      return error;
  if (const int error = check_lengths(form.function, count, lengths, displacements)) return error;
  Datatype* made = nullptr;
  const int error =
      make_indexed(count, lengths, displacements, form.in_bytes ? 1 : old->extent, *old, made);
  Contents contents(made, form.is_large);
  contents.number(count).numbers(lengths, form.is_block ? 1 : count);
  if (form.in_bytes)
    contents.addresses(displacements, count);
  else
    contents.numbers(displacements, count);
  return give_type(form.function, error, made, form.combiner, contents, out);
}

int structure(const char* function, std::int64_t count, Numbers lengths, Numbers displacements,
              const MPI_Datatype* types, bool is_large, MPI_Datatype* out) noexcept {
  BigGuard guard;
  if (const int error = check_not_null(function, "newtype", out)) return error;
  if (const int error = check_not_negative(function, MPI_ERR_COUNT, "count", count)) return error;
  if (const int error = check_lengths(function, count, lengths, displacements)) return error;
  if (count != 0)
    if (const int error = check_not_null(function, "array_of_types", types)) return error;
  for (std::int64_t i = 0; i < count; ++i) {
    if (find_datatype(types[i]) != nullptr) continue;
    return raise(nullptr, MPI_ERR_TYPE, function,
                 "array_of_types[%lld] is %p, which is no datatype or was freed",
                 static_cast<long long>(i), static_cast<void*>(types[i]));
  }
  Datatype* made = nullptr;
  const int error = make_struct(count, lengths, displacements, types, made);
  return give_type(function, error, made, MPI_COMBINER_STRUCT,
                   Contents(made, is_large)
                       .number(count)
                       .numbers(lengths, count)
                       .addresses(displacements, count),
                   out);
}

int resized(const char* function, MPI_Datatype handle, std::int64_t lb, std::int64_t extent,
            bool is_large, MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_old(function, handle, out, old)) return error;
  Datatype* made = nullptr;
  const int error = make_resized(*old, lb, extent, made);
  return give_type(function, error, made, MPI_COMBINER_RESIZED,
                   Contents(made, is_large).address(lb).address(extent), out);
}

}  // namespace
}  // namespace vmpi

using vmpi::Numbers;

VMPI_ENTRY(int, MPI_Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::contiguous("MPI_Type_contiguous", count, false, oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_contiguous_c,
           (MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::contiguous("MPI_Type_contiguous_c", count, true, oldtype, newtype);
}

VMPI_ENTRY(int, MPI_Type_vector,
           (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::vector("MPI_Type_vector", count, blocklength, stride, false, false, oldtype,
                      newtype);
}
VMPI_ENTRY(int, MPI_Type_vector_c,
           (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::vector("MPI_Type_vector_c", count, blocklength, stride, false, true, oldtype,
                      newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hvector,
           (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::vector("MPI_Type_create_hvector", count, blocklength, stride, true, false, oldtype,
                      newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hvector_c,
           (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::vector("MPI_Type_create_hvector_c", count, blocklength, stride, true, true, oldtype,
                      newtype);
}
VMPI_ENTRY(int, MPI_Type_hvector,
           (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::vector("MPI_Type_hvector", count, blocklength, stride, true, false, oldtype,
                      newtype);
}

VMPI_ENTRY(int, MPI_Type_indexed,
           (int count, const int array_of_blocklengths[], const int array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed({"MPI_Type_indexed", MPI_COMBINER_INDEXED, false, false, false}, count,
                       Numbers(array_of_blocklengths), Numbers(array_of_displacements), oldtype,
                       newtype);
}
VMPI_ENTRY(int, MPI_Type_indexed_c,
           (MPI_Count count, const MPI_Count array_of_blocklengths[],
            const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::indexed({"MPI_Type_indexed_c", MPI_COMBINER_INDEXED, false, false, true}, count,
                       Numbers(array_of_blocklengths), Numbers(array_of_displacements), oldtype,
                       newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hindexed,
           (int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed({"MPI_Type_create_hindexed", MPI_COMBINER_HINDEXED, true, false, false},
                       count, Numbers(array_of_blocklengths), Numbers(array_of_displacements),
                       oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hindexed_c,
           (MPI_Count count, const MPI_Count array_of_blocklengths[],
            const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::indexed({"MPI_Type_create_hindexed_c", MPI_COMBINER_HINDEXED, true, false, true},
                       count, Numbers(array_of_blocklengths), Numbers(array_of_displacements),
                       oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_hindexed,
           (int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed({"MPI_Type_hindexed", MPI_COMBINER_HINDEXED, true, false, false}, count,
                       Numbers(array_of_blocklengths), Numbers(array_of_displacements), oldtype,
                       newtype);
}
VMPI_ENTRY(int, MPI_Type_create_indexed_block,
           (int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::indexed(
      {"MPI_Type_create_indexed_block", MPI_COMBINER_INDEXED_BLOCK, false, true, false}, count,
      Numbers(std::int64_t{blocklength}), Numbers(array_of_displacements), oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_indexed_block_c,
           (MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed(
      {"MPI_Type_create_indexed_block_c", MPI_COMBINER_INDEXED_BLOCK, false, true, true}, count,
      Numbers(blocklength), Numbers(array_of_displacements), oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hindexed_block,
           (int count, int blocklength, const MPI_Aint array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed(
      {"MPI_Type_create_hindexed_block", MPI_COMBINER_HINDEXED_BLOCK, true, true, false}, count,
      Numbers(std::int64_t{blocklength}), Numbers(array_of_displacements), oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_hindexed_block_c,
           (MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
            MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::indexed(
      {"MPI_Type_create_hindexed_block_c", MPI_COMBINER_HINDEXED_BLOCK, true, true, true}, count,
      Numbers(blocklength), Numbers(array_of_displacements), oldtype, newtype);
}

VMPI_ENTRY(int, MPI_Type_create_struct,
           (int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
            const MPI_Datatype array_of_types[], MPI_Datatype* newtype)) {
  return vmpi::structure("MPI_Type_create_struct", count, Numbers(array_of_blocklengths),
                         Numbers(array_of_displacements), array_of_types, false, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_struct_c,
           (MPI_Count count, const MPI_Count array_of_blocklengths[],
            const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
            MPI_Datatype* newtype)) {
  return vmpi::structure("MPI_Type_create_struct_c", count, Numbers(array_of_blocklengths),
                         Numbers(array_of_displacements), array_of_types, true, newtype);
}
VMPI_ENTRY(int, MPI_Type_struct,
           (int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
            MPI_Datatype array_of_types[], MPI_Datatype* newtype)) {
  return vmpi::structure("MPI_Type_struct", count, Numbers(array_of_blocklengths),
                         Numbers(array_of_displacements), array_of_types, false, newtype);
}

VMPI_ENTRY(int, MPI_Type_create_resized,
           (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype)) {
  return vmpi::resized("MPI_Type_create_resized", oldtype, lb, extent, false, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_resized_c,
           (MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype)) {
  return vmpi::resized("MPI_Type_create_resized_c", oldtype, lb, extent, true, newtype);
}
