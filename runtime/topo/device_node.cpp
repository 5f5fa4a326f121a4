// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/device_node.hpp"

#include <limits.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/proc_text.hpp"
#include "runtime/base/sysfs.hpp"

namespace verbatim::topo {

std::uint32_t node_number_of_device(const char* name) noexcept {
  char path[PATH_MAX];
  char text[32];
  if (name[0] == '\0' || name[0] == '.' || std::strchr(name, '/') != nullptr) return kNone;
  const int length = std::snprintf(path, sizeof path, "%s/class/infiniband/%s/device/numa_node",
                                   sysfs_root(), name);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path ||
      !read_proc_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
    return kNone;  // the kernel writes -1 for "anywhere"
  const unsigned long number = std::strtoul(text, nullptr, 10);
  return number < kNone ? static_cast<std::uint32_t>(number) : kNone;
}

}  // namespace verbatim::topo
