// SPDX-License-Identifier: BSD-2-Clause
// Where the kernel's device tree is. SYSFS_PATH moves it, except in setuid programs: containers,
// and tests with trees of their own. Any thread; read once.
#pragma once

namespace verbatim {

/// The root of sysfs, without a slash at its end; shorter than 256 characters.
[[nodiscard]] const char* sysfs_root() noexcept;
/// Whether SYSFS_PATH chose it.
[[nodiscard]] bool sysfs_root_is_chosen() noexcept;

}  // namespace verbatim
