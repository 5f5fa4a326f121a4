// SPDX-License-Identifier: BSD-2-Clause
// Slots: completion queues of rxe. Any thread.
#pragma once

#include "providers/rxe/objects.hpp"

namespace verbatim::rxe {

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept;
int resize_cq(verbatim::Cq& cq, int cqe) noexcept;
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;

/// ibv_start_poll and its companions.
void wire_cursor(Cq& cq) noexcept;

}  // namespace verbatim::rxe
