// SPDX-License-Identifier: BSD-2-Clause
// From what a collective is called with to its plan.
#pragma once

#include "mpi_shim/coll/select.hpp"

namespace vmpi {

/// The one that is selected; null: there is nothing to do, at all ranks.
[[nodiscard]] Algorithm* algorithm_for(const Plan& plan, Collective which,
                                       const Operands& of) noexcept;
/// By the algorithm that is selected. A plan without memory is not good.
void make_plan(Plan& plan, Collective which, const Operands& of) noexcept;

}  // namespace vmpi
