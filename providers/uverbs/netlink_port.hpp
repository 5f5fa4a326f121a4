// SPDX-License-Identifier: BSD-2-Clause
// The two calls on a netlink socket, behind pointers: the kernel's, or those of a test.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "runtime/base/unique_fd.hpp"

namespace verbatim::uverbs {

struct NetlinkPort {
  /// 0 or a positive errno.
  int (*send)(const NetlinkPort& self, const void* bytes, std::size_t size) noexcept;
  /// Bytes received, or a negative errno; -EMSGSIZE when they did not fit.
  ssize_t (*receive)(const NetlinkPort& self, void* buffer, std::size_t size) noexcept;
};

/// A socket of the RDMA protocol of netlink.
struct NetlinkSocket : NetlinkPort {
  NetlinkSocket() noexcept;
  /// 0 or errno: EPROTONOSUPPORT on a machine without RDMA.
  [[nodiscard]] int open() noexcept;
  UniqueFd fd;
};

}  // namespace verbatim::uverbs
