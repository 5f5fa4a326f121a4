// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/cartesian.hpp"

namespace vmpi {
namespace {

/// Wrapped into [0, size) where the direction is periodic; -1: outside.
[[nodiscard]] int place(std::int64_t coord, int size, bool is_periodic) noexcept {
  if (coord >= 0 && coord < size) return static_cast<int>(coord);
  if (!is_periodic) return -1;
  const std::int64_t rest = coord % size;
  return static_cast<int>(rest < 0 ? rest + size : rest);
}

/// Splits `left` into factors[at...count), none larger than `cap`, and keeps the row with the
/// smallest difference between its first and last. Factors fall, so that the last is the smallest.
class Balance {
 public:
  Balance(const int* divisors, std::size_t divisor_count, int count, int* work, int* best) noexcept
      : divisors_(divisors),
        divisor_count_(divisor_count),
        count_(count),
        work_(work),
        best_(best) {}

  void search(int left, int cap, int at) noexcept {
    if (at == 0) root_ = ceil_root(left);
    if (at + 1 == count_) {
      if (left <= cap) take(left);
      return;
    }
    for (std::size_t i = 0; i < divisor_count_ && divisors_[i] <= cap; ++i) {
      const int factor = divisors_[i];
      if (left % factor != 0 || !is_enough(factor, count_ - at, left)) continue;
      // The smallest factor of any row is at most the root of the whole.
      if (at == 0 && factor - root_ >= spread_) return;
      work_[at] = factor;
      search(left / factor, factor, at + 1);
      if (spread_ == 0) return;
    }
  }

 private:
  /// factor^power >= product.
  static bool is_enough(int factor, int power, int product) noexcept {
    std::int64_t reached = 1;
    for (int i = 0; i < power; ++i) {
      reached *= factor;
      if (reached >= product) return true;
    }
    return reached >= product;
  }
  [[nodiscard]] int ceil_root(int product) const noexcept {
    int root = 1;
    while (!is_enough(root, count_, product)) ++root;
    return root;
  }
  void take(int last) noexcept {
    work_[count_ - 1] = last;
    const int spread = work_[0] - last;
    if (spread >= spread_) return;
    spread_ = spread;
    for (int i = 0; i < count_; ++i) best_[i] = work_[i];
  }

  const int* divisors_;
  std::size_t divisor_count_;
  int count_;
  int* work_;
  int* best_;
  int root_ = 1;
  int spread_ = 0x7fffffff;
};

[[nodiscard]] bool find_divisors(int number, Array<int>& out) noexcept {
  for (int i = 1; i <= number / i; ++i)
    if (number % i == 0 && !out.push_back(i)) return false;
  for (std::size_t i = out.size(); i-- > 0;)
    if (const int other = number / out[i]; other != out[i] && !out.push_back(other)) return false;
  return true;
}

/// Up to 31 factors of an int are above 1.
constexpr int kMostFactors = 31;

}  // namespace

int rank_at(const Cartesian& grid, const int* coords) noexcept {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
    const int at = place(coords[i], grid.sizes[i], grid.is_periodic[i] != 0);
    if (at < 0) return MPI_PROC_NULL;
    rank = rank * grid.sizes[i] + at;
  }
  return static_cast<int>(rank);
}

void coords_of(const Cartesian& grid, int rank, int* coords) noexcept {
  for (std::size_t i = grid.sizes.size(); i-- > 0;) {
    coords[i] = rank % grid.sizes[i];
    rank /= grid.sizes[i];
  }
}

int neighbour(const Cartesian& grid, int rank, int direction, int displacement) noexcept {
  const auto wanted = static_cast<std::size_t>(direction);
  int stride = 1;
  for (std::size_t i = grid.sizes.size(); i-- > wanted + 1;) stride *= grid.sizes[i];
  const int size = grid.sizes[wanted];
  const int coord = rank / stride % size;
  const int there = place(std::int64_t{coord} + displacement, size, grid.is_periodic[wanted] != 0);
  return there < 0 ? MPI_PROC_NULL : rank + (there - coord) * stride;
}

int choose_dims(int nodes, int count, int* dims) noexcept {
  int left = nodes;
  int open = 0;
  for (int i = 0; i < count; ++i) {
    if (dims[i] < 0) return MPI_ERR_DIMS;
    if (dims[i] == 0) {
      ++open;
      continue;
    }
    if (left % dims[i] != 0) return MPI_ERR_DIMS;
    left /= dims[i];
  }
  if (open == 0) return left == 1 ? MPI_SUCCESS : MPI_ERR_DIMS;
  Array<int> divisors;
  if (!find_divisors(left, divisors)) return MPI_ERR_NO_MEM;
  int work[kMostFactors];
  int best[kMostFactors];
  const int factors = open < kMostFactors ? open : kMostFactors;
  Balance(divisors.data(), divisors.size(), factors, work, best).search(left, left, 0);
  int next = 0;
  for (int i = 0; i < count; ++i) {
    if (dims[i] != 0) continue;
    dims[i] = next < factors ? best[next] : 1;
    ++next;
  }
  return MPI_SUCCESS;
}

}  // namespace vmpi
