// SPDX-License-Identifier: BSD-2-Clause
// Slots: queue pairs of rxe. Any thread.
#pragma once

#include "providers/rxe/objects.hpp"

namespace verbatim::rxe {

int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept;
int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
int destroy_qp(verbatim::Qp& qp) noexcept;

}  // namespace verbatim::rxe
