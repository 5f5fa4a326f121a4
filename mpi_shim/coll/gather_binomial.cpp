// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree. Ranks are counted from the root. Each collects the packed slices of those above it
// whose bits below its own lowest one it lacks, and hands the row on; the root unpacks.
//
// Wins: short slices.  Cost: log P r + (P - 1) n G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {
namespace {

/// How many ranks hang below one, it among them.
[[nodiscard]] int subtree(int relative, int size) noexcept {
  if (relative == 0) return size;
  const int low_bit = relative & -relative;
  return low_bit < size - relative ? low_bit : size - relative;
}

}  // namespace

void gather_binomial(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const bool is_root = plan.rank() == of.root;
  if (is_root && !of.own->is_in_place()) plan.copy(*of.own, (*of.out)[of.root]);
  if (size == 1) return;
  const int me = around(plan.rank() - of.root, size);
  const int below = subtree(me, size);
  const std::int64_t slice = is_root ? of.out->bytes(of.root) : of.own->bytes();
  const bool is_leaf = below == 1;
  // The root's own slice is where it belongs, and one that has none below it sends it as it is.
  unsigned char* const row = is_leaf ? nullptr : plan.bytes((is_root ? size - 1 : below) * slice);
  if (!plan.is_good()) return;
  const auto slices = [&](int begin, int count) noexcept -> Typed {
    return {row + (is_root ? begin - 1 : begin) * slice, count * slice, &byte_type()};
  };
  for (int bit = 1; bit < below; bit *= 2) {
    plan.receive(around(me + bit + of.root, size), slices(bit, subtree(me + bit, size)));
    if (bit > below / 2) break;
  }
  if (!is_root) {
    if (!is_leaf) plan.copy(*of.own, slices(0, 1));
    plan.fence();
    plan.send(around(me - (me & -me) + of.root, size), is_leaf ? *of.own : slices(0, below));
    return plan.fence();
  }
  plan.fence();
  for (int i = 1; i < size; ++i) plan.copy(slices(i, 1), (*of.out)[around(i + of.root, size)]);
}

}  // namespace vmpi
