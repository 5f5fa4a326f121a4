// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/discovery.hpp"

#include <endian.h>
#include <limits.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "providers/uverbs/node.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/sysfs.hpp"

namespace verbatim::uverbs {
namespace {

bool belongs_to(const Driver& driver, const KernelDevice& device) noexcept {
  if (device.driver != 0) return device.driver == driver.id;
  return std::strncmp(device.name, driver.name_prefix, std::strlen(driver.name_prefix)) == 0;
}

bool abi_fits(const Driver& driver, const KernelDevice& device) noexcept {
  if (device.abi >= driver.least_abi && device.abi <= driver.most_abi) return true;
  log_warn(
      "driver does not support the kernel ABI of %s (supports %u to %u while the device has %u): "
      "build with a version of this library that does, or run another kernel",
      device.name, driver.least_abi, driver.most_abi, device.abi);
  return false;
}

bool node_exists(const Places& places, const KernelDevice& device,
                 char (&path)[PATH_MAX]) noexcept {
  const int length = std::snprintf(path, sizeof path, "%s/%s", places.nodes, device.uverbs);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
    errno = ENAMETOOLONG;
    return false;
  }
  struct stat status;
  return ::stat(path, &status) == 0;
}

bool has_node(const Places& places, const KernelDevice& device) noexcept {
  char path[PATH_MAX];
  if (node_exists(places, device, path)) return true;
  log_info(
      "%s is left out: %s: %s (in a container: pass the device in; else: is udev running, and "
      "ib_uverbs loaded?)",
      device.name, path, std::strerror(errno));
  return false;
}

/// Tells the runtime whose it is, since other providers look at the same devices. One without a
/// node is nobody's to use: a container sees those of its host.
bool is_for(const Driver& driver, const Places& places, const KernelDevice& device,
            DeviceSink& sink) noexcept {
  char path[PATH_MAX];
  const bool ours = belongs_to(driver, device);
  if (!ours && !node_exists(places, device, path)) return false;
  std::snprintf(path, sizeof path, "%s/class/infiniband_verbs/%s", places.sysfs, device.uverbs);
  sink.saw(device.name, path, ours);
  return ours;
}

int add_device(const Places& places, const KernelDevice& device, DeviceSink& sink) noexcept {
  char verbs_path[sizeof(ibv_device::dev_path)];
  char device_path[sizeof(ibv_device::ibdev_path)];
  std::snprintf(verbs_path, sizeof verbs_path, "%s/class/infiniband_verbs/%s", places.sysfs,
                device.uverbs);
  std::snprintf(device_path, sizeof device_path, "%s/class/infiniband/%s", places.sysfs,
                device.name);
  const bool iwarp = device.node_type == IBV_NODE_RNIC;
  const auto node_type = device.node_type > IBV_NODE_UNSPECIFIED
                             ? IBV_NODE_UNKNOWN
                             : static_cast<ibv_node_type>(device.node_type);
  return sink.add({.name = device.name,
                   .dev_name = device.uverbs,
                   .dev_path = verbs_path,
                   .ibdev_path = device_path,
                   .node_type = node_type,
                   .transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB,
                   .guid = htobe64(device.guid),
                   .index = device.number,
                   .kernel_index = device.index});
}

}  // namespace

Found::~Found() { std::free(devices_); }

KernelDevice* Found::append() noexcept {
  if (count_ == room_) {
    constexpr std::size_t kMostDevices = 4096;
    const std::size_t room = room_ == 0 ? 8 : room_ * 2;
    if (room > kMostDevices) return nullptr;
    void* const grown = std::realloc(static_cast<void*>(devices_), room * sizeof(KernelDevice));
    if (grown == nullptr) return nullptr;
    devices_ = static_cast<KernelDevice*>(grown);
    room_ = room;
  }
  devices_[count_] = {};
  return &devices_[count_++];
}

void Found::remove(std::size_t position) noexcept {
  for (std::size_t i = position + 1; i < count_; ++i) devices_[i - 1] = devices_[i];
  --count_;
}

int add_devices(const Places& places, const Found& found, const Driver& driver,
                DeviceSink& sink) noexcept {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const KernelDevice& device = found[i];
    if (!is_for(driver, places, device, sink) || !abi_fits(driver, device) ||
        !has_node(places, device)) {
      continue;
    }
    if (const int error = add_device(places, device, sink)) return error;
  }
  return 0;
}

int find_devices(const NetlinkPort* port, const Places& places, Found& found) noexcept {
  if (port != nullptr) {
    const int error = find_by_netlink(*port, found);
    if (error == 0 && found.size() != 0) return 0;
    if (error == ENOMEM) return error;
    log_debug("rdma netlink: %s; asking sysfs", error == 0 ? "no device" : std::strerror(error));
    found.clear();
  }
  return find_by_sysfs(places, found);
}

int list_devices(const Driver& driver, DeviceSink& sink) noexcept {
  const Places places{sysfs_root(), kNodeFolder};
  NetlinkSocket socket;
  // Where the user has moved sysfs, what it shows is what he wants to see.
  const bool asks_netlink = !sysfs_root_is_chosen() && socket.open() == 0;
  Found found;
  const int error = find_devices(asks_netlink ? &socket : nullptr, places, found);
  // What was found before a failure is there to be used.
  const int added = add_devices(places, found, driver, sink);
  return error != 0 ? error : added;
}

}  // namespace verbatim::uverbs
