// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/window_rules.hpp"

namespace verbatim {

WindowFault judge_bind(const KeyMeaning& whole, const BindRequest& asked,
                       std::uint64_t& offset) noexcept {
  constexpr unsigned kWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((asked.access & ~kWindowRights) != 0) return WindowFault::kRights;
  if ((asked.access & IBV_ACCESS_ZERO_BASED) != 0 && asked.type != IBV_MW_TYPE_2)
    return WindowFault::kBasedAtZero;
  if (whole.pd != asked.window_pd || asked.queue_pd != asked.window_pd) return WindowFault::kDomain;
  if ((whole.access & IBV_ACCESS_MW_BIND) == 0) return WindowFault::kUnbindable;
  if ((whole.access & IBV_ACCESS_ZERO_BASED) != 0) return WindowFault::kBasedRegion;
  if ((asked.access & kWriters) != 0 && (whole.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return WindowFault::kUnwritable;
  return whole.contains(asked.start, asked.length, offset) ? WindowFault::kUnseen
                                                           : WindowFault::kBounds;
}

KeyMeaning meaning_of_window(const KeyMeaning& whole, const BindRequest& asked,
                             std::uint64_t offset) noexcept {
  KeyMeaning shown{};
  shown.iova = (asked.access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : asked.start;
  shown.length = asked.length;
  shown.address = whole.address + offset;
  shown.access = asked.access & ~unsigned{IBV_ACCESS_ZERO_BASED};
  shown.pd = asked.type == IBV_MW_TYPE_2 ? holder::kWindowOfQp | asked.qpn
                                         : holder::kWindowOfPd | asked.window_pd;
  return shown;
}

}  // namespace verbatim
