// SPDX-License-Identifier: BSD-2-Clause
// The words of refusals.
#include "runtime/verbs/dependency.hpp"

#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"

namespace verbatim {
namespace {

/// Why a device does not have a verb, by a word of its name. "" where the verb itself says it.
const char* lack_behind(const char* verb) noexcept {
  static constexpr struct {
    const char* word;
    const char* lack;
  } kLacks[] = {
      {"flow", ": it steers no packets"},
      {"wq", ": it has no work queues to spread packets over"},
      {"counters", ": it keeps no counters for programs"},
      {"comp_cntr", ": it counts no completions"},
      {"rate_limit", ": it sends at no rate that could be set"},
      {"srq_ops", ": it matches no tags"},
      {"dmah", ": it takes no hints about caches"},
      {"alloc_user_buf", ": its queues are in memory of its own"},
      {"dm_export", ": its memory is no device's that others could map"},
  };
  for (const auto& each : kLacks)
    if (std::strstr(verb, each.word) != nullptr) return each.lack;
  return "";
}

}  // namespace

Error refuse(int code, const char* verb, const char* why) noexcept {
  log_refusal_of(why, "%s: %s", verb, why);
  return Error{code, why};
}

Error refuse_busy(const char* verb, std::uint32_t count, const char* children) noexcept {
  log_refusal_of(verb, "%s: still used (%u: %s); destroy those first", verb, count, children);
  return Error{EBUSY, "still in use"};
}

void report_unsupported(const char* provider, const char* verb, std::atomic<bool>& said) noexcept {
  if (!said.exchange(true, std::memory_order_relaxed)) {
    log_refusal_of(&said, "%s: %s is not supported by this provider (EOPNOTSUPP)%s", provider, verb,
                   lack_behind(verb));
  }
}

void report_strange_ece(const char* provider, const ibv_ece& asked,
                        std::atomic<bool>& said) noexcept {
  if (!said.exchange(true, std::memory_order_relaxed)) {
    log_refusal_of(
        &said,
        "%s: set_ece: vendor 0x%06x, options 0x%x, comp_mask 0x%x: this device has no enhanced "
        "connection options, zeros are all that can be set (EOPNOTSUPP)",
        provider, asked.vendor_id, asked.options, asked.comp_mask);
  }
}

}  // namespace verbatim
