// SPDX-License-Identifier: BSD-2-Clause
// A reduction to rank 0, and a scatter of packed slices, both by binomial trees.
//
// Wins: operations that do not commute.  Cost: 2 log P r + (log P + 1) n G + log P n c, n of all slices.
#include "mpi_shim/coll/scatter_row.hpp"

namespace vmpi {

void reduce_scatter_binomial(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const auto size = static_cast<std::size_t>(plan.size());
  Array<std::int64_t> offsets;
  if (!offsets.resize(size + 1)) return plan.fail();
  for (std::size_t i = 0; i < size; ++i)
    offsets[i + 1] = offsets[i] + of.counts[i] * what.type->size;
  void* sum = nullptr;
  unsigned char* row = nullptr;
  if (plan.rank() == 0) {
    sum = plan.elements(*what.type, what.count);
    row = plan.bytes(offsets[size]);
    if (!plan.is_good()) return;
  }
  const Reduced whole = {what.own(), sum, what.count, what.type, what.op};
  Operands parts;
  parts.what = &whole;
  reduce_binomial(plan, parts);
  if (plan.rank() == 0) plan.copy(what.typed(sum), {row, offsets[size], &byte_type()});
  const Typed own = {what.receive, of.counts[plan.rank()], what.type};
  scatter_row(
      plan, row, [&](int i) noexcept { return offsets[static_cast<std::size_t>(i)]; }, own, 0);
}

}  // namespace vmpi
