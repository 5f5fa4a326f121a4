// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace verbatim::gate {

/// What programs look for before they believe that there is an RDMA device. On a machine without
/// kernel devices none of these files exists.
enum class Place {
  kElsewhere,
  kClassFolder,  ///< /sys/class/infiniband: Open MPI asks no device list without this folder
  kDeviceNode,   ///< /dev/infiniband/<dev_name of a shm device>: UCX leaves out devices without one
  kConnectionManager,  ///< /dev/infiniband/rdma_cm: libfabric opens it for datagrams, too
};

[[nodiscard]] Place place_of(const char* path) noexcept;

}  // namespace verbatim::gate
