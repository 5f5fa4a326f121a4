// SPDX-License-Identifier: BSD-2-Clause
// The system calls on a descriptor of the connection manager, behind two pointers: the kernel's, or
// those of a test that answers in its place.
#pragma once

#include <cstddef>

namespace verbatim::rdma_cm {

struct System {
  /// All of the bytes in one write(2): 0 or a positive errno.
  int (*write)(const System& self, int fd, const void* bytes, std::size_t size) noexcept;
  /// Until there is an event to be read: 0, ETIMEDOUT, or a positive errno.
  int (*wait)(const System& self, int fd, int timeout_ms) noexcept;
};

extern const System linux_system;

}  // namespace verbatim::rdma_cm
