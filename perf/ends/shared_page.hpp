// SPDX-License-Identifier: BSD-2-Clause
// The memory that both ends and the supervisor map: the lines of the hand-over floor, the meeting
// point of the two ends, the histogram of a stamped block, and the buffers of the mapped-copy
// floors. It is the measurement's own and has nothing to do with the library's segments.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "perf/ends/request.hpp"
#include "perf/support/histogram.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {

/// Two lines apart: processors fetch lines in adjacent pairs.
inline constexpr std::size_t kApart = 128;

struct SharedPage {
  // Written by one end each, polled by the other.
  alignas(kApart) std::atomic<std::uint64_t> near_line;
  alignas(kApart) std::atomic<std::uint64_t> far_line;
  alignas(kApart) std::atomic<std::uint64_t> near_meets;
  alignas(kApart) std::atomic<std::uint64_t> far_meets;
  alignas(
      kApart) Histogram stamps;  // written by the near end, read by the supervisor after its reply
  // One end's buffers, written by the other.
  alignas(4096) std::byte near_out[kAreaBytes];
  std::byte near_in[kAreaBytes];
  std::byte far_out[kAreaBytes];
  std::byte far_in[kAreaBytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A new, zero page in a memfd; throws std::system_error.
Fd create_shared_page();
SharedPage* map_shared_page(int fd);
/// The same for who may not write it.
const SharedPage* view_shared_page(int fd);

}  // namespace verbatim::perf
