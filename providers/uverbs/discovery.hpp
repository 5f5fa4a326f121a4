// SPDX-License-Identifier: BSD-2-Clause
// Which kernel devices are there, and which of them are a provider's. The kernel is asked anew each
// time: rdma netlink first, then sysfs. Any thread; control code.
//
// A machine without RDMA is no error and no line in the log. A device that is there and cannot be
// used is a line at level info: another provider may serve the program as well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/uverbs/netlink_port.hpp"
#include "runtime/verbs/device_sink.hpp"

namespace verbatim::uverbs {

struct KernelDevice {
  static constexpr std::size_t kNameSize = 64;

  char name[kNameSize] = {};    ///< rxe0
  char uverbs[kNameSize] = {};  ///< uverbs0
  std::uint64_t guid = 0;       ///< in the host's byte order
  std::uint32_t driver = 0;     ///< rdma_driver_id; 0: the kernel does not say
  std::uint32_t abi = 0;        ///< of the driver
  std::uint32_t number = 0;     ///< node_number()
  int index = -1;               ///< the kernel's own; -1: it does not say
  std::uint8_t node_type = 0;   ///< ibv_node_type
};

/// A growing array of them.
class Found {
 public:
  Found() noexcept = default;
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found();
  /// A zeroed one at the end, or null: no memory.
  [[nodiscard]] KernelDevice* append() noexcept;
  void remove(std::size_t position) noexcept;
  void clear() noexcept { count_ = 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] KernelDevice& operator[](std::size_t i) noexcept { return devices_[i]; }
  [[nodiscard]] const KernelDevice& operator[](std::size_t i) const noexcept { return devices_[i]; }

 private:
  KernelDevice* devices_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

/// Where to look. Tests have trees of their own.
struct Places {
  const char* sysfs;
  const char* nodes;
};

/// 0 or errno, with what was found before. Nothing there is 0, with nothing found.
[[nodiscard]] int find_by_netlink(const NetlinkPort& port, Found& found) noexcept;
[[nodiscard]] int find_by_sysfs(const Places& places, Found& found) noexcept;
/// Finds devices by netlink; where there is none (null), or it does not tell of any, by sysfs.
[[nodiscard]] int find_devices(const NetlinkPort* port, const Places& places,
                               Found& found) noexcept;

/// Whether a fork gives the child copies of pinned pages at once (Linux 5.12), so that the parent
/// keeps those that the device writes to. 0 or errno.
[[nodiscard]] int ask_copy_on_fork(const NetlinkPort& port, bool& copies) noexcept;
/// When a kernel device is opened, once: where this kernel does not, regions are kept from children
/// if that was asked for (fork_guard.hpp), else it is told: tell_of_forks().
void prepare_for_forks() noexcept;
/// Asks `port` each time that it is called; null: nobody can be asked.
void prepare_for_forks(const NetlinkPort* port) noexcept;
/// The line itself, in libibverbs' words where RDMAV_FORK_SAFE or IBV_FORK_SAFE asks for safety.
void tell_of_forks() noexcept;

/// What a provider can drive.
struct Driver {
  std::uint32_t id;         ///< rdma_driver_id
  const char* name_prefix;  ///< of its devices, for kernels that do not tell the driver
  std::uint32_t least_abi;
  std::uint32_t most_abi;
};

/// Adds those of `found` that are the driver's and have a node. 0 or ENOMEM.
[[nodiscard]] int add_devices(const Places& places, const Found& found, const Driver& driver,
                              DeviceSink& sink) noexcept;

/// The slot list_devices of a provider.
[[nodiscard]] int list_devices(const Driver& driver, DeviceSink& sink) noexcept;

}  // namespace verbatim::uverbs
