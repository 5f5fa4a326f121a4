// SPDX-License-Identifier: BSD-2-Clause
//
// Pages before they are used, by the page fault's own way: with the mapping's advice and policy,
// and an error where a store would raise a signal. Any thread. Spec: madvise(2)
// (MADV_POPULATE_WRITE, Linux 5.14).
#pragma once

#include <cstdint>

namespace verbatim {

/// Writes nothing. 0 or an errno: EINVAL (this kernel cannot), ENOMEM, EFAULT (a huge page that is
/// not there).
[[nodiscard]] int populate(unsigned char* base, std::uint64_t bytes) noexcept;

/// Files in memory get huge pages on advice, and only then: by a fault in an advised mapping, not
/// by fallocate(2). Reads a file or two of /sys.
[[nodiscard]] bool memory_files_take_advice() noexcept;

}  // namespace verbatim
