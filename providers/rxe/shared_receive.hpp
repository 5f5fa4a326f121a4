// SPDX-License-Identifier: BSD-2-Clause
// Slots: shared receive queues and address handles of rxe. Any thread.
#pragma once

#include "providers/rxe/objects.hpp"

namespace verbatim::rxe {

int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept;
int modify_srq(verbatim::Srq& srq, ibv_srq_attr& attr, int mask) noexcept;

int create_ah(Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept;
int destroy_ah(verbatim::Ah& ah) noexcept;

}  // namespace verbatim::rxe
