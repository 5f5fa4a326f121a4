// SPDX-License-Identifier: BSD-2-Clause
// Each rank gets the result of those before it from the one below, and tells the one above its own.
//
// Wins: two ranks, and many that share a processor: P - 1 messages.  Cost: (P - 1) (r + (n - 1) G + n c).
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void scan_linear(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  if (what.send != MPI_IN_PLACE) plan.copy(what.typed(what.send), what.typed(what.receive));
  if (plan.rank() != 0) {
    void* const incoming = plan.elements(*what.type, what.count);
    plan.receive(plan.rank() - 1, what.typed(incoming));
    plan.fence();
    plan.combine(*what.op, what.typed(incoming), what.receive);
  }
  if (plan.rank() + 1 < plan.size()) plan.send(plan.rank() + 1, what.typed(what.receive));
  plan.fence();
}

void exscan_linear(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const bool is_last = plan.rank() + 1 == plan.size();
  if (plan.rank() == 0) {
    if (!is_last) plan.send(1, what.typed(what.own()));
    return plan.fence();
  }
  // What comes takes the place of our own part when it is in place.
  void* const sum = is_last ? nullptr : plan.elements(*what.type, what.count);
  if (!is_last) plan.copy(what.typed(what.own()), what.typed(sum));
  plan.receive(plan.rank() - 1, what.typed(what.receive));
  plan.fence();
  if (is_last) return;
  plan.combine(*what.op, what.typed(what.receive), sum);
  plan.send(plan.rank() + 1, what.typed(sum));
  plan.fence();
}

}  // namespace vmpi
