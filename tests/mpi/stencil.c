/* SPDX-License-Identifier: BSD-2-Clause
 * A stencil in three dimensions as programs of physics have it: a grid of ranks, blocks with a halo,
 * faces sent as derived datatypes, in each way in which messages can be exchanged. Two equations:
 * heat, whose grid is of plain numbers and cold around, and whose solution is known; and waves, whose
 * grid is of structures and closed to a ring in two dimensions. What the ranks compute together is,
 * bit for bit, what one computes alone. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "point_to_point.h"

enum { kDimensions = 3, kFaces = 6, kSteps = 5 };

/* ---- blocks of a grid ---- */

struct block {
  MPI_Comm comm; /* MPI_COMM_NULL: the whole grid, of a rank that computes alone */
  int grid[kDimensions];
  int is_ring[kDimensions];
  int ranks[kDimensions];
  int low[kDimensions];  /* the first cell of this rank */
  int n[kDimensions];    /* its cells */
  int held[kDimensions]; /* with the halo */
  int neighbour[kFaces]; /* face 2 d is the lower one in dimension d, 2 d + 1 the upper one */
};

static void share_out(const struct block* b, const int at[kDimensions], int low[kDimensions],
                      int n[kDimensions]) {
  for (int d = 0; d < kDimensions; ++d) {
    low[d] = b->grid[d] * at[d] / b->ranks[d];
    n[d] = b->grid[d] * (at[d] + 1) / b->ranks[d] - low[d];
  }
}

static struct block make_block(MPI_Comm comm, const int grid[kDimensions],
                               const int is_ring[kDimensions]) {
  struct block b = {.comm = MPI_COMM_NULL, .ranks = {1, 1, 1}};
  int at[kDimensions] = {0, 0, 0};
  memcpy(b.grid, grid, sizeof b.grid);
  memcpy(b.is_ring, is_ring, sizeof b.is_ring);
  if (comm != MPI_COMM_NULL) {
    int ranks = 0, mine = -1, kind = 0, back = -1, dimensions = 0;
    memset(b.ranks, 0, sizeof b.ranks);
    OK(MPI_Comm_size(comm, &ranks));
    OK(MPI_Dims_create(ranks, kDimensions, b.ranks));
    CHECK(b.ranks[0] * b.ranks[1] * b.ranks[2] == ranks);
    OK(MPI_Cart_create(comm, kDimensions, b.ranks, is_ring, 1, &b.comm));
    OK(MPI_Topo_test(b.comm, &kind));
    OK(MPI_Cartdim_get(b.comm, &dimensions));
    CHECK(kind == MPI_CART && dimensions == kDimensions);
    OK(MPI_Comm_rank(b.comm, &mine));
    OK(MPI_Cart_coords(b.comm, mine, kDimensions, at));
    OK(MPI_Cart_rank(b.comm, at, &back));
    CHECK(back == mine);
    for (int d = 0; d < kDimensions; ++d)
      OK(MPI_Cart_shift(b.comm, d, 1, &b.neighbour[2 * d], &b.neighbour[2 * d + 1]));
  }
  share_out(&b, at, b.low, b.n);
  for (int d = 0; d < kDimensions; ++d) b.held[d] = b.n[d] + 2;
  return b;
}

static size_t index_of(const struct block* b, int x, int y, int z) {
  return ((size_t)x * (size_t)b->held[1] + (size_t)y) * (size_t)b->held[2] + (size_t)z;
}
static size_t cells_held(const struct block* b) { return index_of(b, b->held[0], 0, 0); }

/* Cell number i of the block, without the halo, and where it is in the grid. */
static size_t cell(const struct block* b, int i, int at[kDimensions]) {
  const int z = i % b->n[2], y = i / b->n[2] % b->n[1], x = i / b->n[2] / b->n[1];
  at[0] = b->low[0] + x;
  at[1] = b->low[1] + y;
  at[2] = b->low[2] + z;
  return index_of(b, x + 1, y + 1, z + 1);
}
static int cells_of(const struct block* b) { return b->n[0] * b->n[1] * b->n[2]; }

/* ---- a part of a block as a datatype, built in four ways ---- */

enum { kSubarray, kVectors, kIndexed, kAddresses, kKinds };

static MPI_Datatype part_of(const struct block* b, const void* field, MPI_Datatype element,
                            int kind, const int low[kDimensions], const int n[kDimensions]) {
  MPI_Datatype type = MPI_DATATYPE_NULL, row, rows;
  MPI_Aint lower, extent, start;
  OK(MPI_Type_get_extent(element, &lower, &extent));
  const MPI_Aint first = (MPI_Aint)index_of(b, low[0], low[1], low[2]) * extent;
  const int blocks = n[0] * n[1];
  if (kind == kSubarray) {
    OK(MPI_Type_create_subarray(kDimensions, b->held, n, low, MPI_ORDER_C, element, &type));
  } else if (kind == kVectors) {
    OK(MPI_Type_vector(n[1], n[2], b->held[2], element, &row));
    OK(MPI_Type_create_hvector(n[0], 1, (MPI_Aint)index_of(b, 1, 0, 0) * extent, row, &rows));
    OK(MPI_Type_create_hindexed_block(1, 1, &first, rows, &type));
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&rows));
  } else if (kind == kIndexed) {
    int* lengths = malloc((size_t)blocks * sizeof *lengths);
    int* places = malloc((size_t)blocks * sizeof *places);
    for (int i = 0; i < blocks; ++i) {
      lengths[i] = n[2];
      places[i] = (int)index_of(b, low[0] + i / n[1], low[1] + i % n[1], low[2]);
    }
    OK(MPI_Type_indexed(blocks, lengths, places, element, &type));
    free(lengths);
    free(places);
  } else {
    int* lengths = malloc((size_t)blocks * sizeof *lengths);
    MPI_Aint* places = malloc((size_t)blocks * sizeof *places);
    MPI_Datatype* types = malloc((size_t)blocks * sizeof *types);
    OK(MPI_Get_address(field, &start));
    for (int i = 0; i < blocks; ++i) {
      lengths[i] = n[2];
      places[i] = MPI_Aint_add(
          start, (MPI_Aint)index_of(b, low[0] + i / n[1], low[1] + i % n[1], low[2]) * extent);
      types[i] = element;
    }
    OK(MPI_Type_create_struct(blocks, lengths, places, types, &type));
    free(lengths);
    free(places);
    free(types);
  }
  OK(MPI_Type_commit(&type));
  int bytes = 0, each = 0;
  OK(MPI_Type_size(type, &bytes));
  OK(MPI_Type_size(element, &each));
  CHECK(bytes == blocks * n[2] * each);
  return type;
}

/* The layer of cells at a face: the block's own, or the one of the halo beside it. */
static MPI_Datatype layer(const struct block* b, const void* field, MPI_Datatype element, int kind,
                          int face, int is_halo) {
  int low[kDimensions] = {1, 1, 1}, n[kDimensions];
  const int d = face / 2;
  memcpy(n, b->n, sizeof n);
  n[d] = 1;
  if (face % 2 == 0)
    low[d] = is_halo ? 0 : 1;
  else
    low[d] = is_halo ? b->n[d] + 1 : b->n[d];
  return part_of(b, field, element, kind, low, n);
}

/* ---- the exchange of a field's halo ---- */

struct exchange {
  const struct block* block;
  void* base; /* what the datatypes are relative to */
  int layer_bytes[kFaces];
  MPI_Datatype own[kFaces], halo[kFaces];
  MPI_Request requests[2 * kFaces];
  char* packed[2 * kFaces];
};

/* A message carries as its tag the face that it left by, and comes in by the opposite one. */
static int opposite(int face) { return face ^ 1; }

static void by_requests(struct exchange* x) {
  const struct block* b = x->block;
  for (int f = 0; f < kFaces; ++f)
    OK(MPI_Irecv(x->base, 1, x->halo[f], b->neighbour[f], opposite(f), b->comm, &x->requests[f]));
  for (int f = 0; f < kFaces; ++f)
    OK(MPI_Isend(x->base, 1, x->own[f], b->neighbour[f], f, b->comm, &x->requests[kFaces + f]));
  OK(MPI_Waitall(2 * kFaces, x->requests, MPI_STATUSES_IGNORE));
}

static void by_sendrecv(struct exchange* x) {
  const struct block* b = x->block;
  for (int f = 0; f < kFaces; ++f) {
    MPI_Status status;
    int bytes = -1;
    const int from = b->neighbour[opposite(f)];
    OK(MPI_Sendrecv(x->base, 1, x->own[f], b->neighbour[f], f, x->base, 1, x->halo[opposite(f)],
                    from, f, b->comm, &status));
    OK(MPI_Get_count(&status, x->halo[opposite(f)], &bytes));
    CHECK(status.MPI_SOURCE == from && bytes == (from == MPI_PROC_NULL ? 0 : 1));
  }
}

static void by_persistent_requests(struct exchange* x) {
  const struct block* b = x->block;
  for (int f = 0; f < kFaces && x->requests[f] == MPI_REQUEST_NULL; ++f) {
    OK(MPI_Recv_init(x->base, 1, x->halo[f], b->neighbour[f], opposite(f), b->comm,
                     &x->requests[f]));
    OK(MPI_Send_init(x->base, 1, x->own[f], b->neighbour[f], f, b->comm, &x->requests[kFaces + f]));
  }
  OK(MPI_Startall(2 * kFaces, x->requests));
  OK(MPI_Waitall(2 * kFaces, x->requests, MPI_STATUSES_IGNORE));
}

/* Who receives asks what has come, and takes it in the order of coming. */
static void by_probes(struct exchange* x) {
  const struct block* b = x->block;
  int is_here[kFaces] = {0}, missing = 0;
  for (int f = 0; f < kFaces; ++f) {
    OK(MPI_Isend(x->base, 1, x->own[f], b->neighbour[f], f, b->comm, &x->requests[f]));
    is_here[f] = b->neighbour[f] == MPI_PROC_NULL;
    missing += !is_here[f];
  }
  for (int f = 0; missing != 0; f = (f + 1) % kFaces) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 0;
    if (is_here[f]) continue;
    OK(MPI_Improbe(MPI_ANY_SOURCE, opposite(f), b->comm, &flag, &message, &status));
    if (!flag) continue;
    CHECK(status.MPI_SOURCE == b->neighbour[f] && status.MPI_TAG == opposite(f));
    OK(MPI_Imrecv(x->base, 1, x->halo[f], &message, &x->requests[kFaces + f]));
    is_here[f] = 1;
    --missing;
  }
  OK(MPI_Waitall(2 * kFaces, x->requests, MPI_STATUSES_IGNORE));
}

/* Faces are packed by hand; a send is over when its receiver has begun with it. */
static void by_packing(struct exchange* x) {
  const struct block* b = x->block;
  for (int f = 0; f < kFaces; ++f) {
    int at = 0;
    OK(MPI_Irecv(x->packed[f], x->layer_bytes[f], MPI_PACKED, b->neighbour[f], opposite(f), b->comm,
                 &x->requests[f]));
    OK(MPI_Pack(x->base, 1, x->own[f], x->packed[kFaces + f], x->layer_bytes[f], &at, b->comm));
    OK(MPI_Issend(x->packed[kFaces + f], at, MPI_PACKED, b->neighbour[f], f, b->comm,
                  &x->requests[kFaces + f]));
  }
  for (int done = 0; done < 2 * kFaces; ++done) {
    int which = -1, at = 0;
    MPI_Status status;
    OK(MPI_Waitany(2 * kFaces, x->requests, &which, &status));
    CHECK(which >= 0 && which < 2 * kFaces);
    if (which >= kFaces || b->neighbour[which] == MPI_PROC_NULL) continue;
    OK(MPI_Unpack(x->packed[which], x->layer_bytes[which], &at, x->base, 1, x->halo[which],
                  b->comm));
  }
}

static void by_buffered_sends(struct exchange* x) {
  const struct block* b = x->block;
  int room = 0;
  for (int f = 0; f < kFaces; ++f) room += x->layer_bytes[f] + MPI_BSEND_OVERHEAD;
  void* buffer = malloc((size_t)room);
  void* back = NULL;
  int bytes = 0;
  OK(MPI_Buffer_attach(buffer, room));
  for (int f = 0; f < kFaces; ++f)
    OK(MPI_Bsend(x->base, 1, x->own[f], b->neighbour[f], f, b->comm));
  for (int f = kFaces - 1; f >= 0; --f)
    OK(MPI_Recv(x->base, 1, x->halo[f], b->neighbour[f], opposite(f), b->comm, MPI_STATUS_IGNORE));
  OK(MPI_Buffer_detach(&back, &bytes));
  CHECK(back == buffer && bytes == room);
  free(buffer);
}

typedef void (*exchange_way)(struct exchange*);
static const exchange_way kWays[] = {by_requests, by_sendrecv, by_persistent_requests,
                                     by_probes,   by_packing,  by_buffered_sends};
enum { kWaysThere = sizeof kWays / sizeof *kWays };

static struct exchange begin_exchange(const struct block* b, void* field, MPI_Datatype element,
                                      int kind) {
  struct exchange x = {.block = b, .base = kind == kAddresses ? MPI_BOTTOM : field};
  for (int f = 0; f < kFaces; ++f) {
    x.own[f] = layer(b, field, element, kind, f, 0);
    x.halo[f] = layer(b, field, element, kind, f, 1);
    OK(MPI_Pack_size(1, x.own[f], b->comm, &x.layer_bytes[f]));
    for (int both = 0; both < 2; ++both) {
      x.packed[f + both * kFaces] = malloc((size_t)x.layer_bytes[f]);
      x.requests[f + both * kFaces] = MPI_REQUEST_NULL;
    }
  }
  return x;
}

static void end_exchange(struct exchange* x) {
  for (int f = 0; f < kFaces; ++f) {
    OK(MPI_Type_free(&x->own[f]));
    OK(MPI_Type_free(&x->halo[f]));
  }
  for (int i = 0; i < 2 * kFaces; ++i) {
    free(x->packed[i]);
    if (x->requests[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&x->requests[i]));
  }
}

/* ---- from rank 0 to all, and back ---- */

/* Which part of the whole grid, with its halo, rank r of the communicator has. */
static MPI_Datatype part_of_rank(const struct block* b, const struct block* whole, int r,
                                 MPI_Datatype element) {
  int at[kDimensions], low[kDimensions], n[kDimensions];
  OK(MPI_Cart_coords(b->comm, r, kDimensions, at));
  share_out(b, at, low, n);
  for (int d = 0; d < kDimensions; ++d) ++low[d];
  return part_of(whole, NULL, element, kSubarray, low, n);
}

static MPI_Datatype inner_part(const struct block* b, const void* field, MPI_Datatype element,
                               int kind) {
  const int low[kDimensions] = {1, 1, 1};
  return part_of(b, field, element, kind, low, b->n);
}

static void spread(const struct block* b, const struct block* whole, const void* from, void* to,
                   MPI_Datatype element) {
  int ranks, mine;
  OK(MPI_Comm_size(b->comm, &ranks));
  OK(MPI_Comm_rank(b->comm, &mine));
  int* counts =
      calloc(3 * (size_t)ranks, sizeof *counts); /* sent, received, and no displacements */
  MPI_Datatype* types = malloc(2 * (size_t)ranks * sizeof *types);
  for (int r = 0; r < ranks; ++r) {
    types[r] = mine == 0 ? part_of_rank(b, whole, r, element) : MPI_BYTE;
    types[ranks + r] = MPI_BYTE;
    counts[r] = mine == 0;
  }
  types[ranks] = inner_part(b, to, element, kSubarray);
  counts[ranks] = 1;
  const int* none = counts + 2 * ranks;
  OK(MPI_Alltoallw(from, counts, none, types, to, counts + ranks, none, types + ranks, b->comm));
  for (int r = 0; r < ranks && mine == 0; ++r) OK(MPI_Type_free(&types[r]));
  OK(MPI_Type_free(&types[ranks]));
  free(counts);
  free(types);
}

static void collect(const struct block* b, const struct block* whole, const void* from, void* to,
                    MPI_Datatype element) {
  int ranks, mine;
  MPI_Request* requests = NULL;
  OK(MPI_Comm_size(b->comm, &ranks));
  OK(MPI_Comm_rank(b->comm, &mine));
  if (mine == 0) {
    requests = malloc((size_t)ranks * sizeof *requests);
    for (int r = 0; r < ranks; ++r) {
      MPI_Datatype part = part_of_rank(b, whole, r, element);
      OK(MPI_Irecv(to, 1, part, r, 77, b->comm, &requests[r]));
      OK(MPI_Type_free(&part)); /* the receive keeps it */
    }
  }
  MPI_Datatype inner = inner_part(b, from, element, kVectors);
  MPI_Request sent;
  OK(MPI_Isend(from, 1, inner, 0, 77, b->comm, &sent));
  OK(MPI_Type_free(&inner));
  for (int left = mine == 0 ? ranks : 0; left > 0;) {
    int done = 0;
    int* which = malloc((size_t)ranks * sizeof *which);
    OK(MPI_Waitsome(ranks, requests, &done, which, MPI_STATUSES_IGNORE));
    CHECK(done > 0);
    left -= done;
    free(which);
  }
  OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
  free(requests);
}

/* ---- what is asked of a field: answers that do not depend on the order of summing ---- */

static int64_t fixed(double value) { return llround(value * 1048576.0); }

/* The cell with the greatest value, as a structure that has a hole. */
struct peak {
  double value;
  int at[kDimensions];
};

static void higher(const struct peak* one, struct peak* other) {
  const int order = memcmp(one->at, other->at, sizeof one->at);
  if (one->value > other->value || (one->value == other->value && order < 0)) *other = *one;
}
static void higher_of_each(void* in, void* inout, int* length, MPI_Datatype* type) {
  CHECK(*type != MPI_DATATYPE_NULL);
  for (int i = 0; i < *length; ++i) higher((struct peak*)in + i, (struct peak*)inout + i);
}

/* A hash of the cells in the order of ranks, x -> factor x + sum: what is composed does not commute. */
struct hash {
  uint64_t factor, sum;
};
static struct hash then(struct hash first, struct hash second) {
  return (struct hash){first.factor * second.factor, first.sum * second.factor + second.sum};
}
static void then_each(void* in, void* inout, int* length, MPI_Datatype* type) {
  CHECK(*type != MPI_DATATYPE_NULL);
  for (int i = 0; i < *length; ++i)
    ((struct hash*)inout)[i] = then(((struct hash*)in)[i], ((struct hash*)inout)[i]);
}

struct summary {
  struct peak peak;
  struct hash hash;
  int64_t sum;
};

static struct summary nothing(void) {
  return (struct summary){.peak = {-INFINITY, {0, 0, 0}}, .hash = {1, 0}};
}

static void add_cell(struct summary* s, double value, const int at[kDimensions]) {
  struct peak here = {.value = value};
  uint64_t bits;
  memcpy(here.at, at, sizeof here.at);
  higher(&here, &s->peak);
  memcpy(&bits, &value, sizeof bits);
  s->hash = then(s->hash, (struct hash){0x9e3779b97f4a7c15u, bits});
  s->sum += fixed(value);
}

static MPI_Datatype peak_type(void) {
  const int lengths[] = {1, kDimensions};
  const MPI_Aint places[] = {offsetof(struct peak, value), offsetof(struct peak, at)};
  MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, plain, type;
  OK(MPI_Type_create_struct(2, lengths, places, types, &plain));
  OK(MPI_Type_create_resized(plain, 0, sizeof(struct peak), &type));
  OK(MPI_Type_free(&plain));
  OK(MPI_Type_commit(&type));
  return type;
}

/* Of all ranks, known to all. */
static struct summary reduced(const struct block* b, const struct summary* mine) {
  struct summary all = nothing();
  struct hash until = {0, 0};
  int ranks, number, commutes = -1;
  MPI_Datatype peaks = peak_type(), hashes;
  MPI_Op highest, in_order;
  OK(MPI_Comm_size(b->comm, &ranks));
  OK(MPI_Comm_rank(b->comm, &number));
  OK(MPI_Type_contiguous(2, MPI_UINT64_T, &hashes));
  OK(MPI_Type_commit(&hashes));
  OK(MPI_Op_create(higher_of_each, 1, &highest));
  OK(MPI_Op_create(then_each, 0, &in_order));
  OK(MPI_Op_commutative(in_order, &commutes));
  CHECK(commutes == 0);
  OK(MPI_Allreduce(&mine->peak, &all.peak, 1, peaks, highest, b->comm));
  OK(MPI_Allreduce(&mine->sum, &all.sum, 1, MPI_INT64_T, MPI_SUM, b->comm));
  OK(MPI_Reduce(&mine->hash, &all.hash, 1, hashes, in_order, ranks - 1, b->comm));
  OK(MPI_Scan(&mine->hash, &until, 1, hashes, in_order, b->comm));
  if (number == ranks - 1) CHECK(memcmp(&until, &all.hash, sizeof until) == 0);
  OK(MPI_Bcast(&all.hash, 1, hashes, ranks - 1, b->comm));
  OK(MPI_Op_free(&highest));
  OK(MPI_Op_free(&in_order));
  OK(MPI_Type_free(&peaks));
  OK(MPI_Type_free(&hashes));
  return all;
}

/* ---- heat ---- */

static const int kCold[kDimensions] = {0, 0, 0};
static const double kDiffusion = 0.12;

/* Not inlined, so that a cell has one value, whoever asks for it. */
__attribute__((noinline)) static double next_heat(const double* at, size_t x, size_t y) {
  const double around =
      ((at[-(ptrdiff_t)x] + at[x]) + (at[-(ptrdiff_t)y] + at[y])) + (at[-1] + at[1]);
  return *at + kDiffusion * (around - 6.0 * *at);
}

/* Returns the greatest change. */
static double step_heat(const struct block* b, const double* now, double* next) {
  const size_t x = index_of(b, 1, 0, 0), y = index_of(b, 0, 1, 0);
  double change = 0;
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) {
    const size_t here = cell(b, i, at);
    next[here] = next_heat(now + here, x, y);
    change = fmax(change, fabs(next[here] - now[here]));
  }
  return change;
}

/* A wave of the grid: each step makes it smaller by a factor that is known. */
static double mode(const struct block* b, const int at[kDimensions], double* shrink) {
  double value = 1, sines = 0;
  for (int d = 0; d < kDimensions; ++d) {
    const double angle = acos(-1.0) * (d + 1) / (b->grid[d] + 1);
    value *= sin(angle * (at[d] + 1));
    sines += sin(angle / 2) * sin(angle / 2);
  }
  *shrink = 1 - 4 * kDiffusion * sines;
  return value;
}

static void fill_heat(const struct block* b, double* field, int is_rough) {
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) {
    double shrink;
    const size_t here = cell(b, i, at);
    field[here] = mode(b, at, &shrink);
    if (is_rough)
      field[here] += (double)((at[0] * 7919 + at[1] * 104729 + at[2] * 31) % 1009) / 997;
  }
}

static void compare_heat(const struct block* b, const struct block* whole, const double* field,
                         const double* alone, double change, double change_alone) {
  int mine;
  double most = 0;
  struct summary local = nothing(), expected = nothing();
  double* all = calloc(cells_held(whole), sizeof *all);
  int ranks;
  OK(MPI_Comm_rank(b->comm, &mine));
  OK(MPI_Comm_size(b->comm, &ranks));
  OK(MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, b->comm));
  CHECK(most == change_alone);
  collect(b, whole, field, all, MPI_DOUBLE);
  for (int i = 0, at[kDimensions]; mine == 0 && i < cells_of(whole); ++i) {
    const size_t here = cell(whole, i, at);
    CHECK(memcmp(&all[here], &alone[here], sizeof(double)) == 0);
  }
  free(all);
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) {
    const double value = field[cell(b, i, at)];
    add_cell(&local, value, at);
  }
  const struct summary got = reduced(b, &local);
  for (int r = 0; r < ranks; ++r) {
    struct block part = *b;
    int at[kDimensions];
    OK(MPI_Cart_coords(b->comm, r, kDimensions, at));
    share_out(b, at, part.low, part.n);
    for (int i = 0; i < cells_of(&part); ++i) {
      (void)cell(&part, i, at);
      add_cell(&expected, alone[index_of(whole, at[0] + 1, at[1] + 1, at[2] + 1)], at);
    }
  }
  CHECK(got.sum == expected.sum);
  CHECK(got.hash.factor == expected.hash.factor && got.hash.sum == expected.hash.sum);
  CHECK(got.peak.value == expected.peak.value);
  CHECK(memcmp(got.peak.at, expected.peak.at, sizeof got.peak.at) == 0);
}

static void run_heat(MPI_Comm comm, const int grid[kDimensions], int kind, exchange_way way,
                     int is_rough) {
  const struct block b = make_block(comm, grid, kCold);
  const struct block whole = make_block(MPI_COMM_NULL, grid, kCold);
  double* fields[2];
  double* alone[2];
  struct exchange exchanges[2];
  double change = 0, change_alone = 0;
  for (int i = 0; i < 2; ++i) {
    fields[i] = calloc(cells_held(&b), sizeof(double));
    alone[i] = calloc(cells_held(&whole), sizeof(double));
    exchanges[i] = begin_exchange(&b, fields[i], MPI_DOUBLE, kind);
  }
  fill_heat(&whole, alone[0], is_rough);
  spread(&b, &whole, alone[0], fields[0], MPI_DOUBLE);
  for (int step = 0; step < kSteps; ++step) {
    const int now = step % 2;
    way(&exchanges[now]);
    change = step_heat(&b, fields[now], fields[1 - now]);
    change_alone = step_heat(&whole, alone[now], alone[1 - now]);
  }
  compare_heat(&b, &whole, fields[kSteps % 2], alone[kSteps % 2], change, change_alone);
  for (int i = 0, at[kDimensions]; !is_rough && i < cells_of(&b); ++i) {
    double shrink;
    const size_t here = cell(&b, i, at);
    const double begun = mode(&b, at, &shrink);
    CHECK(fabs(fields[kSteps % 2][here] - begun * pow(shrink, kSteps)) < 1e-13);
  }
  for (int i = 0; i < 2; ++i) {
    end_exchange(&exchanges[i]);
    free(fields[i]);
    free(alone[i]);
  }
  MPI_Comm cart = b.comm;
  OK(MPI_Comm_free(&cart));
}

static void heat(void) {
  const int grid[kDimensions] = {17, 12, 9};
  for (int kind = 0; kind < kKinds; ++kind)
    for (int way = 0; way < kWaysThere; ++way)
      run_heat(MPI_COMM_WORLD, grid, kind, kWays[way], (kind + way) % 2);
}

/* Two halves of the ranks have grids of their own, at once. */
static void halves(void) {
  const int grids[2][kDimensions] = {{11, 8, 9}, {8, 13, 8}};
  const int half = rank % 2;
  MPI_Comm comm;
  OK(MPI_Comm_split(MPI_COMM_WORLD, half, -rank, &comm));
  for (int way = 0; way < kWaysThere; ++way)
    run_heat(comm, grids[half], way % kKinds, kWays[way], 1);
  OK(MPI_Comm_free(&comm));
}

/* A face of some hundred KiB: other ways of moving bytes than a small one has. */
static void long_faces(void) {
  const int grid[kDimensions] = {16, 150, 140};
  run_heat(MPI_COMM_WORLD, grid, kSubarray, by_requests, 1);
  run_heat(MPI_COMM_WORLD, grid, kVectors, by_persistent_requests, 0);
}

/* ---- waves ---- */

struct place {
  double now, before;
  float medium;
};

static const int kRings[kDimensions] = {1, 0, 1};

static MPI_Datatype place_type(void) {
  const int lengths[] = {2, 1};
  const MPI_Aint places[] = {offsetof(struct place, now), offsetof(struct place, medium)};
  MPI_Datatype types[] = {MPI_DOUBLE, MPI_FLOAT}, plain, type;
  OK(MPI_Type_create_struct(2, lengths, places, types, &plain));
  OK(MPI_Type_create_resized(plain, 0, sizeof(struct place), &type));
  OK(MPI_Type_free(&plain));
  OK(MPI_Type_commit(&type));
  return type;
}

/* Only what neighbours ask for: one number of each place. */
static MPI_Datatype now_type(void) {
  MPI_Datatype type;
  OK(MPI_Type_create_resized(MPI_DOUBLE, 0, sizeof(struct place), &type));
  OK(MPI_Type_commit(&type));
  return type;
}

__attribute__((noinline)) static double next_wave(const struct place* at, size_t x, size_t y) {
  const double around =
      ((at[-(ptrdiff_t)x].now + at[x].now) + (at[-(ptrdiff_t)y].now + at[y].now)) +
      (at[-1].now + at[1].now);
  return 2 * at->now - at->before + (double)at->medium * (around - 6 * at->now);
}

static void step_wave(const struct block* b, struct place* field) {
  const size_t x = index_of(b, 1, 0, 0), y = index_of(b, 0, 1, 0);
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) {
    const size_t here = cell(b, i, at);
    field[here].before = next_wave(field + here, x, y);
  }
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) {
    struct place* const here = field + cell(b, i, at);
    const double now = here->before;
    here->before = here->now;
    here->now = now;
  }
}

/* The halo of who computes alone: the other end of the ring. */
static void close_rings(const struct block* b, struct place* field) {
  for (int x = 1; x <= b->n[0]; ++x)
    for (int y = 1; y <= b->n[1]; ++y) {
      field[index_of(b, x, y, 0)].now = field[index_of(b, x, y, b->n[2])].now;
      field[index_of(b, x, y, b->n[2] + 1)].now = field[index_of(b, x, y, 1)].now;
    }
  for (int y = 1; y <= b->n[1]; ++y)
    for (int z = 1; z <= b->n[2]; ++z) {
      field[index_of(b, 0, y, z)].now = field[index_of(b, b->n[0], y, z)].now;
      field[index_of(b, b->n[0] + 1, y, z)].now = field[index_of(b, 1, y, z)].now;
    }
}

/* Planes and lines of the grid of ranks as communicators of their own. */
static void ask_subgrids(const struct block* b, const struct block* whole,
                         const struct place* field, const struct place* alone) {
  const int is_kept[kDimensions] = {1, 0, 0};
  MPI_Comm line, plane;
  int before = 0, mine, at_line, count, coordinates[kDimensions];
  int64_t sum = 0, expected = 0, all = 0;
  OK(MPI_Comm_rank(b->comm, &mine));
  OK(MPI_Cart_coords(b->comm, mine, kDimensions, coordinates));
  OK(MPI_Cart_sub(b->comm, is_kept, &line));
  OK(MPI_Comm_rank(line, &at_line));
  OK(MPI_Comm_size(line, &count));
  CHECK(at_line == coordinates[0] && count == b->ranks[0]);
  OK(MPI_Exscan(&b->n[0], &before, 1, MPI_INT, MPI_SUM, line));
  CHECK(at_line == 0 || before == b->low[0]);
  OK(MPI_Comm_free(&line));

  OK(MPI_Comm_split(b->comm, coordinates[2], -mine, &plane));
  OK(MPI_Comm_size(plane, &count));
  CHECK(count == b->ranks[0] * b->ranks[1]);
  for (int i = 0, at[kDimensions]; i < cells_of(b); ++i) sum += fixed(field[cell(b, i, at)].now);
  for (int i = 0, at[kDimensions]; i < cells_of(whole); ++i) {
    const size_t here = cell(whole, i, at);
    if (at[2] >= b->low[2] && at[2] < b->low[2] + b->n[2]) expected += fixed(alone[here].now);
  }
  OK(MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, plane));
  CHECK(all == expected);
  OK(MPI_Comm_free(&plane));
}

static void run_wave(int kind, exchange_way way) {
  const int grid[kDimensions] = {16, 9, 11};
  const struct block b = make_block(MPI_COMM_WORLD, grid, kRings);
  const struct block whole = make_block(MPI_COMM_NULL, grid, kRings);
  struct place* field = calloc(cells_held(&b), sizeof *field);
  struct place* alone = calloc(cells_held(&whole), sizeof *alone);
  struct place* all = calloc(cells_held(&whole), sizeof *all);
  MPI_Datatype place = place_type(), now = now_type();
  struct exchange exchange = begin_exchange(&b, field, now, kind);
  int mine;
  OK(MPI_Comm_rank(b.comm, &mine));
  for (int i = 0, at[kDimensions]; i < cells_of(&whole); ++i) {
    struct place* const here = alone + cell(&whole, i, at);
    here->now = here->before = sin(at[0] + 0.3 * at[1]) * cos(0.7 * at[2]);
    here->medium = 0.05f + 0.01f * (float)((at[0] + at[1] * at[2]) % 5);
  }
  spread(&b, &whole, alone, field, place);
  for (int step = 0; step < kSteps; ++step) {
    way(&exchange);
    close_rings(&whole, alone);
    step_wave(&b, field);
    step_wave(&whole, alone);
  }
  collect(&b, &whole, field, all, place);
  for (int i = 0, at[kDimensions]; mine == 0 && i < cells_of(&whole); ++i) {
    const size_t here = cell(&whole, i, at);
    CHECK(memcmp(&all[here].now, &alone[here].now, sizeof(double)) == 0);
    CHECK(memcmp(&all[here].before, &alone[here].before, sizeof(double)) == 0);
    CHECK(memcmp(&all[here].medium, &alone[here].medium, sizeof(float)) == 0);
  }
  ask_subgrids(&b, &whole, field, alone);
  end_exchange(&exchange);
  OK(MPI_Type_free(&place));
  OK(MPI_Type_free(&now));
  free(field);
  free(alone);
  free(all);
  MPI_Comm cart = b.comm;
  OK(MPI_Comm_free(&cart));
}

static void waves(void) {
  for (int way = 0; way < kWaysThere; ++way)
    for (int kind = way % 2; kind < kKinds; kind += 2) run_wave(kind, kWays[way]);
}

/* All of it, or the parts that are named. */
int main(int argc, char** argv) {
  static const struct part parts[] = {
      {"heat", heat}, {"halves", halves}, {"waves", waves}, {"long_faces", long_faces}};
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    int is_wanted = argc < 2;
    for (int word = 1; word < argc; ++word) is_wanted |= strcmp(argv[word], parts[i].name) == 0;
    if (is_wanted) parts[i].run();
  }
  OK(MPI_Finalize());
  return 0;
}
