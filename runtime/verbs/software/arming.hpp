// SPDX-License-Identifier: BSD-2-Clause
// What a completion queue is armed for, and which completions make its event. Who keeps the word
// and under which lock, and what disarms it, is the provider's. Pure; any thread. Spec: IBTA
// 11.4.2.2; man ibv_req_notify_cq.
#pragma once

#include <cstdint>

namespace verbatim::armed {

/// The kinds. A caller whose word holds more than one of them masks it before it asks here.
inline constexpr std::uint32_t kForNothing = 0, kForAll = 1, kForSolicited = 2;

/// What a queue that is armed for `now` is armed for when it is asked again. Once armed for all it
/// stays so: solicited completions alone would be less.
[[nodiscard]] constexpr std::uint32_t again(std::uint32_t now, bool solicited_only) noexcept {
  return solicited_only && now != kForAll ? kForSolicited : kForAll;
}

/// Does a completion make the event of a queue that is armed for this? `is_solicited`: its sender
/// asked for that, or it is an error, which is what every event is for.
[[nodiscard]] constexpr bool is_met(std::uint32_t armed, bool is_solicited) noexcept {
  return armed == kForAll || (armed == kForSolicited && is_solicited);
}

}  // namespace verbatim::armed
