// SPDX-License-Identifier: BSD-2-Clause
// Neighbouring ranks make pairs. Each exchanges in turn with its neighbour above and the one below:
// first its own slice, then the two slices of the pair that it has heard of last.
//
// Wins: long slices, an even number of ranks: half the rounds of a ring, and each rank talks to two.
// Cost: P / 2 r + (P - 1) n G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void allgather_neighbour_exchange(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Slices& out = *of.out;
  if (!of.own->is_in_place()) plan.copy(*of.own, out[me]);
  if (size == 1) return;
  const int step = me % 2 == 0 ? 1 : -1;
  const int partner = me + step;
  const int other = around(me - step, size);
  plan.receive_some(partner, out[partner]);
  plan.send_some(partner, out[me]);
  plan.fence();
  // The first rank of the pair that is sent next, and of the last one that came by each neighbour.
  const int own_pair = me - me % 2;
  int going = own_pair;
  int came[2] = {own_pair, own_pair};
  for (int i = 1; i < size / 2; ++i) {
    const bool is_other = i % 2 == 1;
    const int peer = is_other ? other : partner;
    int& coming = came[is_other ? 1 : 0];
    coming = around(coming + (is_other ? -2 : 2) * step, size);
    for (int k = 0; k < 2; ++k) plan.receive_some(peer, out[coming + k]);
    for (int k = 0; k < 2; ++k) plan.send_some(peer, out[going + k]);
    plan.fence();
    going = coming;
  }
}

}  // namespace vmpi
