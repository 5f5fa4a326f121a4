// SPDX-License-Identifier: BSD-2-Clause
// How long a request of a reliable connection waits before that becomes an error: what the codes of
// the RNR timer and of the timeout mean, and how often they are tried. Pure arithmetic, any thread;
// the clock that the spans are held against is the provider's (runtime/time/wait_clock.hpp for one
// whose peers are processes). Spec: IBTA 9.7.5.2.8 and table 45 (RNR), 9.7.6.1.3 (timeouts).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

/// A span that does not end.
inline constexpr std::uint64_t kForEver = ~std::uint64_t{0};

/// What a code of min_rnr_timer means. Its low five bits count, as in the AETH.
[[nodiscard]] std::uint64_t rnr_timer_ns(std::uint32_t code) noexcept;

/// How long a message waits for a receive of its peer. rnr_retry 7 is for ever, 0 not at all.
[[nodiscard]] constexpr std::uint64_t rnr_span_ns(std::uint32_t rnr_retry,
                                                  std::uint64_t timer_ns) noexcept {
  constexpr std::uint32_t kWithoutEnd = 7;
  return rnr_retry == kWithoutEnd ? kForEver : rnr_retry * timer_ns;
}

/// What a code of the attribute `timeout` means: 4.096 us x 2^code, and 0 is for ever.
[[nodiscard]] constexpr std::uint64_t ack_timeout_ns(std::uint32_t code) noexcept {
  return code == 0 ? kForEver : std::uint64_t{4096} << (code & 31);
}

/// How long an answer may take in all: the first try, and retry_cnt more.
[[nodiscard]] constexpr std::uint64_t ack_span_ns(std::uint32_t timeout,
                                                  std::uint32_t retry_cnt) noexcept {
  const std::uint64_t once = ack_timeout_ns(timeout);
  return once == kForEver ? kForEver : once * (retry_cnt + 1);
}

/// Is the requester's own side to blame for it, whatever the peer does?
[[nodiscard]] constexpr bool is_local_error(ibv_wc_status status) noexcept {
  return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR ||
         status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_MW_BIND_ERR;
}

}  // namespace verbatim
