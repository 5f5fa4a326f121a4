// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_create_srq_ex and ibv_destroy_srq.
#pragma once

#include "providers/shm/queues/shared_receive.hpp"

namespace verbatim::shm {

// The plug's slots.
int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept;
int destroy_srq(verbatim::Srq& srq) noexcept;

}  // namespace verbatim::shm
