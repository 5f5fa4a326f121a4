// SPDX-License-Identifier: BSD-2-Clause
// The kernel's RDMA device that programs of two libraries can both drive on one host. Any thread.
#pragma once

#include <string>

namespace verbatim::perf {

struct KernelDevice {
  std::string name;     // "rxe0"; empty: there is none
  std::string gid;      // the index for -x; empty: programs need none
  std::string missing;  // why there is none
};

/// The first with an active port that connects by queue pair numbers, as rxe's do and iWARP's do
/// not. `folder` is where the kernel lists them.
KernelDevice find_kernel_device(const std::string& folder = "/sys/class/infiniband");

}  // namespace verbatim::perf
