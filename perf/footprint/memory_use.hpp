// SPDX-License-Identifier: BSD-2-Clause
// How much memory some processes hold together, shared memory counted once. Resident pages alone
// would hide memory files that are allocated but not touched, and would count a shared page once
// per process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace verbatim::perf {

struct MemoryUse {
  std::uint64_t own_pages = 0;  // RssAnon + RssFile of all the processes
  std::uint64_t shared = 0;  // memory files they map or hold open: allocated blocks, each file once
  std::uint64_t total() const { return own_pages + shared; }
};

/// The measurement's own memfd is left out. Throws std::runtime_error when a process cannot be
/// looked at.
MemoryUse memory_use(std::span<const pid_t> pids);

}  // namespace verbatim::perf
