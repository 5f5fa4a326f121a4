// SPDX-License-Identifier: BSD-2-Clause
// MPI_MINLOC and MPI_MAXLOC: of equal values the one with the smaller index.
#include "mpi_shim/core/op_kernels.hpp"

namespace vmpi {
namespace {

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

template <class T, bool kTakesLess>
void combine_pairs(const void* in, void* inout, std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_better = kTakesLess ? a[i].value < b[i].value : a[i].value > b[i].value;
    const bool is_earlier = a[i].value == b[i].value && a[i].index < b[i].index;
    if (is_better || is_earlier) b[i] = a[i];
  }
}

template <class Value, class Index>
Kernel find(Operation operation) noexcept {
  using T = Pair<Value, Index>;
  if (operation == Operation::kMinLocation) return combine_pairs<T, true>;
  if (operation == Operation::kMaxLocation) return combine_pairs<T, false>;
  return nullptr;
}

}  // namespace

Kernel find_pair_kernel(Operation operation, const Basic& basic) noexcept {
  switch (basic.number) {
    case 0x228:
      return find<float, int>(operation);
    case 0x229:
      return find<double, int>(operation);
    case 0x22a:
      return find<long, int>(operation);
    case 0x22b:
      return find<int, int>(operation);
    case 0x22c:
      return find<short, int>(operation);
    case 0x22d:
      return find<long double, int>(operation);
    case 0x230:
      return find<float, float>(operation);
    case 0x231:
      return find<double, double>(operation);
    case 0x232:
      return find<std::int32_t, std::int32_t>(operation);
    default:
      return nullptr;
  }
}

}  // namespace vmpi
