// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_create_qp: what is asked held against what there is.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

// The plug's slot.
int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept;

}  // namespace verbatim::shm
