// SPDX-License-Identifier: BSD-2-Clause
// The memory placement extensions (IBTA A19: FLUSH and ATOMIC WRITE), as Linux has them since 6.2.
// Kernel headers before that do not name them, and those after it say the same. Source: enum
// ib_uverbs_device_cap_flags of Linux 6.12's <rdma/ib_user_verbs.h>.
#pragma once

#include <cstdint>

namespace verbatim::kernel {

/// Bits of device_cap_flags_ex: what a device places, and whether it writes 8 bytes at once.
inline constexpr std::uint64_t kDeviceFlushGlobal = std::uint64_t{1} << 38;
inline constexpr std::uint64_t kDeviceFlushPersistent = std::uint64_t{1} << 39;
inline constexpr std::uint64_t kDeviceAtomicWrite = std::uint64_t{1} << 40;

}  // namespace verbatim::kernel
