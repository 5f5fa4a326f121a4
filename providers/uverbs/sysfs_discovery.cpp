// SPDX-License-Identifier: BSD-2-Clause
// find_by_sysfs: what kernels without the netlink questions tell in files.
//   class/infiniband_verbs/uverbsN/{ibdev,dev,abi_version}
//   class/infiniband/<ibdev>/{node_type,node_guid}
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/node.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::uverbs {
namespace {

constexpr std::size_t kTextSize = 128;

/// A file's only line. False: it is not there, or empty.
bool read_line(char (&text)[kTextSize], const char* sysfs, const char* group, const char* name,
               const char* file) noexcept {
  char path[PATH_MAX];
  const int length =
      std::snprintf(path, sizeof path, "%s/class/%s/%s/%s", sysfs, group, name, file);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return false;
  if (!read_proc_text(path, text, sizeof text)) return false;
  text[std::strcspn(text, "\n")] = '\0';
  return text[0] != '\0';
}

bool read_number(const char* text, unsigned long& out) noexcept {
  char* end = nullptr;
  errno = 0;
  out = std::strtoul(text, &end, 10);
  return end != text && *end == '\0' && errno == 0 && out <= UINT32_MAX;
}

/// "231:192"
bool read_node_number(const char* text, std::uint32_t& out) noexcept {
  unsigned node_major = 0;
  unsigned node_minor = 0;
  char rest = 0;
  if (std::sscanf(text, "%u:%u%c", &node_major, &node_minor, &rest) != 2) return false;
  constexpr unsigned kMostMajor = 0xfff;
  constexpr unsigned kMostMinor = 0xfffff;
  if (node_major > kMostMajor || node_minor > kMostMinor) return false;
  out = node_number(node_major, node_minor);
  return true;
}

/// "0211:22ff:fe33:4455"
std::uint64_t guid_from(const char* text) noexcept {
  unsigned part[4] = {};
  if (std::sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4) return 0;
  return std::uint64_t{part[0]} << 48 | std::uint64_t{part[1]} << 32 |
         std::uint64_t{part[2]} << 16 | part[3];
}

/// Versions of the ABI that all drivers share; who tells of devices over netlink has the last.
constexpr unsigned long kLeastCoreAbi = 3;
constexpr unsigned long kMostCoreAbi = 6;

bool core_abi_is_known(const Places& places) noexcept {
  char path[PATH_MAX];
  const int length =
      std::snprintf(path, sizeof path, "%s/class/infiniband_verbs/abi_version", places.sysfs);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return false;
  char text[32];
  static constinit LogOnce unread;
  if (!read_proc_text(path, text, sizeof text)) {
    if (unread.first()) {
      log_warn(
          "couldn't read uverbs ABI version from %s: the kernel devices are left out; 'modprobe "
          "ib_uverbs', or mount all of /sys into the container",
          path);
    }
    return false;
  }
  const unsigned long version = std::strtoul(text, nullptr, 10);
  if (version >= kLeastCoreAbi && version <= kMostCoreAbi) return true;
  static constinit LogOnce unknown;
  if (unknown.first()) {
    log_warn(
        "kernel ABI version %lu doesn't match library version %lu: the kernel devices are left "
        "out; build with a newer version of this library, or run another kernel",
        version, kMostCoreAbi);
  }
  return false;
}

/// A tree that somebody chose (SYSFS_PATH) and that is not there is no machine without RDMA.
void warn_of_missing_root(const Places& places) noexcept {
  const int error = errno;
  static constinit LogOnce once;
  struct stat status;
  if (::stat(places.sysfs, &status) != 0 && std::strcmp(places.sysfs, "/sys") != 0 &&
      once.first()) {
    log_warn(
        "couldn't read uverbs ABI version from %s: %s: no kernel device is found; unset "
        "SYSFS_PATH, or have it name a tree like /sys",
        places.sysfs, std::strerror(errno));
  }
  errno = error;
}

void warn_of_unread(const char* path, int error) noexcept {
  static constinit LogOnce once;
  if (once.first()) {
    log_warn("%s: cannot be read to its end: %s: kernel devices may be missing", path,
             std::strerror(error));
  }
}

bool is_name(const char* text) noexcept {
  const std::size_t length = std::strlen(text);
  return length != 0 && length < KernelDevice::kNameSize && text[0] != '.' &&
         std::strchr(text, '/') == nullptr;
}

/// False: it is no device, or left while it was read.
bool read_device(const char* sysfs, const char* uverbs, KernelDevice& device) noexcept {
  char text[kTextSize];
  unsigned long number = 0;
  if (!read_line(text, sysfs, "infiniband_verbs", uverbs, "ibdev") || !is_name(text)) return false;
  std::memcpy(device.name, text, std::strlen(text) + 1);
  std::memcpy(device.uverbs, uverbs, std::strlen(uverbs) + 1);
  if (!read_line(text, sysfs, "infiniband_verbs", uverbs, "dev") ||
      !read_node_number(text, device.number)) {
    return false;
  }
  if (!read_line(text, sysfs, "infiniband_verbs", uverbs, "abi_version") ||
      !read_number(text, number)) {
    return false;
  }
  device.abi = static_cast<std::uint32_t>(number);
  if (read_line(text, sysfs, "infiniband", device.name, "node_type")) {
    device.node_type = static_cast<std::uint8_t>(std::strtoul(text, nullptr, 10));
  }
  if (read_line(text, sysfs, "infiniband", device.name, "node_guid")) {
    device.guid = guid_from(text);
  }
  return true;
}

}  // namespace

int find_by_sysfs(const Places& places, Found& found) noexcept {
  char path[PATH_MAX];
  const int length = std::snprintf(path, sizeof path, "%s/class/infiniband_verbs", places.sysfs);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return ENAMETOOLONG;
  DIR* const folder = ::opendir(path);
  if (folder == nullptr) {
    if (errno == ENOMEM) return ENOMEM;
    warn_of_missing_root(places);
    // Sandboxes hide it; that is no reason to trouble a program that has other devices.
    if (errno != ENOENT)
      log_info("kernel devices are left out: %s: %s", path, std::strerror(errno));
    return 0;
  }
  if (!core_abi_is_known(places)) {
    ::closedir(folder);
    return 0;
  }
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(folder);
    if (entry == nullptr) {
      // The end, or a folder that cannot be read on.
      error = errno;
      if (error != 0) warn_of_unread(path, error);
      break;
    }
    if (std::strncmp(entry->d_name, "uverbs", sizeof "uverbs" - 1) != 0) continue;
    if (!is_name(entry->d_name)) continue;
    KernelDevice* const device = found.append();
    if (device == nullptr) {
      error = ENOMEM;
      break;
    }
    if (!read_device(places.sysfs, entry->d_name, *device)) found.remove(found.size() - 1);
  }
  ::closedir(folder);
  return error;
}

}  // namespace verbatim::uverbs
