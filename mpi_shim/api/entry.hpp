// SPDX-License-Identifier: BSD-2-Clause
// How the files of this folder define a function of MPI:
//
//   VMPI_ENTRY(int, MPI_Comm_size, (MPI_Comm comm, int* size)) { ... }
//
// It exists as PMPI_Comm_size; MPI_Comm_size is a weak name of it, so that a tool may define its own
// and call ours by the other name. The build reads these lines: a function that no file of this
// folder defines so is made by missing_functions.cmake, one that two files define stops the build.
#pragma once

#include <mpi.h>

#define VMPI_ENTRY(result, name, parameters)                                               \
  extern "C" [[gnu::weak, gnu::alias("P" #name), gnu::visibility("default")]] result(name) \
      parameters;                                                                          \
  extern "C" [[gnu::visibility("default")]] result(P##name) parameters
