// SPDX-License-Identifier: BSD-2-Clause
// MPI_Type_create_subarray and MPI_Type_create_darray.
#include <initializer_list>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/datatype_contents.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/datatype_make.hpp"

namespace vmpi {
namespace {

int check_array(const char* function, int dimensions, int order, MPI_Datatype handle,
                MPI_Datatype* out, Datatype*& old) noexcept {
  if (const int error = check_type(nullptr, function, "oldtype", handle, old)) return error;
  if (const int error = check_not_null(function, "newtype", out)) return error;
  if (dimensions < 1) return raise(nullptr, MPI_ERR_ARG, function, "ndims is %d", dimensions);
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
    return raise(nullptr, MPI_ERR_ARG, function,
                 "order is %d, neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
  return 0;
}

struct Given {
  const char* name;
  Numbers array;
};

int subarray(const char* function, int dimensions, Numbers sizes, Numbers subsizes, Numbers starts,
             int order, bool is_large, MPI_Datatype handle, MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_array(function, dimensions, order, handle, out, old)) return error;
  for (const auto& [name, array] : {Given{"array_of_sizes", sizes},
                                    {"array_of_subsizes", subsizes},
                                    {"array_of_starts", starts}})
    if (const int error = check_array_given(function, name, 1, array)) return error;
  for (int d = 0; d < dimensions; ++d) {
    // As the standard has it: nothing of an array cannot be a subarray.
    const bool fits = subsizes[d] >= 1 && subsizes[d] <= sizes[d] && starts[d] >= 0 &&
                      starts[d] <= sizes[d] - subsizes[d];
    if (!fits)
      return raise(nullptr, MPI_ERR_ARG, function,
                   "dimension %d has size %lld, and the subarray %lld from index %lld on", d,
                   static_cast<long long>(sizes[d]), static_cast<long long>(subsizes[d]),
                   static_cast<long long>(starts[d]));
  }
  Datatype* made = nullptr;
  const int error = make_subarray(dimensions, sizes, subsizes, starts, order, *old, made);
  return give_type(function, error, made, MPI_COMBINER_SUBARRAY,
                   Contents(made, is_large)
                       .integer(dimensions)
                       .numbers(sizes, dimensions)
                       .numbers(subsizes, dimensions)
                       .numbers(starts, dimensions)
                       .integer(order),
                   out);
}

struct Distribution {
  int size, rank, dimensions;
  Numbers sizes;
  const int* kinds;
  const int* arguments;
  const int* process_sizes;
  int order;
};

int check_dimension(const char* function, const Distribution& of, int d) noexcept {
  const auto size = static_cast<long long>(of.sizes[d]);
  const int processes = of.process_sizes[d];
  const int argument = of.arguments[d];
  if (size < 1 || processes < 1)
    return raise(nullptr, MPI_ERR_ARG, function, "dimension %d has size %lld over %d processes", d,
                 size, processes);
  if (of.kinds[d] == MPI_DISTRIBUTE_NONE) {
    if (processes == 1) return 0;
    return raise(nullptr, MPI_ERR_ARG, function,
                 "dimension %d is not distributed, but over %d processes", d, processes);
  }
  if (of.kinds[d] != MPI_DISTRIBUTE_BLOCK && of.kinds[d] != MPI_DISTRIBUTE_CYCLIC)
    return raise(nullptr, MPI_ERR_ARG, function, "array_of_distribs[%d] is %d", d, of.kinds[d]);
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) return 0;
  if (argument < 1)
    return raise(nullptr, MPI_ERR_ARG, function, "array_of_dargs[%d] is %d", d, argument);
  if (of.kinds[d] == MPI_DISTRIBUTE_BLOCK && static_cast<long long>(argument) * processes < size)
    return raise(nullptr, MPI_ERR_ARG, function,
                 "dimension %d has size %lld, blocks of %d over %d processes do not cover it", d,
                 size, argument, processes);
  return 0;
}

int darray(const char* function, const Distribution& of, bool is_large, MPI_Datatype handle,
           MPI_Datatype* out) noexcept {
  BigGuard guard;
  Datatype* old = nullptr;
  if (const int error = check_array(function, of.dimensions, of.order, handle, out, old))
    return error;
  if (const int error = check_not_null(function, "array_of_distribs", of.kinds)) return error;
  if (const int error = check_not_null(function, "array_of_dargs", of.arguments)) return error;
  if (const int error = check_not_null(function, "array_of_psizes", of.process_sizes)) return error;
  if (const int error = check_array_given(function, "array_of_gsizes", 1, of.sizes)) return error;
  long long processes = 1;
  for (int d = 0; d < of.dimensions; ++d) {
    if (const int error = check_dimension(function, of, d)) return error;
    processes *= of.process_sizes[d];
    if (processes > of.size) break;
  }
  if (processes != of.size || of.rank < 0 || of.rank >= of.size)
    return raise(nullptr, MPI_ERR_ARG, function,
                 "rank is %d, size is %d, array_of_psizes makes %s of it", of.rank, of.size,
                 processes < of.size   ? "less"
                 : processes > of.size ? "more"
                                       : "that");
  Datatype* made = nullptr;
  const int error = make_darray(of.size, of.rank, of.dimensions, of.sizes, of.kinds, of.arguments,
                                of.process_sizes, of.order, *old, made);
  return give_type(function, error, made, MPI_COMBINER_DARRAY,
                   Contents(made, is_large)
                       .integer(of.size)
                       .integer(of.rank)
                       .integer(of.dimensions)
                       .numbers(of.sizes, of.dimensions)
                       .integers(of.kinds, of.dimensions)
                       .integers(of.arguments, of.dimensions)
                       .integers(of.process_sizes, of.dimensions)
                       .integer(of.order),
                   out);
}

}  // namespace
}  // namespace vmpi

using vmpi::Numbers;

VMPI_ENTRY(int, MPI_Type_create_subarray,
           (int ndims, const int array_of_sizes[], const int array_of_subsizes[],
            const int array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::subarray("MPI_Type_create_subarray", ndims, Numbers(array_of_sizes),
                        Numbers(array_of_subsizes), Numbers(array_of_starts), order, false, oldtype,
                        newtype);
}
VMPI_ENTRY(int, MPI_Type_create_subarray_c,
           (int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
            const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype,
            MPI_Datatype* newtype)) {
  return vmpi::subarray("MPI_Type_create_subarray_c", ndims, Numbers(array_of_sizes),
                        Numbers(array_of_subsizes), Numbers(array_of_starts), order, true, oldtype,
                        newtype);
}
VMPI_ENTRY(int, MPI_Type_create_darray,
           (int size, int rank, int ndims, const int array_of_gsizes[],
            const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[],
            int order, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::darray("MPI_Type_create_darray",
                      {size, rank, ndims, Numbers(array_of_gsizes), array_of_distribs,
                       array_of_dargs, array_of_psizes, order},
                      false, oldtype, newtype);
}
VMPI_ENTRY(int, MPI_Type_create_darray_c,
           (int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
            const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[],
            int order, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return vmpi::darray("MPI_Type_create_darray_c",
                      {size, rank, ndims, Numbers(array_of_gsizes), array_of_distribs,
                       array_of_dargs, array_of_psizes, order},
                      true, oldtype, newtype);
}
