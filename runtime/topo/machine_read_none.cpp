// SPDX-License-Identifier: BSD-2-Clause
// machine_read.hpp for a library that was built without hwloc.
#include "runtime/base/log.hpp"
#include "runtime/topo/machine_read.hpp"

namespace verbatim::topo {

std::uint32_t reader_version() noexcept { return 0; }

bool read_machine(const MachineSource&, Snapshot&) noexcept {
  log_info("built without hwloc: where memory and processors are is unknown");
  return false;
}

}  // namespace verbatim::topo
