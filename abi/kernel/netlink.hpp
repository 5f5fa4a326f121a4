// SPDX-License-Identifier: BSD-2-Clause
// The questions that are asked over rdma netlink, of discovery and about connections, and the
// reading of the answers: bytes, no sockets. Answers are bounds-checked as data from outside; what
// is malformed ends the reading, and an attribute of an unexpected size is as good as none. Layout:
// <linux/netlink.h>; numbers: <rdma/rdma_netlink.h> (client NLDEV).
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
/// What the connection manager has on a device (a dump): NetlinkAnswer::connections.
[[nodiscard]] NetlinkRequest ask_connections(std::uint32_t sequence, std::uint32_t index) noexcept;

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
    kConnections = 1 << 9,
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
  Bytes connections;  ///< next_connection(); of the bytes that were received

  [[nodiscard]] bool all(std::uint32_t wanted) const noexcept { return (has & wanted) == wanted; }
};

/// One of NetlinkAnswer::connections, as far as it is told.
struct NetlinkConnection {
  std::uint32_t qpn = 0;  ///< 0: it has no queue pair
  bool has_peer = false;
  std::uint8_t peer[16] = {};   ///< an IPv6 address, or an IPv4 one mapped into it
  std::uint16_t peer_port = 0;  ///< in the host's byte order
};
/// Takes the first off the table. False: there is none any more, or what is there is malformed.
[[nodiscard]] bool next_connection(Bytes& table, NetlinkConnection& out) noexcept;

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
