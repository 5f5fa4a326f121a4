// SPDX-License-Identifier: BSD-2-Clause
// The root scatters P blocks of bytes by a binomial tree, which then go round a ring. Ranks are
// counted from the root. Blocks are cut from the packed bytes, as types may differ between ranks.
//
// Wins: long data, many ranks.  Cost: (log P + P - 1) r + 2 n (P - 1) / P G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void bcast_scatter_allgather(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  if (size == 1) return;
  const int me = around(plan.rank() - of.root, size);
  const auto rank_of = [&](int relative) noexcept { return around(relative + of.root, size); };
  const std::int64_t bytes = of.own->bytes();
  const AsBytes data(plan, *of.own);
  const auto blocks = [&](int begin, int end) noexcept {
    return data.part(bytes * begin / size, bytes * end / size);
  };
  if (me == 0) data.take(plan);
  int mask = 1;
  while (mask < size && (me & mask) == 0) mask *= 2;
  if (me != 0) {
    plan.receive_some(rank_of(me - mask), blocks(me, mask < size - me ? me + mask : size));
    plan.fence();
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (me + mask >= size) continue;
    plan.send_some(rank_of(me + mask),
                   blocks(me + mask, mask < size - me - mask ? me + 2 * mask : size));
  }
  plan.fence();
  for (int i = 0; i < size - 1; ++i) {
    const int coming = around(me - i - 1, size);
    const int going = around(me - i, size);
    plan.receive_some(rank_of(around(me - 1, size)), blocks(coming, coming + 1));
    plan.send_some(rank_of(around(me + 1, size)), blocks(going, going + 1));
    plan.fence();
  }
  if (me != 0) data.give(plan);
}

}  // namespace vmpi
