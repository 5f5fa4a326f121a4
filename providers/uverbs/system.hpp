// SPDX-License-Identifier: BSD-2-Clause
// The system calls on a uverbs descriptor, behind two pointers: the kernel's, or those of a test
// that answers in its place.
#pragma once

#include <cstddef>

#include "abi/kernel/ioctl_call.hpp"

namespace verbatim::uverbs {

struct System {
  /// RDMA_VERBS_IOCTL: 0 or a positive errno.
  int (*ioctl)(const System& self, int fd, kernel::IoctlCall::Message& message) noexcept;
  /// All of the bytes in one write(2): 0 or a positive errno.
  int (*write)(const System& self, int fd, const void* bytes, std::size_t size) noexcept;
};

extern const System linux_system;

}  // namespace verbatim::uverbs
