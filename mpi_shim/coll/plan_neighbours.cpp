// SPDX-License-Identifier: BSD-2-Clause
// A message for each edge. Between two ranks they match in the order of the edges; but along a
// dimension of a grid what was sent downwards first is what comes from above.
#include "mpi_shim/coll/plans_between.hpp"

namespace vmpi {

void plan_neighbours(Plan& plan, const Neighbours& neighbours, const Typed* own, const Slices* in,
                     const Slices& out) noexcept {
  const int sources = static_cast<int>(neighbours.sources.size());
  const int destinations = static_cast<int>(neighbours.destinations.size());
  for (int i = 0; i < sources; ++i) {
    const int slice = neighbours.are_pairs ? i ^ 1 : i;
    plan.receive(neighbours.sources[static_cast<std::size_t>(slice)], out[slice]);
  }
  for (int i = 0; i < destinations; ++i)
    plan.send(neighbours.destinations[static_cast<std::size_t>(i)],
              own != nullptr ? *own : (*in)[i]);
}

}  // namespace vmpi
