// SPDX-License-Identifier: BSD-2-Clause
// The devices of all providers, as lists that the application holds. A Device lives while a list or
// a context holds it; the same device is the same object in every list. Any thread (one mutex).
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// A null-terminated array, for free_device_list; `count` on success only. Never empty: with no
/// device to show it is ENOSYS (no provider in this program) or ENODEV, and the log says which.
Result<ibv_device**> get_device_list(int& count) noexcept;
void free_device_list(ibv_device** list) noexcept;

/// Keeps a device that the caller holds already through a list. Pair: release_device.
void retain_device(Device& device) noexcept;
void release_device(Device& device) noexcept;

}  // namespace verbatim
