// SPDX-License-Identifier: BSD-2-Clause
// Slots: shared receive queues of siw. Any thread.
#pragma once

#include "providers/siw/objects.hpp"

namespace verbatim::siw {

int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept;
int modify_srq(verbatim::Srq& srq, ibv_srq_attr& attr, int mask) noexcept;

}  // namespace verbatim::siw
