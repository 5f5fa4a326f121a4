// SPDX-License-Identifier: BSD-2-Clause
// A device that goes while a program has it open. The kernel then answers EIO to everything, says
// DEVICE_FATAL, and ends whoever waits for events; its driver completes nothing any more. What it
// left in the queues each provider flushes when a queue is polled. Any thread; nothing here is on
// the data path.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "providers/uverbs/context.hpp"

namespace verbatim::uverbs {

[[gnu::cold, gnu::noinline, nodiscard]] bool ask_whether_gone(Context& context) noexcept;

/// Asks a device of which that is in doubt, and says so once. A driver may fail a request with EIO,
/// and a device that had a fatal error may be there still: only one that has nothing to say of
/// itself is gone, and that for good. System calls; may be called under a lock of the data path.
[[nodiscard]] inline bool has_gone(Context& context) noexcept {
  return context.command_channel.presence() != Presence::kHere && ask_whether_gone(context);
}

/// Whether an answer of the kernel's means that the device has gone. Asks, whatever is in doubt:
/// who asked for another reason a moment ago has forgotten the doubt, and has heard nothing yet.
[[gnu::cold, nodiscard]] inline bool is_of_the_gone(Context& context, int error) noexcept {
  return error == EIO && ask_whether_gone(context);
}

/// The completion of a request that nobody will work on.
[[gnu::cold]] inline void write_flushed(ibv_wc& to, std::uint64_t wr_id, std::uint32_t qp_num,
                                        ibv_wc_opcode opcode) noexcept {
  to = {};
  to.wr_id = wr_id;
  to.status = IBV_WC_WR_FLUSH_ERR;
  to.opcode = opcode;
  to.qp_num = qp_num;
}

}  // namespace verbatim::uverbs
