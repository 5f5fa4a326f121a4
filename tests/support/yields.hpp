// SPDX-License-Identifier: BSD-2-Clause
//
// Counts sched_yield(): the program's own, which does what libc's does, stands before it.
#pragma once

#include <cstdint>

namespace verbatim::harness {

/// So often the calling thread has given its processor away.
std::uint64_t yields_of_this_thread() noexcept;

}  // namespace verbatim::harness
