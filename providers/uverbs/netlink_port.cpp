// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/netlink_port.hpp"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

namespace verbatim::uverbs {
namespace {

int send_to_kernel(const NetlinkPort& self, const void* bytes, std::size_t size) noexcept {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent =
      ::sendto(static_cast<const NetlinkSocket&>(self).fd.get(), bytes, size, MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) return errno;
  return static_cast<std::size_t>(sent) == size ? 0 : EIO;
}

ssize_t receive_from_kernel(const NetlinkPort& self, void* buffer, std::size_t size) noexcept {
  for (;;) {
    sockaddr_nl sender{};
    iovec part{buffer, size};
    msghdr message{};
    message.msg_name = &sender;
    message.msg_namelen = sizeof sender;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got =
        ::recvmsg(static_cast<const NetlinkSocket&>(self).fd.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    // Other processes can send to a netlink socket too.
    if (sender.nl_pid != 0) continue;
    if ((message.msg_flags & MSG_TRUNC) != 0) return -EMSGSIZE;
    return got;
  }
}

}  // namespace

NetlinkSocket::NetlinkSocket() noexcept : NetlinkPort{send_to_kernel, receive_from_kernel} {}

int NetlinkSocket::open() noexcept {
  UniqueFd made(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  if (!made.valid()) return errno;
  // The kernel answers within the request; one that does not must not hold the program.
  constexpr timeval kPatience{2, 0};
  ::setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  fd = static_cast<UniqueFd&&>(made);
  return 0;
}

}  // namespace verbatim::uverbs
