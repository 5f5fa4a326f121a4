// SPDX-License-Identifier: BSD-2-Clause
// The small texts in which the kernel tells about itself (/proc, /sys). Any thread; no allocation.
#pragma once

#include <cstddef>

namespace verbatim {

/// Reads up to `capacity` - 1 bytes and ends them with '\0'. False when there is nothing to read.
[[nodiscard]] bool read_proc_text(const char* path, char* text, std::size_t capacity) noexcept;

}  // namespace verbatim
