// SPDX-License-Identifier: BSD-2-Clause
// A histogram of durations with a bounded relative error and no allocation, in the manner of HDR
// histograms: each power of two is cut into 64 equal parts, so a reported percentile is at most
// 1/64 (1.6 %) above the true sample. It is a plain structure that lives in shared memory: one end
// records, the other process reads after the block.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace verbatim::perf {

class Histogram {
 public:
  static constexpr unsigned kPartBits = 6;
  static constexpr unsigned kParts = 1u << kPartBits;
  static constexpr unsigned kMaxBits = 42;  // longer durations are counted as 2^42 - 1
  static constexpr unsigned kBuckets = (kMaxBits - kPartBits + 1) * kParts;

  void clear() noexcept { *this = Histogram{}; }

  void record(std::uint64_t value) noexcept {
    value = std::min(value, (std::uint64_t{1} << kMaxBits) - 1);
    ++counts_[bucket_of(value)];
    ++total_;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  void merge(const Histogram& other) noexcept {
    for (unsigned i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  std::uint64_t count() const noexcept { return total_; }
  std::uint64_t min() const noexcept { return total_ ? min_ : 0; }
  std::uint64_t max() const noexcept { return max_; }

  /// The least recorded level such that at least `fraction` of all samples are at or below it; 0
  /// when empty.
  std::uint64_t percentile(double fraction) const noexcept {
    if (total_ == 0) return 0;
    const double wanted = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(total_);
    std::uint64_t seen = 0;
    for (unsigned i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen != 0 && static_cast<double>(seen) >= wanted) {
        return std::clamp(upper_edge(i), min_, max_);
      }
    }
    return max_;
  }

  /// Calls `take(level, count)` for each level that has samples, ascending.
  template <class Take>
  void each(Take&& take) const {
    for (unsigned i = 0; i < kBuckets; ++i) {
      if (counts_[i] != 0) take(std::clamp(upper_edge(i), min_, max_), counts_[i]);
    }
  }

  static constexpr unsigned bucket_of(std::uint64_t value) noexcept {
    if (value < kParts) return static_cast<unsigned>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kPartBits - 1;
    return shift * kParts + static_cast<unsigned>(value >> shift);
  }

  /// The largest value that falls into bucket `index`.
  static constexpr std::uint64_t upper_edge(unsigned index) noexcept {
    if (index < 2 * kParts) return index;
    const unsigned shift = index / kParts - 1;
    return ((std::uint64_t{index % kParts} + kParts + 1) << shift) - 1;
  }

 private:
  std::uint64_t total_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
  std::uint64_t counts_[kBuckets] = {};
};

static_assert(Histogram::bucket_of((std::uint64_t{1} << Histogram::kMaxBits) - 1) ==
              Histogram::kBuckets - 1);

}  // namespace verbatim::perf
