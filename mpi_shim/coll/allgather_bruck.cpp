// SPDX-License-Identifier: BSD-2-Clause
// Bruck's algorithm over packed slices, which may differ in size as all ranks know all sizes. Each
// keeps a row that begins with its own slice; in round k it gets the first 2^k slices of the row of
// the rank 2^k above, which follow what it has.
//
// Wins: short slices, any number of ranks.  Cost: log P r + (P - 1) n G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void allgather_bruck(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Slices& out = *of.out;
  if (size == 1) {
    if (!of.own->is_in_place()) plan.copy(*of.own, out[0]);
    return;
  }
  Array<std::int64_t> begins;  // of the slices in our row
  if (!begins.resize(static_cast<std::size_t>(size) + 1)) return plan.fail();
  for (int i = 0; i < size; ++i)
    begins[static_cast<std::size_t>(i) + 1] =
        begins[static_cast<std::size_t>(i)] + out.bytes(around(me + i, size));
  unsigned char* const row = plan.bytes(begins[static_cast<std::size_t>(size)]);
  if (row == nullptr) return;
  const auto part = [&](int from, int to) noexcept -> Typed {
    const std::int64_t begin = begins[static_cast<std::size_t>(from)];
    return {row + begin, begins[static_cast<std::size_t>(to)] - begin, &byte_type()};
  };
  plan.copy(of.own->is_in_place() ? out[me] : *of.own, part(0, 1));
  for (int have = 1; have < size;) {
    const int more = have < size - have ? have : size - have;
    plan.receive(around(me + have, size), part(have, have + more));
    plan.send(around(me - have, size), part(0, more));
    plan.fence();
    have += more;
  }
  for (int i = of.own->is_in_place() ? 1 : 0; i < size; ++i)
    plan.copy(part(i, i + 1), out[around(me + i, size)]);
}

}  // namespace vmpi
