// SPDX-License-Identifier: BSD-2-Clause
// In round i each rank gives the one i above its part of that rank's slice, and adds what the rank i
// below gives.
//
// Wins: long slices.  Cost: (P - 1) r + n (P - 1) / P (G + c), n of all slices.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void reduce_scatter_pairwise(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const int me = plan.rank();
  Array<std::int64_t> offsets;
  if (!offsets.resize(static_cast<std::size_t>(size) + 1)) return plan.fail();
  for (int i = 0; i < size; ++i)
    offsets[static_cast<std::size_t>(i) + 1] = offsets[static_cast<std::size_t>(i)] + of.counts[i];
  const auto slice = [&](int rank) noexcept {
    return what.part(what.own(), offsets[static_cast<std::size_t>(rank)],
                     offsets[static_cast<std::size_t>(rank) + 1]);
  };
  const Typed own = slice(me);
  const bool is_in_place = what.send == MPI_IN_PLACE;
  // In place the result's place holds what others are still to be given.
  const Typed result = {is_in_place ? plan.elements(*what.type, own.count) : what.receive,
                        own.count, what.type};
  const Typed incoming = {plan.elements(*what.type, own.count), own.count, what.type};
  plan.copy(own, result);
  for (int i = 1; i < size; ++i) {
    const int to = around(me + i, size);
    plan.receive_some(around(me - i, size), incoming);
    plan.send_some(to, slice(to));
    plan.fence();
    if (own.count != 0) plan.combine(*what.op, incoming, result.buffer);
  }
  if (is_in_place) plan.copy(result, {what.receive, own.count, what.type});
}

}  // namespace vmpi
