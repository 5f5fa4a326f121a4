// SPDX-License-Identifier: BSD-2-Clause
// The queue pairs of a context by their numbers: a completion in error names the one that failed,
// and the driver has no other way to say it. Any thread, without the lock of a queue; cold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/sync/spin_lock.hpp"

namespace verbatim::siw {

struct Qp;

class QpDirectory {
 public:
  void add(Qp& qp) noexcept;
  /// REQUIRES: nobody posts to it any more.
  void remove(Qp& qp) noexcept;
  /// A completion of the queue pair told an error. A number of no queue pair is that of one that is
  /// gone.
  [[gnu::cold]] void mark_failed(std::uint32_t number) noexcept;
  /// The device is gone.
  [[gnu::cold]] void fail_all() noexcept;
  /// Whether a failed one has requests that nobody has flushed.
  [[nodiscard]] bool has_unsettled() const noexcept {
    return unsettled_.load(std::memory_order_relaxed) != 0;
  }
  /// Flushes them. What somebody is just working on is left for the next time.
  [[gnu::cold]] void settle_failed() noexcept;

  /// `failed` is set from here on; by whoever sees it first.
  static void fail(Qp& qp) noexcept;
  /// One of its rings has been flushed.
  static void settled_one(Qp& qp) noexcept;

 private:
  static constexpr std::size_t kBuckets = 64;
  [[nodiscard]] Qp*& bucket(std::uint32_t number) noexcept { return buckets_[number % kBuckets]; }

  SpinLock lock_;
  Qp* buckets_[kBuckets] = {};
  std::atomic<std::uint32_t> unsettled_{0};  ///< queue pairs
};

}  // namespace verbatim::siw
