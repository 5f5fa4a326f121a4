// SPDX-License-Identifier: BSD-2-Clause
// Reads a machine with hwloc, or says that this library was built without. Any thread; takes
// milliseconds, on large machines much longer: host.hpp does it once.
#pragma once

#include <cstdint>

#include "runtime/topo/machine_source.hpp"
#include "runtime/topo/snapshot.hpp"

namespace verbatim::topo {

/// The version of hwloc's interface (0x00020900), 0 for none.
[[nodiscard]] std::uint32_t reader_version() noexcept;

/// Fills `snapshot` with bytes that check_machine() accepts, but for key and checksum. False, with
/// the reason logged: nothing is known.
[[nodiscard]] bool read_machine(const MachineSource& source, Snapshot& snapshot) noexcept;

}  // namespace verbatim::topo
