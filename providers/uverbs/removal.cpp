// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/removal.hpp"

#include <cerrno>

#include "runtime/base/log.hpp"

namespace verbatim::uverbs {

bool ask_whether_gone(Context& context) noexcept {
  CommandChannel& channel = context.command_channel;
  if (channel.presence() == Presence::kGone) return true;
  channel.forget_doubt();
  ibv_device_attr_ex attr{};
  const int error = query_device(context, attr);
  if (error != EIO) {
    // No answer of either kind, and one may come: it is asked again.
    if (error == ENOMEM || error == EAGAIN || error == EINTR) channel.doubt();
    return false;
  }
  if (channel.declare_gone())
    log_warn("%s: the device has gone: what was posted is flushed, and can be destroyed",
             context.device.plain.name);
  return true;
}

}  // namespace verbatim::uverbs
