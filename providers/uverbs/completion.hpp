// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and queues in the kernel. The channel's functions are slots; a provider makes
// its own queue objects, and their half in the kernel here. Any thread.
#pragma once

#include "providers/uverbs/context.hpp"

namespace verbatim::uverbs {

struct Cq : verbatim::Cq {
  std::uint64_t number = 0;  ///< in Context::objects
};

int create_comp_channel(verbatim::Context& context, CompChannel** out) noexcept;
int destroy_comp_channel(CompChannel& channel) noexcept;
int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept;

/// Fills handle, cqe and number. 0 or errno, and then there is nothing to undo.
[[nodiscard]] int create_cq(Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
                            Cq& cq, const kernel::DriverData& driver) noexcept;
/// plain.cqe becomes what the kernel made of it.
[[nodiscard]] int resize_cq(Cq& cq, int cqe, const kernel::DriverData& driver) noexcept;
/// Returns when no event can name the queue any more and all that did are acknowledged.
[[nodiscard]] int destroy_cq(Cq& cq) noexcept;
/// The command that arms; what a driver with a flag in shared memory does not need.
[[nodiscard]] int req_notify_cq(Cq& cq, bool solicited_only) noexcept;

}  // namespace verbatim::uverbs
