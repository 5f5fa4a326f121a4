// SPDX-License-Identifier: BSD-2-Clause
//
// A process's segment as a stranger sees it who has it mapped: to read in.
#pragma once

#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::hostile {

struct VictimView {
  const unsigned char* segment;
  std::uint64_t bytes;

  const shm::SegmentHeader& head() const {
    return *reinterpret_cast<const shm::SegmentHeader*>(segment);
  }
  /// By number of the table; nullptr behind its end.
  const shm::QpRecord* record(std::uint32_t index) const {
    return index < head().qp_capacity
               ? reinterpret_cast<const shm::QpRecord*>(segment + head().qp_table) + index
               : nullptr;
  }
};

}  // namespace verbatim::hostile
