// SPDX-License-Identifier: BSD-2-Clause
// Dissemination: in round k each rank tells the one 2^k above it and hears from the one 2^k below;
// after log P rounds it has heard of all.
//
// Wins: always, where each rank has a processor.  Cost: log P r; P log P messages.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void barrier_dissemination(Plan& plan, const Operands&) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  const int size = plan.size();
  for (int distance = 1; distance < size; distance *= 2) {
    plan.receive(around(plan.rank() - distance, size), nothing);
    plan.send(around(plan.rank() + distance, size), nothing);
    plan.fence();
    if (distance > size / 2) break;  // doubling further may overflow
  }
}

}  // namespace vmpi
