// SPDX-License-Identifier: BSD-2-Clause
// One look at a completion queue by a measuring loop. Main thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbatim::cli {

class PerfExchange;

/// Names the status, and the option that is wrong on one of the ends; throws Failure, or of an
/// endless test PeerHasLeft.
[[noreturn]] void fail_completion(const ibv_wc& wc, const char* of, const PerfExchange& peer);
[[noreturn]] void fail_length(std::uint32_t came, std::uint32_t expected);

/// How many completions were there, all of them good. `of` is "send" or "receive".
inline std::size_t look(ibv_cq* cq, std::span<ibv_wc> found, const char* of,
                        const PerfExchange& peer) {
  const int count = ibv_poll_cq(cq, static_cast<int>(found.size()), found.data());
  if (count < 0) [[unlikely]] {
    ibv_wc none = {};
    none.status = IBV_WC_GENERAL_ERR;
    fail_completion(none, of, peer);
  }
  for (const ibv_wc& wc : found.first(static_cast<std::size_t>(count))) {
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]]
      fail_completion(wc, of, peer);
  }
  return static_cast<std::size_t>(count);
}

}  // namespace verbatim::cli
