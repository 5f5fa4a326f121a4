// SPDX-License-Identifier: BSD-2-Clause
//
// How completion queues come to be, get another size, and go.
#pragma once

#include "providers/shm/queues/cq.hpp"

namespace verbatim::shm {

// The plug's slots.
int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr,
              verbatim::CompChannel* channel, verbatim::Cq** out) noexcept;
int destroy_cq(verbatim::Cq& cq) noexcept;
/// The end of one that no program has: nobody finds it any more; then its memory.
void hide_cq(Cq& cq) noexcept;
void free_cq(Cq& cq) noexcept;
int resize_cq(verbatim::Cq& cq, int cqe) noexcept;

}  // namespace verbatim::shm
