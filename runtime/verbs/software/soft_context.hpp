// SPDX-License-Identifier: BSD-2-Clause
// How the context of a provider in software is opened and closed, and tells of its asynchronous
// events. Control code, any thread. Spec: man ibv_open_device, ibv_get_async_event.
#pragma once

#include <cerrno>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim {

/// The three slots of a device, for a provider to inherit or to begin with. Opened: its context,
/// with a member `SoftEvents events`.
template <class Opened>
struct SoftContextVerbs {
  static int open(Device& device, Context** out) noexcept {
    auto* const context = make_nothrow<Opened>(device);
    if (context == nullptr) return ENOMEM;
    if (const int error = context->events.open()) {
      destroy_nothrow(context);
      return error;
    }
    context->extended.context.async_fd = context->events.fd();
    *out = context;
    return 0;
  }
  static void close(Context& context) noexcept { destroy_nothrow(static_cast<Opened*>(&context)); }
  static int get_async_event(Context& context, ibv_async_event& event) noexcept {
    return static_cast<Opened&>(context).events.get(event);
  }
};

}  // namespace verbatim
