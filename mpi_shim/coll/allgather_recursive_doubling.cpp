// SPDX-License-Identifier: BSD-2-Clause
// In round k two ranks whose numbers differ in bit k exchange all that they have, which is 2^k
// neighbouring slices. Slices that are alike go from and to where they belong; others are packed.
//
// Wins: short and medium slices, P a power of two.  Cost: log P r + (P - 1) n G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void allgather_recursive_doubling(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Slices& out = *of.out;
  const bool is_packed = out.form != Slices::Form::kAlike;
  Array<std::int64_t> begins;
  unsigned char* row = nullptr;
  if (is_packed) {
    if (!begins.resize(static_cast<std::size_t>(size) + 1)) return plan.fail();
    for (int i = 0; i < size; ++i)
      begins[static_cast<std::size_t>(i) + 1] = begins[static_cast<std::size_t>(i)] + out.bytes(i);
    row = plan.bytes(begins[static_cast<std::size_t>(size)]);
    if (row == nullptr) return;
  }
  const auto slices = [&](int from, int count) noexcept -> Typed {
    if (!is_packed) return {out[from].buffer, count * out.count, out.one_type};
    const std::int64_t begin = begins[static_cast<std::size_t>(from)];
    return {row + begin, begins[static_cast<std::size_t>(from + count)] - begin, &byte_type()};
  };
  if (is_packed || !of.own->is_in_place())
    plan.copy(of.own->is_in_place() ? out[me] : *of.own, slices(me, 1));
  for (int mask = 1; mask < size; mask *= 2) {
    const int peer = me ^ mask;
    plan.receive(peer, slices(peer & -mask, mask));
    plan.send(peer, slices(me & -mask, mask));
    plan.fence();
  }
  for (int i = 0; i < size && is_packed; ++i)
    if (i != me || !of.own->is_in_place()) plan.copy(slices(i, 1), out[i]);
}

}  // namespace vmpi
