// SPDX-License-Identifier: BSD-2-Clause
// The end of an object in the kernel, the same for all kinds: a method, or a command of the older
// kind where there is none. Any thread.
#pragma once

#include "providers/uverbs/context.hpp"

namespace verbatim::uverbs {

/// The handle is free for the kernel to give away again before anybody here hears that it is, so it
/// is released first, and claimed back when the object stays.
/// `by_method` and `by_command`: 0 or errno.
template <class ByMethod, class ByCommand>
[[nodiscard]] int forget_handle(Context& context, std::uint32_t handle, ByMethod by_method,
                                ByCommand by_command) noexcept {
  context.objects.release(handle);
  int error = by_method(context.command_channel);
  if (CommandChannel::has_no_method(error)) error = by_command(context.command_channel);
  error = destroyed(error);
  // It had its place a moment ago, so this cannot fail for want of memory.
  if (error != 0) static_cast<void>(context.objects.claim(handle));
  return error;
}

/// Kinds whose end has no answer: Request is the command's structure, with the handle alone in it.
template <class Request>
[[nodiscard]] int forget_plain(Context& context, std::uint32_t handle, unsigned object,
                               unsigned method, unsigned attribute,
                               std::uint32_t command) noexcept {
  static_assert(sizeof(Request) == sizeof handle);
  return forget_handle(
      context, handle,
      [=](CommandChannel& channel) noexcept {
        kernel::IoctlCall call = channel.method(object, method);
        call.handle(attribute, handle);
        return channel.call(call);
      },
      [=](CommandChannel& channel) noexcept {
        Request request{handle};
        return channel.command(command, request);
      });
}

}  // namespace verbatim::uverbs
