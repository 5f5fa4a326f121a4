// SPDX-License-Identifier: BSD-2-Clause
// What a process holds because of the library.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace verbatim::harness {

/// Bytes: in the library's files, which others map, and in pages of its own.
struct HeldMemory {
  std::int64_t shared = 0;
  std::int64_t own = 0;
};

HeldMemory held_by(pid_t process);

}  // namespace verbatim::harness
