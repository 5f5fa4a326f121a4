// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/device_node.hpp"

#include <limits.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/proc_text.hpp"
#include "runtime/base/sysfs.hpp"

namespace verbatim::topo {
namespace {

bool is_file_name(const char* name) noexcept {
  return name[0] != '\0' && name[0] != '.' && std::strchr(name, '/') == nullptr;
}

/// Reads <sysfs root>/class/<kind>/<name>/<file>.
bool read_attribute(const char* kind, const char* name, const char* file, char* text,
                    std::size_t capacity) noexcept {
  char path[PATH_MAX];
  if (!is_file_name(name)) return false;
  const int length =
      std::snprintf(path, sizeof path, "%s/class/%s/%s/%s", sysfs_root(), kind, name, file);
  return length >= 0 && static_cast<std::size_t>(length) < sizeof path &&
         read_proc_text(path, text, capacity);
}

std::uint32_t node_of(const char* kind, const char* name) noexcept {
  char text[32];
  if (!read_attribute(kind, name, "device/numa_node", text, sizeof text) || text[0] < '0' ||
      text[0] > '9')
    return kNone;  // the kernel writes -1 for "anywhere"
  const unsigned long number = std::strtoul(text, nullptr, 10);
  return number < kNone ? static_cast<std::uint32_t>(number) : kNone;
}

}  // namespace

std::uint32_t node_number_of_device(const char* name) noexcept {
  if (const std::uint32_t node = node_of("infiniband", name); node != kNone) return node;
  char network[64];
  if (!read_attribute("infiniband", name, "ports/1/gid_attrs/ndevs/0", network, sizeof network))
    return kNone;
  network[std::strcspn(network, "\n")] = '\0';
  return node_of("net", network);
}

}  // namespace verbatim::topo
