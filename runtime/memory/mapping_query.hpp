// SPDX-License-Identifier: BSD-2-Clause
// The questions of newer kernels about single mappings, in time that does not depend on what else
// the process has: PROCMAP_QUERY (Linux 6.11) and PAGEMAP_SCAN (6.7). Any thread; no allocation.
#pragma once

#include <cstdint>

#include "runtime/memory/page_census.hpp"

namespace verbatim {

/// False: this kernel cannot be asked. A range that is not all mapped has sizes of 0.
[[nodiscard]] bool query_mapping_sizes(std::uintptr_t from, std::uint64_t bytes,
                                       MappingSizes& sizes) noexcept;

}  // namespace verbatim
