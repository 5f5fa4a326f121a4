// SPDX-License-Identifier: BSD-2-Clause
// Each rank keeps what its block of 2^k neighbours gives (`block`) beside its own result. In round k
// it exchanges the block with the rank whose bit k differs; what comes from below goes before both.
//
// Wins: three ranks and more.  Cost: log P (r + (n - 1) G + 2 n c).
#include <utility>

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {
namespace {

/// `has_result`: `receive` holds our own part already, as MPI_Scan has it.
void prefixes(Plan& plan, const Reduced& what, const void* own, bool has_result) noexcept {
  const int size = plan.size();
  if (size == 1) return;
  void* block = plan.elements(*what.type, what.count);
  void* incoming = plan.elements(*what.type, what.count);
  plan.copy(what.typed(own), what.typed(block));
  for (int mask = 1; mask < size; mask *= 2) {
    const int peer = plan.rank() ^ mask;
    if (peer < size) {
      plan.receive(peer, what.typed(incoming));
      plan.send(peer, what.typed(block));
      plan.fence();
      if (peer > plan.rank()) {
        plan.combine(*what.op, what.typed(block), incoming);
        std::swap(block, incoming);
      } else {
        if (has_result)
          plan.combine(*what.op, what.typed(incoming), what.receive);
        else
          plan.copy(what.typed(incoming), what.typed(what.receive));
        has_result = true;
        plan.combine(*what.op, what.typed(incoming), block);
      }
    }
    if (mask > size / 2) break;
  }
}

}  // namespace

void scan_recursive_doubling(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  if (what.send != MPI_IN_PLACE) plan.copy(what.typed(what.send), what.typed(what.receive));
  prefixes(plan, what, what.receive, true);
}

void exscan_recursive_doubling(Plan& plan, const Operands& of) noexcept {
  prefixes(plan, *of.what, of.what->own(), false);
}

}  // namespace vmpi
