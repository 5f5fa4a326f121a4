// SPDX-License-Identifier: BSD-2-Clause
// Many memory regions of one domain, and WRITEs to and from a few of them: does finding a region
// cost more among many? Those used lie evenly among all.
#pragma once

#include <array>
#include <vector>

#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {

class ManyRegions {
 public:
  static constexpr std::uint32_t kUsed = 64;
  static constexpr std::uint32_t kBytes = 64;  // of each region

  /// Registers `count` (at least kUsed, at most kAreaBytes / kBytes) pieces of this end's memory.
  ManyRegions(End& end, std::uint32_t count);

  /// One WRITE of 8 bytes after the other, each between regions of its own.
  void write(End& end, std::uint64_t iterations, Reply& reply);

 private:
  struct Used {
    std::uint64_t address;
    std::uint32_t lkey;
    std::uint32_t rkey;
  };

  std::vector<MrHandle> regions_;
  std::array<Used, kUsed> own_{};
  std::array<Used, kUsed> theirs_{};
};

}  // namespace verbatim::perf
