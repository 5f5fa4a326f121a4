// SPDX-License-Identifier: BSD-2-Clause
#include "tests/mpi/type_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

namespace model {

std::int64_t Type::size() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : map) bytes += entry.bytes;
  return bytes;
}
std::int64_t Type::true_lb() const {
  std::int64_t low = map.empty() ? 0 : map[0].at;
  for (const Entry& entry : map) low = std::min(low, entry.at);
  return low;
}
std::int64_t Type::true_ub() const {
  std::int64_t high = map.empty() ? 0 : map[0].at + map[0].bytes;
  for (const Entry& entry : map) high = std::max(high, entry.at + entry.bytes);
  return high;
}
std::int64_t Type::lb() const { return has_bounds ? given_lb : true_lb(); }
std::int64_t Type::ub() const {
  if (has_bounds) return given_ub;
  int alignment = 1;
  for (const Entry& entry : map) alignment = std::max(alignment, entry.alignment);
  std::int64_t extent = true_ub() - true_lb();
  while (extent % alignment != 0) ++extent;
  return true_lb() + extent;
}

void Type::append(const Type& other, std::int64_t by) {
  for (const Entry& entry : other.map) map.push_back({entry.at + by, entry.bytes, entry.alignment});
  if (!other.has_bounds) return;
  given_lb = has_bounds ? std::min(given_lb, other.given_lb + by) : other.given_lb + by;
  given_ub = has_bounds ? std::max(given_ub, other.given_ub + by) : other.given_ub + by;
  has_bounds = true;
}
void Type::append_block(const Type& other, std::int64_t at, std::int64_t count) {
  const std::int64_t apart = other.extent();
  for (std::int64_t i = 0; i < count; ++i) append(other, at + i * apart);
}

namespace {

int between(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

template <class T>
Both basic(MPI_Datatype handle) {
  return {{{{0, sizeof(T), alignof(T)}}, false, 0, 0}, handle, false};
}
template <class T>
Both complex(MPI_Datatype handle) {
  return {{{{0, 2 * sizeof(T), alignof(T)}}, false, 0, 0}, handle, false};
}
template <class Value, class Index>
Both pair(MPI_Datatype handle) {
  struct Of {
    Value value;
    Index index;
  };
  return {
      {{{0, sizeof(Value), alignof(Value)}, {offsetof(Of, index), sizeof(Index), alignof(Index)}},
       false,
       0,
       0},
      handle,
      false};
}

Both random_basic(std::mt19937& random) {
  switch (between(random, 0, 12)) {
    case 0:
      return basic<char>(MPI_CHAR);
    case 1:
      return basic<short>(MPI_SHORT);
    case 2:
      return basic<int>(MPI_INT);
    case 3:
      return basic<double>(MPI_DOUBLE);
    case 4:
      return basic<long double>(MPI_LONG_DOUBLE);
    case 5:
      return basic<unsigned char>(MPI_BYTE);
    case 6:
      return pair<double, int>(MPI_DOUBLE_INT);
    case 7:
      return pair<short, int>(MPI_SHORT_INT);
    case 8:
      return pair<long double, int>(MPI_LONG_DOUBLE_INT);
    case 9:
      return complex<double>(MPI_C_DOUBLE_COMPLEX);
    case 10:
      return complex<float>(MPI_COMPLEX);
    case 11:
      return pair<float, float>(MPI_2REAL);
    default:
      return basic<std::int64_t>(MPI_INTEGER8);
  }
}

constexpr std::size_t kMostEntries = 3000;

/// Mostly few, sometimes none, sometimes more than the library writes out.
int random_count(std::mt19937& random, const Type& of) {
  const int kind = between(random, 0, 19);
  const int count = kind == 0 ? 0 : kind <= 2 ? between(random, 60, 140) : between(random, 1, 4);
  const std::size_t most = of.map.empty() ? 200 : kMostEntries / of.map.size();
  return std::min(count, static_cast<int>(most));
}

void give_back(Both& old) {
  if (old.is_ours) {
    EXPECT_EQ(MPI_Type_free(&old.handle), MPI_SUCCESS);
  }
}

Both vector(std::mt19937& random, Both old) {
  const int length = random_count(random, old.model);
  Both made;
  Type block;
  block.append_block(old.model, 0, length);
  const int count = random_count(random, block);
  std::int64_t step = 0;
  made.is_ours = true;
  switch (between(random, 0, 2)) {
    case 0: {
      const int stride = between(random, -6, 9);
      step = stride * old.model.extent();
      EXPECT_EQ(MPI_Type_vector(count, length, stride, old.handle, &made.handle), MPI_SUCCESS);
      break;
    }
    case 1: {
      step = between(random, -90, 200);
      EXPECT_EQ(MPI_Type_create_hvector_c(count, length, step, old.handle, &made.handle),
                MPI_SUCCESS);
      break;
    }
    default: {
      step = length * old.model.extent();
      EXPECT_EQ(MPI_Type_create_hvector(count, length, step, old.handle, &made.handle),
                MPI_SUCCESS);
    }
  }
  for (int i = 0; i < count; ++i) made.model.append_block(old.model, i * step, length);
  return made;
}

Both contiguous(std::mt19937& random, const Both& old) {
  const int count = random_count(random, old.model);
  Both made;
  made.is_ours = true;
  made.model.append_block(old.model, 0, count);
  EXPECT_EQ(MPI_Type_contiguous(count, old.handle, &made.handle), MPI_SUCCESS);
  return made;
}

Both indexed(std::mt19937& random, const Both& old) {
  Both made;
  made.is_ours = true;
  const int count =
      between(random, 0, 3) == 0 ? random_count(random, old.model) / 2 : between(random, 0, 5);
  const bool is_block = between(random, 0, 1) == 0;
  const bool in_bytes = between(random, 0, 1) == 0;
  const bool is_regular = between(random, 0, 3) == 0;
  std::vector<int> lengths, places;
  std::vector<MPI_Aint> bytes;
  for (int i = 0; i < count; ++i) {
    lengths.push_back(is_block && i > 0 ? lengths[0] : between(random, 0, 2));
    places.push_back(is_regular ? 3 * i : between(random, -5, 12));
    bytes.push_back(in_bytes ? (is_regular ? 24 * i : between(random, -100, 300))
                             : places.back() * old.model.extent());
    made.model.append_block(old.model, bytes.back(), lengths.back());
  }
  const int length = count > 0 ? lengths[0] : 1;
  const int error =
      is_block ? in_bytes ? MPI_Type_create_hindexed_block(count, length, bytes.data(), old.handle,
                                                           &made.handle)
                          : MPI_Type_create_indexed_block(count, length, places.data(), old.handle,
                                                          &made.handle)
      : in_bytes
          ? MPI_Type_create_hindexed(count, lengths.data(), bytes.data(), old.handle, &made.handle)
          : MPI_Type_indexed(count, lengths.data(), places.data(), old.handle, &made.handle);
  EXPECT_EQ(error, MPI_SUCCESS);
  return made;
}

Both structure(std::mt19937& random, int depth) {
  Both made;
  made.is_ours = true;
  const int count = between(random, 0, 4);
  std::vector<Both> parts;
  std::vector<int> lengths;
  std::vector<MPI_Aint> bytes;
  std::vector<MPI_Datatype> handles;
  for (int i = 0; i < count; ++i) {
    parts.push_back(random_type(random, depth - 1));
    const bool is_small = parts.back().model.map.size() < kMostEntries / 8;
    lengths.push_back(is_small ? between(random, 0, 2) : 1);
    bytes.push_back(between(random, -100, 300));
    handles.push_back(parts.back().handle);
    made.model.append_block(parts.back().model, bytes.back(), lengths.back());
  }
  EXPECT_EQ(
      MPI_Type_create_struct(count, lengths.data(), bytes.data(), handles.data(), &made.handle),
      MPI_SUCCESS);
  for (Both& part : parts) give_back(part);
  return made;
}

/// Adds the elements of an array at indices that `is_in` accepts, in the order of memory.
template <class IsIn>
Type array(const Type& old, const std::vector<int>& sizes, int order, IsIn is_in) {
  Type out;
  const std::int64_t apart = old.extent();
  const std::size_t n = sizes.size();
  std::int64_t all = 1;
  for (const int size : sizes) all *= size;
  for (std::int64_t i = 0; i < all; ++i) {
    // The place in memory as indices: the dense dimension is the last in C, the first in Fortran.
    std::vector<int> index(n);
    std::int64_t rest = i;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t d = order == MPI_ORDER_C ? n - 1 - k : k;
      index[d] = static_cast<int>(rest % sizes[d]);
      rest /= sizes[d];
    }
    if (is_in(index)) out.append(old, i * apart);
  }
  out.has_bounds = true;
  out.given_lb = 0;
  out.given_ub = all * apart;
  return out;
}

Both subarray(std::mt19937& random, const Both& old) {
  Both made;
  made.is_ours = true;
  const int n = between(random, 1, 4);
  const int order = between(random, 0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  std::vector<int> sizes, subsizes, starts;
  for (int d = 0; d < n; ++d) {
    sizes.push_back(between(random, 1, old.model.map.size() > 50 ? 2 : 5));
    subsizes.push_back(between(random, 1, sizes.back()));
    starts.push_back(between(random, 0, sizes.back() - subsizes.back()));
  }
  made.model = array(old.model, sizes, order, [&](const std::vector<int>& index) {
    for (std::size_t d = 0; d < index.size(); ++d)
      if (index[d] < starts[d] || index[d] >= starts[d] + subsizes[d]) return false;
    return true;
  });
  EXPECT_EQ(MPI_Type_create_subarray(n, sizes.data(), subsizes.data(), starts.data(), order,
                                     old.handle, &made.handle),
            MPI_SUCCESS);
  return made;
}

Both darray(std::mt19937& random, const Both& old) {
  Both made;
  made.is_ours = true;
  const int n = between(random, 1, 3);
  const int order = between(random, 0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  std::vector<int> sizes, kinds, arguments, processes;
  int all = 1;
  for (int d = 0; d < n; ++d) {
    sizes.push_back(between(random, 1, old.model.map.size() > 50 ? 3 : 9));
    const int kind = between(random, 0, 2);
    kinds.push_back(kind == 0   ? MPI_DISTRIBUTE_NONE
                    : kind == 1 ? MPI_DISTRIBUTE_BLOCK
                                : MPI_DISTRIBUTE_CYCLIC);
    processes.push_back(kind == 0 ? 1 : between(random, 1, 3));
    const int least = kind == 1 ? (sizes.back() + processes.back() - 1) / processes.back() : 1;
    arguments.push_back(between(random, 0, 1) == 0 ? MPI_DISTRIBUTE_DFLT_DARG
                                                   : between(random, least, least + 2));
    all *= processes.back();
  }
  const int rank = between(random, 0, all - 1);
  std::vector<int> mine(static_cast<std::size_t>(n));
  for (int d = n - 1, rest = rank; d >= 0; --d) {
    const auto k = static_cast<std::size_t>(d);
    mine[k] = rest % processes[k];
    rest /= processes[k];
  }
  made.model = array(old.model, sizes, order, [&](const std::vector<int>& index) {
    for (std::size_t d = 0; d < index.size(); ++d) {
      int block = arguments[d];
      if (kinds[d] == MPI_DISTRIBUTE_NONE) continue;
      if (block == MPI_DISTRIBUTE_DFLT_DARG)
        block =
            kinds[d] == MPI_DISTRIBUTE_CYCLIC ? 1 : (sizes[d] + processes[d] - 1) / processes[d];
      if (index[d] / block % processes[d] != mine[d]) return false;
    }
    return true;
  });
  EXPECT_EQ(MPI_Type_create_darray(all, rank, n, sizes.data(), kinds.data(), arguments.data(),
                                   processes.data(), order, old.handle, &made.handle),
            MPI_SUCCESS);
  return made;
}

Both resized(std::mt19937& random, const Both& old) {
  Both made;
  made.is_ours = true;
  made.model.append(old.model, 0);
  made.model.has_bounds = true;
  made.model.given_lb = between(random, -40, 40);
  const std::int64_t extent =
      between(random, 0, 2) == 0 ? between(random, -60, 200) : old.model.extent() + 8;
  made.model.given_ub = made.model.given_lb + extent;
  EXPECT_EQ(MPI_Type_create_resized(old.handle, made.model.given_lb, extent, &made.handle),
            MPI_SUCCESS);
  return made;
}

}  // namespace

Both random_type(std::mt19937& random, int depth) {
  if (depth == 0) return random_basic(random);
  const int kind = between(random, 0, 9);
  if (kind == 9) return structure(random, depth);
  Both old = random_type(random, depth - 1);
  Both made;
  switch (kind) {
    case 0:
    case 1:
      made = vector(random, old);
      break;
    case 2:
      made = contiguous(random, old);
      break;
    case 3:
    case 4:
      made = indexed(random, old);
      break;
    case 5:
      made = subarray(random, old);
      break;
    case 6:
      made = darray(random, old);
      break;
    case 7:
      made = resized(random, old);
      break;
    default:
      made.model = old.model;
      made.is_ours = true;
      EXPECT_EQ(MPI_Type_dup(old.handle, &made.handle), MPI_SUCCESS);
  }
  give_back(old);
  return made;
}

}  // namespace model
