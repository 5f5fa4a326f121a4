// SPDX-License-Identifier: BSD-2-Clause
// The file of a device, /dev/infiniband/uverbsN: opening it, and saying in one line why it cannot
// be and what to do. Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/unique_fd.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::uverbs {

/// The folder of the nodes.
constexpr const char* kNodeFolder = "/dev/infiniband";

/// REQUIRES: Device::index is its device number as node_number() makes it.
[[nodiscard]] int open_node(const Device& device, UniqueFd& out) noexcept;
/// Opens the device node at `path`, which must have the device number `number`.
[[nodiscard]] int open_node_at(const char* path, const char* device, std::uint32_t number,
                               UniqueFd& out) noexcept;

/// A device number in 32 bits, as the kernel encodes it.
[[nodiscard]] constexpr std::uint32_t node_number(std::uint64_t encoded) noexcept {
  return static_cast<std::uint32_t>(encoded);
}
[[nodiscard]] constexpr std::uint32_t node_number(unsigned major, unsigned minor) noexcept {
  return (minor & 0xff) | (major << 8) | ((minor & ~0xffu) << 12);
}

}  // namespace verbatim::uverbs
