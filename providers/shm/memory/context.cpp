// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/context.hpp"

#include "runtime/base/log.hpp"

namespace verbatim::shm {

void tell_if_inherited(Context& context, const char* verb) noexcept {
  if (!context.is_inherited) return;
  if (context.inheritance_told.exchange(true, std::memory_order_relaxed)) return;
  log_error(
      "ibv_%s: %s was opened before fork(): it and what was made of it are the parent's; in the "
      "child, open the device again and make others",
      verb, context.device.plain.name);
}

bool is_inherited(ibv_context& handle, const char* verb) noexcept {
  Context& context = Context::of(&handle);
  if (!context.is_inherited) [[likely]]
    return false;
  tell_if_inherited(context, verb);
  return true;
}

}  // namespace verbatim::shm
