// SPDX-License-Identifier: BSD-2-Clause
// Where a device is, as the kernel tells it. Any thread; no allocation.
#pragma once

#include <cstdint>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

/// The kernel's number of the node that an RDMA device is attached to, from
/// <sysfs root>/class/infiniband/<name>/device/numa_node; else that of the network device under it
/// (rxe and siw are attached to nothing themselves, and their bytes go through that one). kNone for
/// a device without either, on a machine with one node, and for a name with a slash in it.
[[nodiscard]] std::uint32_t node_number_of_device(const char* name) noexcept;

}  // namespace verbatim::topo
