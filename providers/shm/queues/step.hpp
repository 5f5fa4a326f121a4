// SPDX-License-Identifier: BSD-2-Clause
//
// How one look at the head of a send queue ended.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "providers/shm/queues/pending_send.hpp"

namespace verbatim::shm {

/// For Step::tell: the responder ends too, and one of its receives says why.
inline constexpr std::uint32_t kToldInReceive = ~0u;

/// How one step at the head of the queue ended.
struct Step {
  enum class Kind : std::uint8_t { kDone, kWait, kFail } kind;
  Wait wait = Wait::kNothing;
  ibv_wc_status status = IBV_WC_SUCCESS;
  /// For kFail: what the responder must be told, an ibv_event_type or kToldInReceive; or 0.
  std::uint32_t tell = 0;

  static Step done() noexcept { return {Kind::kDone}; }
  static Step waits(Wait for_what) noexcept { return {Kind::kWait, for_what}; }
  static Step fails(ibv_wc_status status, std::uint32_t tell = 0) noexcept {
    return {Kind::kFail, Wait::kNothing, status, tell};
  }
};

}  // namespace verbatim::shm
