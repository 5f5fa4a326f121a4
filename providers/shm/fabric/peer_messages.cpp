// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/peer_messages.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/peer.hpp"
#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

bool parse_message(std::span<const unsigned char> bytes, std::uint32_t fd_count,
                   Message& out) noexcept {
  MessageHead head{.type = MessageType::kHello};
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMessageMagic || head.version != kMessageVersion) return false;
  switch (head.type) {
    case MessageType::kHello:
      if (bytes.size() != sizeof out.hello || fd_count != 3) return false;
      std::memcpy(&out.hello, bytes.data(), sizeof out.hello);
      if (out.hello.identity == 0) return false;
      break;
    case MessageType::kWantArena:
    case MessageType::kArena:
    case MessageType::kRefused:
    case MessageType::kMet:
      if (bytes.size() != sizeof out.arena) return false;
      if (fd_count != (head.type == MessageType::kArena ? 1u : 0u)) return false;
      std::memcpy(&out.arena, bytes.data(), sizeof out.arena);
      if (out.arena.arena >= kMaxArenas) return false;
      break;
    default:
      return false;
  }
  out.type = head.type;
  return true;
}

int receive_message(int socket, Received& out) noexcept {
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
  iovec part{.iov_base = out.data, .iov_len = sizeof out.data};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;

  // First take the descriptors, then judge: nothing may leak on the way.
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      UniqueFd taken(fd);
      if (out.fd_count < kMaxMessageFds) {
        out.fds[out.fd_count++] = static_cast<UniqueFd&&>(taken);
      } else {
        out.too_much = true;
      }
    }
  }
  // A message of no bytes looks like the end of the connection; no honest peer sends one.
  if (got == 0) return EPIPE;
  out.bytes = static_cast<std::size_t>(got);
  if ((header.msg_flags & MSG_TRUNC) != 0) out.too_much = true;
  // The place for them holds as many as any message has.
  if ((header.msg_flags & MSG_CTRUNC) != 0)
    (out.fd_count < kMaxMessageFds ? out.lacks_room : out.too_much) = true;
  return 0;
}

int send_message(int socket, const void* message, std::size_t bytes,
                 std::span<const int> fds) noexcept {
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))] = {};
  iovec part{.iov_base = const_cast<void*>(message), .iov_len = bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return 0;
  // All of these pass when the peer reads on, or the system breathes.
  if (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM) return EAGAIN;
  return errno;
}

}  // namespace verbatim::shm
