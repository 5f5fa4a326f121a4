// SPDX-License-Identifier: BSD-2-Clause
// mpi.h, alone, as C11, and as C++20 by way of abi_test.cpp: sizes, places and values are those of the standard ABI.
#include <mpi.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static_assert(sizeof(MPI_Aint) == sizeof(void*), "an address");
static_assert(sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8, "64 bits everywhere");
static_assert(sizeof(MPI_Fint) == 4, "INTEGER");
static_assert(sizeof(MPI_Comm) == sizeof(void*) && sizeof(MPI_Datatype) == sizeof(void*),
              "pointers");
static_assert(sizeof(MPI_Status) == 32 &&
                  sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint),
              "8 integers");
static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0 && offsetof(MPI_Status, MPI_TAG) == 4,
              "public fields first");
static_assert(offsetof(MPI_Status, MPI_ERROR) == 8 && offsetof(MPI_Status, MPI_internal) == 12,
              "then what is ours");
static_assert(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED &&
                  MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED &&
                  MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE,
              "levels grow");
static_assert(MPI_SUCCESS == 0 && MPI_ERR_LASTCODE >= MPI_ERR_ABI, "classes are codes");

#define HANDLE(type, name, value)
#define NUMBER(name, value) static_assert((name) == (value), #name);
#include "tests/mpi/abi_values.inc"
#undef HANDLE
#undef NUMBER

// The preprocessor knows them too.
#if MPI_VERSION < 5 || !defined(MPI_THREAD_MULTIPLE) || MPI_ANY_SOURCE + 1 != 0
#error "not a number to the preprocessor"
#endif

// They initialise what is static.
static MPI_Comm world = MPI_COMM_WORLD;
static const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
static MPI_Comm_copy_attr_function* copy = MPI_COMM_DUP_FN;

static int wrong;

static void handle(const char* name, intptr_t is, intptr_t expected) {
  if (is == expected) return;
  printf("%s is %#lx, the ABI says %#lx\n", name, (unsigned long)is, (unsigned long)expected);
  ++wrong;
}

int main(void) {
#define HANDLE(type, name, value)          \
  {                                        \
    type typed = name;                     \
    handle(#name, (intptr_t)typed, value); \
  }
#define NUMBER(name, value)
#include "tests/mpi/abi_values.inc"
  if (world != MPI_COMM_WORLD || types[1] != MPI_DOUBLE || copy != MPI_COMM_DUP_FN) ++wrong;

  // Each function has a second name of one type with the first.
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm) = MPI_Send;
  if (send != MPI_Send) ++wrong;
  send = PMPI_Send;
  int version = 0, subversion = -1;
  if (MPI_Get_version(&version, &subversion) != MPI_SUCCESS || version != 5 || subversion != 0)
    ++wrong;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (PMPI_Get_library_version(text, &length) != MPI_SUCCESS || length <= 0 || text[length] != 0)
    ++wrong;
  return wrong != 0 || send == NULL;
}
