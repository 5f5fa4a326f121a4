// SPDX-License-Identifier: BSD-2-Clause
// Lines that each rank of a job would say alike: one rank of each host says them. Ranks know each other by
// the launcher's process on their host, their parent.
#pragma once

#include <cstdint>

namespace vmpi::pmpi {

enum class Line : std::uint8_t { kLibrary, kWaits };

/// Whether this process is the first of its parent's to ask, or has been: it says the line. True, too, where
/// that cannot be found out. Others do not say it as long as this one lives.
[[nodiscard, gnu::cold]] bool is_mine_to_tell(Line line) noexcept;

}  // namespace vmpi::pmpi
