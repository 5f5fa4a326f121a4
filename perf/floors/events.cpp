// SPDX-License-Identifier: BSD-2-Clause
// Floor: two threads of two processes that wake each other from sleep, each by a write to the
// eventfd that the other reads. What a completion channel costs is held against it. The eventfds
// are made for each block and handed over the socket that joins the ends (SCM_RIGHTS).
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "perf/ends/end.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int fd, const char* what) : fd_(fd) {
    if (fd < 0) fail(what);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

void hand_over(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  if (sendmsg(socket, &message, 0) != 1) fail("hand an eventfd over");
}

int take_over(int socket) {
  char byte;
  iovec data{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || message.msg_controllen == 0)
    fail("take an eventfd over");
  int fd;
  std::memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
  return fd;
}

void wake(int fd) {
  const std::uint64_t one = 1;
  if (write(fd, &one, sizeof one) != sizeof one) fail("write an eventfd");
}

void sleep_on(int fd) {
  std::uint64_t count;
  if (read(fd, &count, sizeof count) != sizeof count) fail("read an eventfd");
}

}  // namespace

void run_event_ping_pong(End& end, const Request& request, Reply& reply) {
  const Descriptor own(eventfd(0, EFD_CLOEXEC), "eventfd");
  hand_over(end.peer_fd(), own.get());
  const Descriptor peer(take_over(end.peer_fd()), "eventfd of the peer");
  end.meet();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (end.is_near()) wake(peer.get());
    sleep_on(own.get());
    if (!end.is_near()) wake(peer.get());
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = 2.0 * static_cast<double>(request.iterations);
}

}  // namespace verbatim::perf
