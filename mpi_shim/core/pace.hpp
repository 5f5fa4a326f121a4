// SPDX-License-Identifier: BSD-2-Clause
// Whether long messages to peers of this host go faster in pieces or by the kernel's copy, which
// depends on their size and on how far apart the processors are at the time: both are timed where
// they happen, and the slower one is tried again now and then. Of all peers together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace vmpi {

class Pace {
 public:
  /// What the next message would best go by, if the receiver leaves it a choice.
  [[nodiscard]] bool prefers_rdma(std::uint64_t bytes) const noexcept {
    const Sized& known = sized_[index_of(bytes)];
    const bool is_faster = known.rdma != 0 && known.stream != 0 && known.rdma < known.stream;
    // Several in a row, since the first finds nothing in the caches.
    const bool is_tried = known.messages - known.next_try < kTries;
    return is_faster != is_tried;
  }
  /// Copied so many bytes, in so many ns, of which the receiver has not taken the last ones.
  void streamed(std::uint64_t bytes, std::uint64_t left, std::int64_t ns) noexcept {
    // Memory that nobody has touched yet says nothing, nor do the next rounds through it.
    untouched_ -= std::min(bytes, untouched_);
    // One who takes nothing is not there: that is no pace.
    if (untouched_ == 0)
      take(sized_[index_of(bytes)].stream, std::max(bytes - std::min(left, bytes), bytes / 4), ns);
  }
  void written(std::uint64_t bytes, std::int64_t ns) noexcept {
    take(sized_[index_of(bytes)].rdma, bytes, ns);
  }
  /// One has gone that had the choice.
  void count(std::uint64_t bytes) noexcept {
    Sized& known = sized_[index_of(bytes)];
    // Soon again at first: what was tried may have been disturbed.
    if (known.stream != 0 && ++known.messages == known.next_try + kTries)
      known.next_try += std::min(3 * known.next_try, kTryEvery);
  }

 private:
  static constexpr std::uint32_t kTryEvery = 1024;
  static constexpr std::uint32_t kTries = 4;
  static constexpr std::uint32_t kSizes = 11;

  /// ns for 4 MiB of messages of one size: what is in the caches of one is not in those of another.
  struct Sized {
    std::int64_t stream = 0;
    std::int64_t rdma = 0;
    std::uint32_t messages = 0;  ///< since it is known how fast streams are
    std::uint32_t next_try = kTries;
  };

  /// By powers of two, from 8 KiB to 4 MiB and beyond.
  static std::uint32_t index_of(std::uint64_t bytes) noexcept {
    return std::min(static_cast<std::uint32_t>(std::bit_width(bytes >> 13)), kSizes - 1);
  }
  /// A faster one counts more: nothing makes a copy faster than it is.
  static void take(std::int64_t& mean, std::uint64_t bytes, std::int64_t ns) noexcept {
    if (bytes == 0 || ns <= 0) return;
    const auto paced = static_cast<std::int64_t>(static_cast<double>(ns) * (4u << 20) /
                                                 static_cast<double>(bytes));
    mean = mean == 0      ? paced
           : paced < mean ? (mean + paced) / 2
                          : mean + (std::min(paced, 4 * mean) - mean) / 16;
  }

  Sized sized_[kSizes];
  std::uint64_t untouched_ = 12u << 20;
};

extern Pace pace;

}  // namespace vmpi
