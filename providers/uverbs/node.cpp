// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/node.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/log.hpp"

namespace verbatim::uverbs {
namespace {

const char* advice_for(int error) noexcept {
  switch (error) {
    case EACCES:
      return "give it to your user, or make it 0666 as the rules of rdma-core for udev do";
    case EPERM:
      return "the device is not of this container or network namespace: pass it in (--device), or "
             "see 'rdma system'";
    case ENOENT:
      return "the device was removed, or its node is not in this container (--device)";
    case ENXIO:
    case ENODEV:
      return "the device was removed; list the devices again";
    case EMFILE:
    case ENFILE:
      return "raise 'ulimit -n'";
    default:
      return "see the kernel's log";
  }
}

}  // namespace

int open_node_at(const char* path, const char* device, std::uint32_t number,
                 UniqueFd& out) noexcept {
  UniqueFd fd(::open(path, O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    log_error("%s: cannot open %s: %s: %s", device, path, std::strerror(error), advice_for(error));
    return error;
  }
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return errno;
  if (!S_ISCHR(status.st_mode) ||
      node_number(major(status.st_rdev), minor(status.st_rdev)) != number) {
    log_error(
        "%s: %s is not the node of this device (it would be character device %u:%u): it was made "
        "for another one; remove it and let udev make it anew",
        device, path, (number & 0xfff00) >> 8, (number & 0xff) | (number >> 12 & 0xfff00));
    return ENXIO;
  }
  out = static_cast<UniqueFd&&>(fd);
  return 0;
}

int open_node(const Device& device, UniqueFd& out) noexcept {
  char path[sizeof device.plain.dev_name + 32];
  std::snprintf(path, sizeof path, "%s/%s", kNodeFolder, device.plain.dev_name);
  return open_node_at(path, device.plain.name, device.index, out);
}

}  // namespace verbatim::uverbs
