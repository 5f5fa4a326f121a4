// SPDX-License-Identifier: BSD-2-Clause
//
// Is there memory at an address? A region on demand may name addresses behind which there is none
// (yet, or any more), and a copy to them would be a signal.
#pragma once

#include <cstdint>

namespace verbatim::shm {

/// Brings [address, address + length) in, for reading or for writing: 0, or EFAULT: not all of it
/// is memory that we may use so. Any thread; what another thread unmaps meanwhile is its affair.
int fault_in(std::uint64_t address, std::uint64_t length, bool for_writing) noexcept;

/// Asks for it ahead of time, without waiting: 0 or EFAULT.
int will_need(std::uint64_t address, std::uint64_t length) noexcept;

}  // namespace verbatim::shm
