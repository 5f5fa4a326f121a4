// SPDX-License-Identifier: BSD-2-Clause
// Each owner of a slice (owners.hpp) reduces it within its node and between nodes, by halves or, where
// their number is no power of two, by a ring; the owners gather, and tell their node.
//
// Wins: long data, several ranks on each of several nodes.
// Cost, of S ranks on each of N nodes, r' and G' within one, in K segments of which all parts but the longest
// are hidden: (2 log N + K + 1) r + 2 n / S (N - 1) / N G + 2 n (S - 1) / S G' + n c.
#include "mpi_shim/coll/owners.hpp"

namespace vmpi {

void allreduce_owners(Plan& plan, const Operands& of) noexcept {
  OwnedReduction(plan, *of.what, OwnedReduction::kForAll).add();
}

}  // namespace vmpi
