// SPDX-License-Identifier: BSD-2-Clause
// Each owner of a slice (owners.hpp) reduces it within its node and between nodes, by halves or, where
// their number is no power of two, by a ring, and gives what it has of the result to the root.
//
// Wins: long data, several ranks on each of several nodes.
// Cost, of S ranks on each of N nodes, r' and G' within one, in K segments of which all parts but the longest
// are hidden: (log N + K + 1) r + n (1 + 1 / S) G + n (S - 1) / S G' + n c.
#include "mpi_shim/coll/owners.hpp"

namespace vmpi {

void reduce_owners(Plan& plan, const Operands& of) noexcept {
  OwnedReduction(plan, *of.what, of.root).add();
}

}  // namespace vmpi
