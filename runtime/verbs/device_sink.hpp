// SPDX-License-Identifier: BSD-2-Clause
// Where a provider's list_devices puts what it found. One thread: the one inside list_devices.
#pragma once

#include <cstdint>

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/unclaimed_devices.hpp"

namespace verbatim {

/// What a provider tells of one device. Texts are copied, and cut to the public fields' sizes.
struct DeviceDescription {
  const char* name;           ///< "shm0"; unique among all providers
  const char* dev_name = "";  ///< "uverbs0" of a kernel device
  const char* dev_path = "";  ///< sysfs folders of a kernel device
  const char* ibdev_path = "";
  ibv_node_type node_type = IBV_NODE_CA;
  ibv_transport_type transport_type = IBV_TRANSPORT_IB;
  __be64 guid = 0;
  std::uint32_t index = 0;  ///< the provider's own numbering, back in Device::index
  int kernel_index = -1;
};

class DeviceSink {
 public:
  explicit DeviceSink(const ProviderTable& provider, UnclaimedDevices* unclaimed = nullptr) noexcept
      : provider_(provider), unclaimed_(unclaimed) {}
  DeviceSink(const DeviceSink&) = delete;
  DeviceSink& operator=(const DeviceSink&) = delete;
  ~DeviceSink();

  /// 0, or ENOMEM (list_devices passes it on).
  int add(const DeviceDescription& found) noexcept;

  /// A provider of kernel devices tells of one that could be used if a provider drives it.
  void saw(const char* name, const char* folder, bool ours) noexcept {
    if (unclaimed_ != nullptr) unclaimed_->saw(name, folder, ours);
  }

  /// The chain of what was added, in that order, now owned by the caller (runtime).
  [[nodiscard]] Device* take() noexcept;

 private:
  const ProviderTable& provider_;
  UnclaimedDevices* unclaimed_;
  Device* first_ = nullptr;
  Device* last_ = nullptr;
};

}  // namespace verbatim
