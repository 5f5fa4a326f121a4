// SPDX-License-Identifier: BSD-2-Clause
// Slices go round a ring, from where they belong to where they belong.
//
// Wins: long slices.  Cost: (P - 1) (r + n G).
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void allgather_ring(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Slices& out = *of.out;
  if (!of.own->is_in_place()) plan.copy(*of.own, out[me]);
  for (int i = 0; i < size - 1; ++i) {
    plan.receive_some(around(me - 1, size), out[around(me - i - 1, size)]);
    plan.send_some(around(me + 1, size), out[around(me - i, size)]);
    plan.fence();
  }
}

}  // namespace vmpi
