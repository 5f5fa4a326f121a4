// SPDX-License-Identifier: BSD-2-Clause
// A question over netlink, and all of its answers. Bounded: by the socket's patience, and by a
// number of receives.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/kernel/netlink.hpp"
#include "providers/uverbs/netlink_port.hpp"

namespace verbatim::uverbs {

/// Hands every answer to `take` (0 or errno). 0 or errno.
template <class Take>
[[nodiscard]] int ask(const NetlinkPort& port, const kernel::NetlinkRequest& request,
                      std::uint32_t sequence, Take take) noexcept {
  using kernel::NetlinkReader;
  constexpr std::size_t kReceiveBytes = 16384;
  // A kernel that never says "done" is left.
  constexpr int kMostReceives = 4096;
  if (const int error = port.send(port, request.bytes, request.size)) return error;
  alignas(8) std::byte buffer[kReceiveBytes];
  for (int i = 0; i < kMostReceives; ++i) {
    const ssize_t got = port.receive(port, buffer, sizeof buffer);
    if (got < 0) return static_cast<int>(-got);
    if (got == 0 || static_cast<std::size_t>(got) > sizeof buffer) return EPROTO;
    NetlinkReader reader({buffer, static_cast<std::size_t>(got)}, sequence);
    kernel::NetlinkAnswer answer;
    int error = 0;
    for (auto next = reader.next(answer, error); next != NetlinkReader::Next::kEmpty;
         next = reader.next(answer, error)) {
      if (next == NetlinkReader::Next::kDone) return 0;
      if (next == NetlinkReader::Next::kError) return error;
      if (const int refused = take(answer)) return refused;
    }
  }
  return EPROTO;
}

}  // namespace verbatim::uverbs
