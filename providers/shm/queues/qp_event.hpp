// SPDX-License-Identifier: BSD-2-Clause
//
// Asynchronous events of queue pairs.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Raises an asynchronous event for the QP.
void raise_qp_event(Qp& qp, ibv_event_type type) noexcept;

}  // namespace verbatim::shm
