// SPDX-License-Identifier: BSD-2-Clause
// The tree of gather_binomial.cpp downwards: each rank receives the packed slices of all that hang
// below it, and hands the halves on, the largest first.
//
// Wins: short slices.  Cost: log P r + (P - 1) n G.
#include "mpi_shim/coll/scatter_row.hpp"

namespace vmpi {

void scatter_binomial(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const bool is_root = plan.rank() == of.root;
  if (size == 1) {
    if (!of.own->is_in_place()) plan.copy((*of.in)[0], *of.own);
    return;
  }
  const std::int64_t slice = is_root ? of.in->bytes(of.root) : of.own->bytes();
  unsigned char* row = nullptr;
  if (is_root) {
    row = plan.bytes(size * slice);
    if (row == nullptr) return;
    for (int i = 0; i < size; ++i)
      plan.copy((*of.in)[around(i + of.root, size)], {row + i * slice, slice, &byte_type()});
  }
  scatter_row(
      plan, row, [slice](int i) noexcept { return i * slice; }, *of.own, of.root);
}

}  // namespace vmpi
