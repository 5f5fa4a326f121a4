// SPDX-License-Identifier: BSD-2-Clause
// The questions of newer kernels about single mappings, in time that does not depend on what else
// the process has: PROCMAP_QUERY (Linux 6.11) and PAGEMAP_SCAN (6.7). Any thread; no allocation.
#pragma once

#include <cstdint>

#include "runtime/memory/page_census.hpp"

namespace verbatim {

struct Mapping {
  std::uint64_t begin, end;  ///< addresses
  std::uint64_t inode;       ///< of the file that is mapped; 0: none
  int protection;            ///< PROT_READ, PROT_WRITE
};

/// The mapping that has `address`: 0 or ENOENT; another errno: this kernel cannot be asked. `maps`:
/// /proc/self/maps.
[[nodiscard]] int query_mapping(int maps, std::uint64_t address, Mapping& out) noexcept;

/// False: this kernel cannot be asked. A range that is not all mapped has sizes of 0.
[[nodiscard]] bool query_mapping_sizes(std::uintptr_t from, std::uint64_t bytes,
                                       MappingSizes& sizes) noexcept;

}  // namespace verbatim
