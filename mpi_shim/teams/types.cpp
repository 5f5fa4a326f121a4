// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/teams/types.hpp"

#include "mpi_shim/core/datatype_predefined.hpp"
#include "mpi_shim/core/op.hpp"
#include "mpi_shim/teams/entry.hpp"

namespace vmpi {

MPI_Datatype handle_of(vbt_coll_type type) noexcept {
  switch (type) {
    case VBT_COLL_BYTE:
      return MPI_BYTE;
    case VBT_COLL_INT8:
      return MPI_INT8_T;
    case VBT_COLL_INT16:
      return MPI_INT16_T;
    case VBT_COLL_INT32:
      return MPI_INT32_T;
    case VBT_COLL_INT64:
      return MPI_INT64_T;
    case VBT_COLL_UINT8:
      return MPI_UINT8_T;
    case VBT_COLL_UINT16:
      return MPI_UINT16_T;
    case VBT_COLL_UINT32:
      return MPI_UINT32_T;
    case VBT_COLL_UINT64:
      return MPI_UINT64_T;
    case VBT_COLL_FLOAT:
      return MPI_FLOAT;
    case VBT_COLL_DOUBLE:
      return MPI_DOUBLE;
    case VBT_COLL_LONG_DOUBLE:
      return MPI_LONG_DOUBLE;
    case VBT_COLL_FLOAT_COMPLEX:
      return MPI_C_FLOAT_COMPLEX;
    case VBT_COLL_DOUBLE_COMPLEX:
      return MPI_C_DOUBLE_COMPLEX;
    case VBT_COLL_LONG_DOUBLE_COMPLEX:
      return MPI_C_LONG_DOUBLE_COMPLEX;
    case VBT_COLL_BOOL:
      return MPI_C_BOOL;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op handle_of(vbt_coll_op op) noexcept {
  switch (op) {
    case VBT_COLL_SUM:
      return MPI_SUM;
    case VBT_COLL_PROD:
      return MPI_PROD;
    case VBT_COLL_MIN:
      return MPI_MIN;
    case VBT_COLL_MAX:
      return MPI_MAX;
    case VBT_COLL_LAND:
      return MPI_LAND;
    case VBT_COLL_LOR:
      return MPI_LOR;
    case VBT_COLL_LXOR:
      return MPI_LXOR;
    case VBT_COLL_BAND:
      return MPI_BAND;
    case VBT_COLL_BOR:
      return MPI_BOR;
    case VBT_COLL_BXOR:
      return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

}  // namespace vmpi

using namespace vmpi;

VBT_COLL_ENTRY std::size_t vbt_coll_type_size(vbt_coll_type type) {
  const MPI_Datatype handle = handle_of(type);
  return handle == MPI_DATATYPE_NULL ? 0
                                     : static_cast<std::size_t>(size_of_basic(number_of(handle)));
}

VBT_COLL_ENTRY int vbt_coll_is_op_of(vbt_coll_op op, vbt_coll_type type) {
  const MPI_Datatype handle = handle_of(type);
  const Op* const found = find_op(handle_of(op));
  if (handle == MPI_DATATYPE_NULL || found == nullptr) return 0;
  // Asked before there is a team, too: the types themselves are made with the first.
  Datatype asked;
  asked.handle = number_of(handle);
  asked.is_predefined = true;
  return is_defined_on(*found, asked) ? 1 : 0;
}
