// SPDX-License-Identifier: BSD-2-Clause
// The questions that discovery asks over rdma netlink, and the reading of the answers: bytes, no
// sockets. Answers are bounds-checked as data from outside; what is malformed ends the reading, and
// an attribute of an unexpected size is as good as none.
// Layout: <linux/netlink.h>; numbers: <rdma/rdma_netlink.h> (client NLDEV).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbatim::kernel {

using Bytes = std::span<const std::byte>;

/// A request, ready for send(2).
struct NetlinkRequest {
  alignas(8) std::byte bytes[64];
  std::size_t size;
};
/// All RDMA devices (a dump).
[[nodiscard]] NetlinkRequest ask_devices(std::uint32_t sequence) noexcept;
/// The uverbs character device of one.
[[nodiscard]] NetlinkRequest ask_character_device(std::uint32_t sequence,
                                                  std::uint32_t index) noexcept;
/// Properties of the RDMA system itself.
[[nodiscard]] NetlinkRequest ask_system(std::uint32_t sequence) noexcept;

/// What one answer says. Absent attributes leave their `has` bit unset.
struct NetlinkAnswer {
  enum Has : std::uint32_t {
    kIndex = 1 << 0,
    kName = 1 << 1,
    kNodeType = 1 << 2,
    kNodeGuid = 1 << 3,
    kChardevName = 1 << 4,
    kChardev = 1 << 5,
    kAbi = 1 << 6,
    kDriver = 1 << 7,
    kCopyOnFork = 1 << 8,
  };
  static constexpr std::size_t kNameSize = 64;

  std::uint32_t has = 0;
  std::uint32_t index = 0;
  char name[kNameSize] = {};
  std::uint8_t node_type = 0;
  std::uint64_t node_guid = 0;  ///< in the host's byte order
  char chardev_name[kNameSize] = {};
  std::uint64_t chardev = 0;  ///< as the kernel encodes a device number
  std::uint64_t abi = 0;
  std::uint32_t driver = 0;
  std::uint8_t copy_on_fork = 0;

  [[nodiscard]] bool all(std::uint32_t wanted) const noexcept { return (has & wanted) == wanted; }
};

/// Reads what one recv(2) brought, message by message.
class NetlinkReader {
 public:
  enum class Next {
    kAnswer,  ///< `answer` is filled
    kEmpty,   ///< nothing more in these bytes: receive again
    kDone,    ///< the kernel has said everything
    kError,   ///< `error` is the kernel's errno, or EPROTO
  };

  NetlinkReader(Bytes received, std::uint32_t sequence) noexcept
      : left_(received), sequence_(sequence) {}
  [[nodiscard]] Next next(NetlinkAnswer& answer, int& error) noexcept;

 private:
  [[nodiscard]] Next malformed(int& error) noexcept;

  Bytes left_;
  std::uint32_t sequence_;
};

}  // namespace verbatim::kernel
