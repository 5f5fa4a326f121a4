// SPDX-License-Identifier: BSD-2-Clause
// Bruck's algorithm: slices wait in a row by how far they have to go, and in round k all that have
// bit k in that distance travel 2^k ranks together.
//
// Wins: short slices, many ranks.  Cost: log P (r + n P / 2 G).
#include "mpi_shim/coll/put_aside.hpp"

namespace vmpi {

void alltoall_bruck(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Given in(plan, of);
  const std::int64_t slice = of.out->bytes(0);
  const std::int64_t half = (size / 2 + 1) * slice;
  unsigned char* const row = plan.bytes(size * slice);
  unsigned char* const going = plan.bytes(half);
  unsigned char* const coming = plan.bytes(half);
  if (!plan.is_good()) return;
  const auto at = [slice](unsigned char* place, int i, int count) noexcept -> Typed {
    return {place + i * slice, count * slice, &byte_type()};
  };
  for (int i = 0; i < size; ++i) plan.copy(in[around(me + i, size)], at(row, i, 1));
  for (int bit = 1; bit < size; bit *= 2) {
    int count = 0;
    for (int i = bit; i < size; ++i)
      if ((i & bit) != 0) plan.copy(at(row, i, 1), at(going, count++, 1));
    plan.receive(around(me - bit, size), at(coming, 0, count));
    plan.send(around(me + bit, size), at(going, 0, count));
    plan.fence();
    count = 0;
    for (int i = bit; i < size; ++i)
      if ((i & bit) != 0) plan.copy(at(coming, count++, 1), at(row, i, 1));
    if (bit > size / 2) break;
  }
  // What has come i ranks upwards is from the rank i below.
  for (int i = 0; i < size; ++i) plan.copy(at(row, i, 1), (*of.out)[around(me - i, size)]);
}

}  // namespace vmpi
