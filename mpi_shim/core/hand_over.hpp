// SPDX-License-Identifier: BSD-2-Clause
// How long a cache line takes from one core of this host to another, and bytes that another core has
// written: what costs_measure.cpp asks. A line goes to a thread of ours and back, which runs on the other
// core.
#pragma once

namespace vmpi {

/// Processors, by the kernel's numbers, some of which may be forbidden to this process: the first one on
/// which the kernel lets a thread run will do.
struct Candidates {
  static constexpr int kMost = 8;
  int cpus[kMost];
  int count = 0;

  [[nodiscard]] bool empty() const noexcept { return count == 0; }
  void add(int cpu) noexcept {
    if (count < kMost) cpus[count++] = cpu;
  }
};

/// Of the calling thread's core: other cores of its L3 cache, and cores of another one. A host that tells
/// nothing of its caches has only near ones; where a core has no neighbour but its own second thread, that
/// is near. Those that the thread may run on come first, then any of the host, as a rank that is bound to
/// one core has ranks on others beside it.
struct Partners {
  Candidates near;
  Candidates far;
};
[[nodiscard]] Partners find_partners() noexcept;

/// 0: not known.
struct HandOver {
  bool is_begun = false;  ///< there is such a core, and the kernel lets a thread run on it
  double latency_ns = 0;  ///< a line, one way
  double fetch_ns = 0;    ///< a byte, from where the other core has just put it
  double put_ns = 0;      ///< a byte, to where the other core has had it
};
/// Takes about a millisecond, three where the other core is busy, and does not wait for a thread that the
/// kernel never lets run: that one ends by itself when it does.
[[nodiscard]] HandOver measure_hand_over(const Candidates& to) noexcept;

}  // namespace vmpi
