// SPDX-License-Identifier: BSD-2-Clause
// The common blocks of mpif.h, as large as there: a linker speaks of a difference.
#include "mpi_shim/fortran/entry.hpp"

extern "C" {
alignas(64) char mpi_fortran_bottom_[4];
alignas(64) char mpi_fortran_in_place_[4];
alignas(64) char mpi_fortran_buffer_automatic_[4];
alignas(64) char mpi_fortran_status_ignore_[32];
alignas(64) char mpi_fortran_statuses_ignore_[32];
alignas(64) char mpi_fortran_errcodes_ignore_[4];
alignas(64) char mpi_fortran_unweighted_[4];
alignas(64) char mpi_fortran_weights_empty_[4];
alignas(64) char mpi_fortran_argv_null_[1];
alignas(64) char mpi_fortran_argvs_null_[1];
}
