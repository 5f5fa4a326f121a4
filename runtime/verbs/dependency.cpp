// SPDX-License-Identifier: BSD-2-Clause
// The words of refusals.
#include "runtime/verbs/dependency.hpp"

#include <cerrno>

#include "runtime/base/log.hpp"

namespace verbatim {

Error refuse(int code, const char* verb, const char* why) noexcept {
  log_error("%s: %s", verb, why);
  return Error{code, why};
}

Error refuse_busy(const char* verb, std::uint32_t count, const char* children) noexcept {
  log_error("%s: still used (%u: %s); destroy those first", verb, count, children);
  return Error{EBUSY, "still in use"};
}

void report_unsupported(const char* provider, const char* verb, std::atomic<bool>& said) noexcept {
  if (!said.exchange(true, std::memory_order_relaxed)) {
    log_warn("%s: %s is not supported by this provider (EOPNOTSUPP)", provider, verb);
  }
}

void report_strange_ece(const char* provider, const ibv_ece& asked,
                        std::atomic<bool>& said) noexcept {
  if (!said.exchange(true, std::memory_order_relaxed)) {
    log_error(
        "%s: set_ece: vendor 0x%06x, options 0x%x, comp_mask 0x%x: this device has no enhanced "
        "connection options, zeros are all that can be set (EOPNOTSUPP)",
        provider, asked.vendor_id, asked.options, asked.comp_mask);
  }
}

}  // namespace verbatim
