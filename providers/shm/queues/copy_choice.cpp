// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/copy_choice.hpp"

#include <algorithm>

namespace verbatim::shm {

/// Clearly: the receiver finds what came through the stream ring in its own cache.
bool CopyChoice::kernel_is_faster() const noexcept {
  return kernel_ns_ != 0 && kernel_ns_ < stream_ns_ - stream_ns_ / 8;
}

std::uint64_t CopyChoice::bytes_by_kernel(std::uint64_t length) noexcept {
  const bool by_kernel = kernel_is_faster();
  if (until_look_ > kLook) {
    --until_look_;
    return by_kernel ? length : 0;
  }
  if (until_look_ == kLook) {
    looks_at_kernel_ = !by_kernel;
    (looks_at_kernel_ ? kernel_ns_ : stream_ns_) = 0;
  }
  const std::uint32_t slower = std::max(stream_ns_, kernel_ns_);
  const std::uint32_t faster = std::max(std::min(stream_ns_, kernel_ns_), 1u);
  const bool is_hopeless =
      until_look_ == kLook / 2 && (looks_at_kernel_ ? kernel_ns_ : stream_ns_) / 2 > faster;
  if (--until_look_ == 0 || is_hopeless)
    until_look_ = kLookEvery * std::clamp(slower / faster, 1u, kMostTimes);
  const std::uint64_t some = std::min(length, kSample);
  return looks_at_kernel_ ? some : length - some;
}

void CopyChoice::note(std::uint32_t& known, std::uint64_t bytes, std::uint64_t ns) noexcept {
  const std::uint64_t most = known != 0 ? known + known / 16 + 1 : 1'000'000;
  known = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(ns * kSample / bytes, 1, most));
}

}  // namespace verbatim::shm
