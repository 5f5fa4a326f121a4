// SPDX-License-Identifier: BSD-2-Clause
// Reductions of every type and operation, each beside a loop over what all ranks have.
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

static const int kCounts[] = {0, 1, 3, 17, 1000, 20000};
enum { kCountsOf = sizeof kCounts / sizeof *kCounts, kMostCount = 20000 };

/// Of all ranks to all, to each root, and in place: what comes is `wanted`, byte by byte.
static void check_one(MPI_Comm comm, const void* in, const void* wanted, void* out, int count,
                      size_t bytes, MPI_Datatype type, MPI_Op op) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const size_t all = (size_t)count * bytes;
  memset(out, 0x5a, all);
  CHECK(MPI_Allreduce(in, out, count, type, op, comm) == MPI_SUCCESS);
  CHECK(memcmp(out, wanted, all) == 0);
  memcpy(out, in, all);
  CHECK(MPI_Allreduce(MPI_IN_PLACE, out, count, type, op, comm) == MPI_SUCCESS);
  CHECK(memcmp(out, wanted, all) == 0);
  for (int root = 0; root < size; ++root) {
    memset(out, 0x5a, all);
    CHECK(MPI_Reduce(in, rank == root ? out : NULL, count, type, op, root, comm) == MPI_SUCCESS);
    if (rank == root) CHECK(memcmp(out, wanted, all) == 0);
    if (count > 17) break;
    memcpy(out, in, all);
    CHECK(MPI_Reduce(rank == root ? MPI_IN_PLACE : in, out, count, type, op, root, comm) ==
          MPI_SUCCESS);
    CHECK(memcmp(out, rank == root ? wanted : in, all) == 0);
  }
}

#define OVER_RANKS(T, op, combined)                               \
  for (int c = 0; c < kCountsOf; ++c) {                           \
    const int count = kCounts[c];                                 \
    for (int i = 0; i < count; ++i) {                             \
      in[i] = (T)element(rank, i, c);                             \
      T a = (T)element(0, i, c);                                  \
      for (int r = 1; r < size; ++r) {                            \
        const T b = (T)element(r, i, c);                          \
        a = (T)(combined);                                        \
      }                                                           \
      wanted[i] = a;                                              \
    }                                                             \
    check_one(comm, in, wanted, out, count, sizeof(T), type, op); \
  }

// (Zeroed, so that the bytes between values, which long double has, are alike.)
#define CHECKS_OF(name, T, operations)                 \
  static void name(MPI_Comm comm, MPI_Datatype type) { \
    int rank, size;                                    \
    MPI_Comm_rank(comm, &rank);                        \
    MPI_Comm_size(comm, &size);                        \
    T* const in = calloc(kMostCount, sizeof(T));       \
    T* const wanted = calloc(kMostCount, sizeof(T));   \
    T* const out = calloc(kMostCount, sizeof(T));      \
    operations(T);                                     \
    free(in);                                          \
    free(wanted);                                      \
    free(out);                                         \
  }

#define OF_COMPLEX(T)           \
  OVER_RANKS(T, MPI_SUM, a + b) \
  OVER_RANKS(T, MPI_PROD, a* b)
#define OF_NUMBERS(T)                   \
  OF_COMPLEX(T)                         \
  OVER_RANKS(T, MPI_MIN, a < b ? a : b) \
  OVER_RANKS(T, MPI_MAX, a > b ? a : b)
#define OF_BITS(T)              \
  OVER_RANKS(T, MPI_BAND, a& b) \
  OVER_RANKS(T, MPI_BOR, a | b) \
  OVER_RANKS(T, MPI_BXOR, a ^ b)
#define OF_LOGIC(T)              \
  OVER_RANKS(T, MPI_LAND, a&& b) \
  OVER_RANKS(T, MPI_LOR, a || b) \
  OVER_RANKS(T, MPI_LXOR, !a != !b)
#define OF_INTEGERS(T) \
  OF_NUMBERS(T)        \
  OF_BITS(T)           \
  OF_LOGIC(T)

CHECKS_OF(reduce_bytes, unsigned char, OF_BITS)
CHECKS_OF(reduce_signed_chars, signed char, OF_INTEGERS)
CHECKS_OF(reduce_unsigned_chars, unsigned char, OF_INTEGERS)
CHECKS_OF(reduce_shorts, short, OF_INTEGERS)
CHECKS_OF(reduce_unsigned_shorts, unsigned short, OF_INTEGERS)
CHECKS_OF(reduce_ints, int, OF_INTEGERS)
CHECKS_OF(reduce_unsigned, unsigned, OF_INTEGERS)
CHECKS_OF(reduce_longs, long, OF_INTEGERS)
CHECKS_OF(reduce_unsigned_longs, unsigned long, OF_INTEGERS)
CHECKS_OF(reduce_floats, float, OF_NUMBERS)
CHECKS_OF(reduce_doubles, double, OF_NUMBERS)
CHECKS_OF(reduce_float_complex, float complex, OF_COMPLEX)
CHECKS_OF(reduce_double_complex, double complex, OF_COMPLEX)
CHECKS_OF(reduce_bool, bool, OF_LOGIC)

/// Of which six bytes of each element have no value, and are nobody's.
static void reduce_long_doubles(MPI_Comm comm) {
  long double in[100], out[100];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 100; ++i) in[i] = element(rank, i, 1);
  CHECK(MPI_Allreduce(in, out, 100, MPI_LONG_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    long double wanted = 0;
    for (int r = 0; r < size; ++r) wanted += element(r, i, 1);
    CHECK(out[i] == wanted);
  }
}

void check_reductions(MPI_Comm comm) {
  reduce_bytes(comm, MPI_BYTE);
  reduce_signed_chars(comm, MPI_SIGNED_CHAR);
  reduce_unsigned_chars(comm, MPI_UNSIGNED_CHAR);
  reduce_shorts(comm, MPI_SHORT);
  reduce_unsigned_shorts(comm, MPI_UNSIGNED_SHORT);
  reduce_ints(comm, MPI_INT);
  reduce_ints(comm, MPI_INT32_T);
  reduce_unsigned(comm, MPI_UNSIGNED);
  reduce_longs(comm, MPI_LONG);
  reduce_longs(comm, MPI_LONG_LONG);
  reduce_longs(comm, MPI_AINT);
  reduce_longs(comm, MPI_OFFSET);
  reduce_longs(comm, MPI_COUNT);
  reduce_unsigned_longs(comm, MPI_UNSIGNED_LONG);
  reduce_unsigned_longs(comm, MPI_UINT64_T);
  reduce_floats(comm, MPI_FLOAT);
  reduce_doubles(comm, MPI_DOUBLE);
  reduce_float_complex(comm, MPI_C_FLOAT_COMPLEX);
  reduce_double_complex(comm, MPI_C_DOUBLE_COMPLEX);
  reduce_bool(comm, MPI_C_BOOL);
  reduce_long_doubles(comm);
}

/// Not commutative: of the ranks 1, 2 and 3 it makes 123.
static void append_digits(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const long* const left = in;
  long* const right = inout;
  for (int i = 0; i < *count; ++i) {
    long shift = 10;
    while (shift <= right[i]) shift *= 10;
    right[i] += left[i] * shift;
  }
}

void check_operations(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Op op;
  MPI_Op_create(append_digits, 0, &op);
  long mine = rank + 1, all = 0, wanted = 0;
  for (int r = 0; r < size; ++r) wanted = 10 * wanted + r + 1;
  CHECK(MPI_Allreduce(&mine, &all, 1, MPI_LONG, op, comm) == MPI_SUCCESS);
  CHECK(all == wanted);
  all = 0;
  CHECK(MPI_Reduce(&mine, &all, 1, MPI_LONG, op, size - 1, comm) == MPI_SUCCESS);
  CHECK(rank != size - 1 || all == wanted);
  MPI_Op_free(&op);

  struct {
    double value;
    int at;
  } own = {element(rank, 0, 5) + (rank == size / 2 ? 10 : 0), rank}, greatest = {0, -1};
  CHECK(MPI_Allreduce(&own, &greatest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm) == MPI_SUCCESS);
  CHECK(greatest.at == size / 2);
}
