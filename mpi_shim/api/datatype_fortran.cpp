// SPDX-License-Identifier: BSD-2-Clause
// The datatype of a Fortran KIND (MPI 5.0 section 19.1.6): what gfortran's SELECTED_REAL_KIND and
// SELECTED_INT_KIND choose for such a precision and range. They are predefined types here.
#include <cfloat>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

struct RealKind {
  int precision;  ///< decimal digits
  int range;      ///< decimal exponents
  MPI_Datatype real;
  MPI_Datatype complex;
};

int create_real(const char* function, int precision, int range, MPI_Datatype RealKind::*wanted,
                MPI_Datatype* out) noexcept {
  static const RealKind kKinds[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
#if LDBL_MANT_DIG == 64
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
#endif
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
  };
  const BigGuard guard;
  if (const int error = check_not_null(function, "newtype", out)) return error;
  if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
    return raise(nullptr, MPI_ERR_ARG, function, "p and r are both MPI_UNDEFINED");
  for (const RealKind& kind : kKinds) {
    // MPI_UNDEFINED is below all of them.
    if (precision > kind.precision || range > kind.range) continue;
    *out = kind.*wanted;
    return MPI_SUCCESS;
  }
  return raise(nullptr, MPI_ERR_ARG, function,
               "p is %d and r is %d: Fortran has no kind of this precision and range", precision,
               range);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Type_create_f90_real, (int p, int r, MPI_Datatype* newtype)) {
  return create_real("MPI_Type_create_f90_real", p, r, &RealKind::real, newtype);
}

VMPI_ENTRY(int, MPI_Type_create_f90_complex, (int p, int r, MPI_Datatype* newtype)) {
  return create_real("MPI_Type_create_f90_complex", p, r, &RealKind::complex, newtype);
}

VMPI_ENTRY(int, MPI_Type_create_f90_integer, (int r, MPI_Datatype* newtype)) {
  static constexpr const char* kName = "MPI_Type_create_f90_integer";
  const BigGuard guard;
  if (const int error = check_not_null(kName, "newtype", newtype)) return error;
  if (r > 38)
    return raise(nullptr, MPI_ERR_ARG, kName, "r is %d: Fortran has no integer of this range", r);
  *newtype = r <= 2    ? MPI_INTEGER1
             : r <= 4  ? MPI_INTEGER2
             : r <= 9  ? MPI_INTEGER4
             : r <= 18 ? MPI_INTEGER8
                       : MPI_INTEGER16;
  return MPI_SUCCESS;
}
