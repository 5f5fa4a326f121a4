// SPDX-License-Identifier: BSD-2-Clause
// How much of a nonblocking collective a computation hides. Any thread; pure.
#pragma once

#include <algorithm>

namespace verbatim::cli {

/// A part of the lesser of the two, from 0 to 1: what both take at once less than one after the
/// other.
[[nodiscard]] inline double overlap_of(double pure, double compute, double overall) {
  const double lesser = std::min(pure, compute);
  if (!(lesser > 0)) return 0;
  return std::clamp((pure + compute - overall) / lesser, 0.0, 1.0);
}

}  // namespace verbatim::cli
