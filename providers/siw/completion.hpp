// SPDX-License-Identifier: BSD-2-Clause
// Slots: completion queues of siw. Any thread.
#pragma once

#include "providers/siw/objects.hpp"

namespace verbatim::siw {

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept;

/// ibv_start_poll and its companions.
void wire_cursor(Cq& cq) noexcept;

}  // namespace verbatim::siw
