// SPDX-License-Identifier: BSD-2-Clause
// What the parts of the program share: a program of MPI as anybody writes one, in which nothing knows
// of an interposer. Every rank knows what all ranks have, and so what each collective has to give.
#ifndef VERBATIM_TESTS_PMPI_CHECKS_H
#define VERBATIM_TESTS_PMPI_CHECKS_H

#include <mpi.h>

extern int checks_failed;

/// Says once where it was, goes on.
#define CHECK(condition) check_that((condition) != 0, __FILE__, __LINE__, #condition)
void check_that(int is_so, const char* file, int line, const char* text);

/// An element of a rank, of 1 to 3: sums and products of few ranks fit in a byte, and are exact.
static inline int element(int rank, long index, int seed) {
  return 1 + (int)((rank * 7L + index * 5 + seed * 3) % 3);
}

void check_reductions(MPI_Comm comm);     // reductions.c
void check_operations(MPI_Comm comm);     // of the program, and those that no engine has
void check_movement(MPI_Comm comm);       // movement.c
void check_derived(MPI_Comm comm);        // derived.c
void check_communicators(MPI_Comm comm);  // communicators.c
void check_frees(MPI_Comm comm);
void check_intercommunicator(MPI_Comm comm);
void check_threads(MPI_Comm comm);
void check_progress(MPI_Comm comm);  // program.c
void check_arguments(MPI_Comm comm);

#endif
