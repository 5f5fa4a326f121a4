/* SPDX-License-Identifier: BSD-2-Clause
 * Conjugate gradients over a sparse symmetric matrix whose rows are shared out unevenly, as programs
 * of numerics have it. The solution is chosen before, so that it is known; products are, bit for bit,
 * what one rank computes alone. Which numbers of the vector others have is asked for by Alltoall, and
 * they are fetched in three ways. */
#include <math.h>
#include <stdint.h>

#include "point_to_point.h"

enum { kRows = 2600, kMostInRow = 24, kMostSteps = 200 };

/* ---- the matrix: a grid in two dimensions, some far entries, and a diagonal that outweighs them ---- */

enum { kWidth = 52, kFar = 6 };

struct entry {
  int column;
  double value;
};

/* Symmetric: the value depends on the pair alone. */
static double value_of(int one, int other) {
  const unsigned low = (unsigned)(one < other ? one : other);
  const unsigned high = (unsigned)(one < other ? other : one);
  return -0.25 - (double)((low * 2654435761u ^ high * 40503u) % 1000u) / 2000.0;
}

/* The far neighbour of a row in permutation k, which is its own inverse. */
static int far_of(int r, int k) { return ((k + 1) * 397 % kRows + kRows - r) % kRows; }

/* In the order of columns, each once. */
static int make_row(int r, struct entry* row) {
  int columns[kMostInRow], count = 0, entries = 0;
  double diagonal = 1e-2;
  if (r >= kWidth) columns[count++] = r - kWidth;
  if (r % kWidth != 0) columns[count++] = r - 1;
  if (r % kWidth != kWidth - 1) columns[count++] = r + 1;
  if (r + kWidth < kRows) columns[count++] = r + kWidth;
  for (int k = 0; k < kFar; ++k)
    if ((r + far_of(r, k)) % 3 == 0) columns[count++] = far_of(r, k);
  columns[count++] = r;
  for (int i = 1; i < count; ++i)
    for (int j = i; j > 0 && columns[j] < columns[j - 1]; --j) {
      const int column = columns[j];
      columns[j] = columns[j - 1];
      columns[j - 1] = column;
    }
  for (int i = 0; i < count; ++i) {
    if (i > 0 && columns[i] == columns[i - 1]) continue;
    const double value = columns[i] == r ? 0 : value_of(r, columns[i]);
    row[entries++] = (struct entry){columns[i], value};
    diagonal -= value;
  }
  for (int i = 0; i < entries; ++i)
    if (row[i].column == r) row[i].value = diagonal;
  return entries;
}

static double known_solution(int r) { return sin(0.01 * r) + (double)(r % 7) / 5 - 0.4; }

/* Not inlined, so that it sums in one order wherever it is called. */
__attribute__((noinline)) static double times(const struct entry* row, int entries,
                                              const double* vector) {
  double sum = 0;
  for (int i = 0; i < entries; ++i) sum += row[i].value * vector[row[i].column];
  return sum;
}

/* ---- the rows of this rank, and what it fetches from others ---- */

struct shares {
  int rows, first; /* of this rank */
  int* counts;     /* of all ranks */
  int* firsts;
};

struct matrix {
  struct shares of;
  int* entries;
  struct entry*
      row;    /* kMostInRow for each; columns are places in the vector with what is fetched */
  int* given; /* own rows that others want, in the order of ranks */
  int* give_counts;
  int* give_firsts;
  int* take_counts;
  int* take_firsts;
  int taken;
};

/* Rank r has r + 1 parts; the last one what is left. */
static struct shares share_rows(void) {
  struct shares s = {0, 0, calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
  const int parts = size * (size + 1) / 2;
  s.rows = kRows / parts * (rank + 1);
  if (rank == size - 1) s.rows = kRows - kRows / parts * (parts - size);
  OK(MPI_Exscan(&s.rows, &s.first, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (rank == 0) s.first = 0; /* Exscan leaves it as it was */
  OK(MPI_Allgather(&s.rows, 1, MPI_INT, s.counts, 1, MPI_INT, MPI_COMM_WORLD));
  OK(MPI_Allgather(&s.first, 1, MPI_INT, s.firsts, 1, MPI_INT, MPI_COMM_WORLD));
  CHECK(s.firsts[size - 1] + s.counts[size - 1] == kRows);
  return s;
}

static int owner_of(const struct shares* s, int r) {
  int owner = 0;
  while (r >= s->firsts[owner] + s->counts[owner]) ++owner;
  return owner;
}

static int sum_before(const int* counts, int* firsts) {
  int sum = 0;
  for (int r = 0; r < size; ++r) {
    firsts[r] = sum;
    sum += counts[r];
  }
  return sum;
}

static struct matrix make_matrix(void) {
  struct matrix m = {.of = share_rows()};
  const size_t ranks = (size_t)size;
  int* place =
      malloc(kRows * sizeof *place); /* of a column in this rank's vector; -1: not wanted */
  for (int r = 0; r < kRows; ++r) place[r] = -1;
  m.entries = malloc((size_t)m.of.rows * sizeof *m.entries);
  m.row = malloc((size_t)m.of.rows * kMostInRow * sizeof *m.row);
  m.give_counts = calloc(ranks, sizeof(int));
  m.give_firsts = calloc(ranks, sizeof(int));
  m.take_counts = calloc(ranks, sizeof(int));
  m.take_firsts = calloc(ranks, sizeof(int));
  for (int i = 0; i < m.of.rows; ++i) {
    struct entry* row = m.row + (size_t)i * kMostInRow;
    m.entries[i] = make_row(m.of.first + i, row);
    CHECK(m.entries[i] <= kMostInRow);
    for (int e = 0; e < m.entries[i]; ++e) place[row[e].column] = 0;
  }
  for (int r = 0; r < kRows; ++r)
    if (place[r] == 0 && owner_of(&m.of, r) != rank) ++m.take_counts[owner_of(&m.of, r)];
  m.taken = sum_before(m.take_counts, m.take_firsts);
  int* wanted = malloc((size_t)(m.taken + 1) * sizeof *wanted);
  for (int r = 0, next = 0; r < kRows; ++r) {
    if (place[r] != 0) continue;
    const int is_own = owner_of(&m.of, r) == rank;
    if (!is_own) wanted[next] = r;
    place[r] = is_own ? r - m.of.first : m.of.rows + next++;
  }
  OK(MPI_Alltoall(m.take_counts, 1, MPI_INT, m.give_counts, 1, MPI_INT, MPI_COMM_WORLD));
  const int given = sum_before(m.give_counts, m.give_firsts);
  m.given = malloc((size_t)(given + 1) * sizeof *m.given);
  OK(MPI_Alltoallv(wanted, m.take_counts, m.take_firsts, MPI_INT, m.given, m.give_counts,
                   m.give_firsts, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < given; ++i) {
    m.given[i] -= m.of.first;
    CHECK(m.given[i] >= 0 && m.given[i] < m.of.rows);
  }
  for (int i = 0; i < m.of.rows; ++i)
    for (int e = 0; e < m.entries[i]; ++e) {
      struct entry* one = m.row + (size_t)i * kMostInRow + e;
      one->column = place[one->column];
    }
  free(wanted);
  free(place);
  return m;
}

static void free_matrix(struct matrix* m) {
  int* const all[] = {m->of.counts,   m->of.firsts,   m->entries,     m->given,
                      m->give_counts, m->give_firsts, m->take_counts, m->take_firsts};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  free(m->row);
}

/* ---- fetching: the vector's own part comes first, what others have behind it ---- */

struct fetch {
  const struct matrix* matrix;
  double* vector;
  double* out;
  MPI_Datatype* given; /* of each rank: numbers of the own part */
  MPI_Request* requests;
};

static void by_alltoallv(struct fetch* f) {
  const struct matrix* m = f->matrix;
  const int given = m->give_firsts[size - 1] + m->give_counts[size - 1];
  for (int i = 0; i < given; ++i) f->out[i] = f->vector[m->given[i]];
  OK(MPI_Alltoallv(f->out, m->give_counts, m->give_firsts, MPI_DOUBLE, f->vector + m->of.rows,
                   m->take_counts, m->take_firsts, MPI_DOUBLE, MPI_COMM_WORLD));
}

/* Only those talk that have something for each other; what is sent is not copied before. */
static void by_messages(struct fetch* f) {
  const struct matrix* m = f->matrix;
  int count = 0;
  for (int r = 0; r < size; ++r)
    if (m->take_counts[r] != 0)
      OK(MPI_Irecv(f->vector + m->of.rows + m->take_firsts[r], m->take_counts[r], MPI_DOUBLE, r, 5,
                   MPI_COMM_WORLD, &f->requests[count++]));
  for (int step = 1; step < size; ++step) {
    const int r = (rank + step) % size;
    if (m->give_counts[r] != 0) OK(MPI_Send(f->vector, 1, f->given[r], r, 5, MPI_COMM_WORLD));
  }
  OK(MPI_Waitall(count, f->requests, MPI_STATUSES_IGNORE));
}

static void by_persistent_requests(struct fetch* f) {
  const struct matrix* m = f->matrix;
  for (int r = 0; r < size && f->requests[r] == MPI_REQUEST_NULL; ++r) {
    double* const to = f->vector + m->of.rows + m->take_firsts[r];
    OK(MPI_Recv_init(to, m->take_counts[r], MPI_DOUBLE, r, 6, MPI_COMM_WORLD, &f->requests[r]));
    OK(MPI_Send_init(f->vector, 1, f->given[r], r, 6, MPI_COMM_WORLD, &f->requests[size + r]));
  }
  OK(MPI_Startall(2 * size, f->requests));
  int is_done = 0;
  while (!is_done) OK(MPI_Testall(2 * size, f->requests, &is_done, MPI_STATUSES_IGNORE));
}

static struct fetch begin_fetch(const struct matrix* m, double* vector) {
  const size_t ranks = (size_t)size;
  const int given = m->give_firsts[size - 1] + m->give_counts[size - 1];
  struct fetch f = {m, vector, malloc((size_t)(given + 1) * sizeof(double)),
                    malloc(ranks * sizeof(MPI_Datatype)), malloc(2 * ranks * sizeof(MPI_Request))};
  for (int r = 0; r < size; ++r) {
    f.requests[r] = f.requests[size + r] = MPI_REQUEST_NULL;
    OK(MPI_Type_create_indexed_block(m->give_counts[r], 1, m->given + m->give_firsts[r], MPI_DOUBLE,
                                     &f.given[r]));
    OK(MPI_Type_commit(&f.given[r]));
  }
  return f;
}

static void end_fetch(struct fetch* f) {
  for (int r = 0; r < size; ++r) OK(MPI_Type_free(&f->given[r]));
  for (int i = 0; i < 2 * size; ++i)
    if (f->requests[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&f->requests[i]));
  free(f->given);
  free(f->requests);
  free(f->out);
}

/* ---- the solver ---- */

typedef void (*fetch_way)(struct fetch*);

static double dot(const struct matrix* m, const double* one, const double* other) {
  double sum = 0;
  for (int i = 0; i < m->of.rows; ++i) sum += one[i] * other[i];
  OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  return sum;
}

static void multiply(const struct matrix* m, struct fetch* f, fetch_way way, double* out) {
  way(f);
  for (int i = 0; i < m->of.rows; ++i)
    out[i] = times(m->row + (size_t)i * kMostInRow, m->entries[i], f->vector);
}

/* The product with the solution, gathered: what rank 0 computes alone, bit for bit. A row's entries
 * stay in the order of columns of the whole matrix, wherever they come from. */
static void compare_product(const struct matrix* m, const double* product) {
  double* all = malloc(kRows * sizeof *all);
  double* vector = malloc(kRows * sizeof *vector);
  OK(MPI_Gatherv(product, m->of.rows, MPI_DOUBLE, all, m->of.counts, m->of.firsts, MPI_DOUBLE, 0,
                 MPI_COMM_WORLD));
  for (int r = 0; r < kRows; ++r) vector[r] = known_solution(r);
  for (int r = 0; rank == 0 && r < kRows; ++r) {
    struct entry row[kMostInRow];
    const double alone = times(row, make_row(r, row), vector);
    CHECK(memcmp(&alone, &all[r], sizeof alone) == 0);
  }
  free(all);
  free(vector);
}

static void solve(fetch_way way) {
  struct matrix m = make_matrix();
  const size_t rows = (size_t)m.of.rows;
  double* direction = calloc(rows + (size_t)m.taken, sizeof(double));
  double* solution = calloc(rows, sizeof(double));
  double* residual = malloc(rows * sizeof(double));
  double* product = malloc(rows * sizeof(double));
  struct fetch f = begin_fetch(&m, direction);
  int steps = 0;
  for (size_t i = 0; i < rows; ++i) direction[i] = known_solution(m.of.first + (int)i);
  multiply(&m, &f, way, residual);
  compare_product(&m, residual);
  memcpy(direction, residual, rows * sizeof(double));
  double square = dot(&m, residual, residual);
  const double enough = square * 1e-26;
  for (; square > enough && steps < kMostSteps * 10; ++steps) {
    multiply(&m, &f, way, product);
    const double length = square / dot(&m, direction, product);
    for (size_t i = 0; i < rows; ++i) {
      solution[i] += length * direction[i];
      residual[i] -= length * product[i];
    }
    const double next = dot(&m, residual, residual);
    for (size_t i = 0; i < rows; ++i) direction[i] = residual[i] + next / square * direction[i];
    square = next;
  }
  struct {
    double value;
    int rank;
  } worst = {0, rank}, of_all = {-1, -1};
  for (size_t i = 0; i < rows; ++i)
    worst.value = fmax(worst.value, fabs(solution[i] - known_solution(m.of.first + (int)i)));
  OK(MPI_Allreduce(&worst, &of_all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  if (rank == of_all.rank && (of_all.value >= 1e-8 || steps >= kMostSteps))
    fprintf(stderr, "after %d steps it is off by %g at rank %d\n", steps, of_all.value, rank);
  CHECK(of_all.rank >= 0 && of_all.value >= worst.value && of_all.value < 1e-8);
  CHECK(steps > 10 && steps < kMostSteps);

  /* All ranks have taken the same number of steps, and the whole solution reaches each. */
  int most = 0;
  double* all = malloc(kRows * sizeof *all);
  OK(MPI_Allreduce(&steps, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  CHECK(most == steps);
  OK(MPI_Allgatherv(solution, m.of.rows, MPI_DOUBLE, all, m.of.counts, m.of.firsts, MPI_DOUBLE,
                    MPI_COMM_WORLD));
  for (int r = 0; r < kRows; ++r) CHECK(fabs(all[r] - known_solution(r)) < 1e-8);
  free(all);
  end_fetch(&f);
  free(direction);
  free(solution);
  free(residual);
  free(product);
  free_matrix(&m);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  solve(by_alltoallv);
  solve(by_messages);
  solve(by_persistent_requests);
  OK(MPI_Finalize());
  return 0;
}
