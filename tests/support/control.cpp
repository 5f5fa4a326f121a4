// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/control.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace verbatim::harness {
namespace {

struct FrameHead {
  std::uint32_t kind;
  std::uint32_t reserved;
  std::uint64_t size;
};

}  // namespace

Control::~Control() {
  if (fd_ >= 0) close(fd_);
}

std::pair<Control, Control> Control::make_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw std::runtime_error("socketpair failed, errno " + std::to_string(errno));
  }
  return {Control(fds[0]), Control(fds[1])};
}

void Control::send(std::uint32_t kind, const Bytes& body) {
  const FrameHead head{kind, 0, body.size()};
  Bytes frame(sizeof head + body.size());
  std::memcpy(frame.data(), &head, sizeof head);
  if (!body.empty()) std::memcpy(frame.data() + sizeof head, body.data(), body.size());
  const Deadline deadline;
  std::size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t n =
        ::send(fd_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd wait{fd_, POLLOUT, 0};
      if (poll(&wait, 1, deadline.remaining_ms()) == 0) {
        throw std::runtime_error("the other process does not read its control channel");
      }
    } else if (errno != EINTR) {
      throw PeerGone("the other process closed its control channel");
    }
  }
}

void Control::read_exactly(void* to, std::size_t size, const Deadline& deadline) {
  auto* at = static_cast<std::byte*>(to);
  while (size > 0) {
    pollfd wait{fd_, POLLIN, 0};
    const int ready = poll(&wait, 1, deadline.remaining_ms());
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw std::runtime_error("nothing came on the control channel in time");
    const ssize_t n = recv(fd_, at, size, MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      size -= static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      throw PeerGone("the other process is gone");
    }
  }
}

Frame Control::receive(std::int32_t wait_ms) {
  const Deadline deadline(wait_ms);
  FrameHead head{};
  read_exactly(&head, sizeof head, deadline);
  Frame frame{head.kind, Bytes(head.size)};
  read_exactly(frame.body.data(), frame.body.size(), deadline);
  return frame;
}

}  // namespace verbatim::harness
