// SPDX-License-Identifier: BSD-2-Clause
//
// Can the system spare this much memory? Asked before files in memory grow, because there the
// kernel's own answer to "no" is to kill somebody: fallocate() in a memory cgroup at its limit, or
// on a machine without free memory, wakes the OOM killer instead of failing.
//
// A reading, not a reservation: another process may take the memory between the answer and its use.
// Any thread; reads a few small files of /proc and /sys, about 50 us, so ask for a MiB or more at a
// time.
#pragma once

#include <cstdint>

namespace verbatim {

/// 0, or ENOMEM with the exact limit in the log. `what` names the purpose ("an arena of
/// vbt_alloc_shared"). Where neither a cgroup limit nor /proc/meminfo can be read the answer is 0.
[[nodiscard]] int check_memory_headroom(std::uint64_t bytes, const char* what) noexcept;

/// What the memory cgroup at `directory` (version 2 or 1, told by its files) can still take: its
/// limit less its use, where use does not count file cache, which the kernel drops before it kills.
/// ~0 for no limit.
[[nodiscard]] std::uint64_t cgroup_headroom(const char* directory, bool version_2) noexcept;

}  // namespace verbatim
