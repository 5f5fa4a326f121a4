// SPDX-License-Identifier: BSD-2-Clause
// The list of devices, held for as long as a tool needs its entries.
//
// One thread. Invariant: a pointer from at() or find() is good while the list lives (a device that
// is to outlive it must be open). On failure the classic line is already on stderr.
#pragma once

#include <infiniband/verbs.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace verbatim::cli {

class DeviceList {
 public:
  DeviceList() : list_{ibv_get_device_list(&count_)} {
    if (list_ == nullptr) std::perror("Failed to get IB devices list");
  }
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  explicit operator bool() const { return list_ != nullptr; }
  int size() const { return count_; }
  ibv_device* at(int i) const { return list_[i]; }

  /// The device of that name, or null.
  ibv_device* find(std::string_view name) const {
    for (int i = 0; i < count_; ++i) {
      if (name == ibv_get_device_name(list_[i])) return list_[i];
    }
    return nullptr;
  }

  /// "shm0 shm1", or "none": for the line that says what a wrong name could have been.
  std::string names() const {
    std::string all;
    for (int i = 0; i < count_; ++i) {
      if (i > 0) all += ' ';
      all += ibv_get_device_name(list_[i]);
    }
    return all.empty() ? "none" : all;
  }

 private:
  int count_ = 0;
  ibv_device** list_;
};

}  // namespace verbatim::cli
