// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and completion queues: control verbs. Polling goes past the runtime, straight
// to the provider. Any thread.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

Result<CompChannel*> create_comp_channel(Context& context) noexcept;
/// EBUSY while CQs use it.
Status destroy_comp_channel(CompChannel& channel) noexcept;
/// Blocks unless the channel's descriptor is O_NONBLOCK (EAGAIN).
Result<Cq*> get_cq_event(CompChannel& channel) noexcept;

/// `extended`: asked through ibv_create_cq_ex, so ibv_start_poll must work on it.
Result<Cq*> create_cq(Context& context, const ibv_cq_init_attr_ex& attr, bool extended) noexcept;
Status resize_cq(Cq& cq, int cqe) noexcept;
Status modify_cq(Cq& cq, const ibv_modify_cq_attr& attr) noexcept;
/// Waits until all delivered events are acknowledged.
Status destroy_cq(Cq& cq) noexcept;

}  // namespace verbatim
