// SPDX-License-Identifier: BSD-2-Clause
// Which part of which region a memory window may show, and to whom (IBTA 10.6.7, C10-72 to C10-75).
// A window is a key for itself: bound, it says where it leads and who may use it; unbound, nothing.
// Its rights need not be a part of its region's remote rights, which is what windows are for. Pure;
// any thread.
#pragma once

#include "runtime/verbs/software/key_record.hpp"

namespace verbatim {

inline constexpr unsigned kWindowRights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
                                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_GLOBAL |
                                          IBV_ACCESS_ZERO_BASED;

struct BindRequest {
  ibv_mw_type type;
  std::uint32_t window_pd;  ///< the domain that the window was allocated in
  std::uint32_t queue_pd;   ///< ... and that of the queue pair which binds it
  std::uint32_t qpn;        ///< that queue pair, which a window of type 2 is for
  std::uint64_t start;
  std::uint64_t length;
  unsigned access;
};

/// Why the window may not show that of the region, whose rights and range are `whole`; kUnseen: it
/// may, and what it shows begins `offset` behind the region's first byte.
[[nodiscard]] WindowFault judge_bind(const KeyMeaning& whole, const BindRequest& asked,
                                     std::uint64_t& offset) noexcept;

/// What the window's key means then. REQUIRES: judge_bind() said kUnseen and this offset.
[[nodiscard]] KeyMeaning meaning_of_window(const KeyMeaning& whole, const BindRequest& asked,
                                           std::uint64_t offset) noexcept;

}  // namespace verbatim
