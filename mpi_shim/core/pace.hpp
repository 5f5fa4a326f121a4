// SPDX-License-Identifier: BSD-2-Clause
// Whether long messages to peers of this host go faster in pieces or by the kernel's copy, which
// depends on how far apart the processors are at the time: both are timed where they happen, and
// the slower one is tried again now and then. Of all peers together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vmpi {

class Pace {
 public:
  /// What the next message would best go by, if the receiver leaves it a choice.
  [[nodiscard]] bool prefers_rdma() const noexcept {
    const bool is_faster = rdma_ != 0 && stream_ != 0 && rdma_ < stream_;
    // Several in a row, since the first finds nothing in the caches.
    const bool is_tried = rdma_ == 0 ? stream_ != 0 : messages_ % kTryEvery >= kTryEvery - kTries;
    return is_faster != is_tried;
  }
  /// Copied so many bytes, in so many ns.
  void streamed(std::uint64_t bytes, std::int64_t ns) noexcept {
    // Memory that nobody has touched yet says nothing, nor do the next rounds through it.
    untouched_ -= std::min(bytes, untouched_);
    if (untouched_ == 0) take(stream_, bytes, ns);
  }
  void written(std::uint64_t bytes, std::int64_t ns) noexcept { take(rdma_, bytes, ns); }
  void count() noexcept { ++messages_; }

 private:
  static constexpr std::uint32_t kTryEvery = 1024;
  static constexpr std::uint32_t kTries = 4;
  static constexpr std::uint64_t kLeastBytes = 32u << 10;

  /// ns for 4 MiB. A faster one counts more: nothing makes a copy faster than it is.
  static void take(std::int64_t& mean, std::uint64_t bytes, std::int64_t ns) noexcept {
    if (bytes < kLeastBytes || ns <= 0) return;
    const auto paced = static_cast<std::int64_t>(static_cast<double>(ns) * (4u << 20) /
                                                 static_cast<double>(bytes));
    mean = mean == 0      ? paced
           : paced < mean ? (mean + paced) / 2
                          : mean + (std::min(paced, 4 * mean) - mean) / 16;
  }

  std::int64_t stream_ = 0;
  std::int64_t rdma_ = 0;
  std::uint64_t untouched_ = 12u << 20;
  std::uint32_t messages_ = 0;
};

extern Pace pace;

}  // namespace vmpi
