// SPDX-License-Identifier: BSD-2-Clause
//
// MPI for C11 and C++: handles and constants of the MPI 5.0 standard ABI, and every function of the
// standard but the tools interface (MPI_T_*). A function that the library does not have yet links,
// and when called names itself on stderr and fails with MPI_ERR_UNSUPPORTED_OPERATION.
//
// All functions but MPI_Wtime and its like return MPI_SUCCESS or a code whose class is one of
// MPI_ERR_*; before that they call the error handler of the object they work on, which ends the
// program unless MPI_ERRORS_RETURN was set. Outputs are written on success only. Any thread may call
// them as far as the level that MPI_Init_thread provided allows.
#ifndef VERBATIM_MPI_H
#define VERBATIM_MPI_H

#include "mpi/types.h"
// The values.
#include "mpi/constants.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "mpi/attributes.h"
#include "mpi/collectives.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/environment.h"
#include "mpi/errors.h"
#include "mpi/files.h"
#include "mpi/info.h"
#include "mpi/languages.h"
#include "mpi/large_counts.h"
#include "mpi/partitioned.h"
#include "mpi/point_to_point.h"
#include "mpi/processes.h"
#include "mpi/removed.h"
#include "mpi/topologies.h"
#include "mpi/windows.h"
// Each of them once more, with the prefix that is left to tools: PMPI_Send.
#include "mpi/profiling.h"

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_MPI_H
