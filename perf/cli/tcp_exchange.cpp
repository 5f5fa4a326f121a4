// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/tcp_exchange.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "perf/cli/deadline.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/hosts.hpp"
#include "runtime/base/printable.hpp"

namespace verbatim::cli {
namespace {

constexpr long kRefusedPauseMs = 20;
constexpr char kDone[] = "done";  // with its NUL on the wire

/// The beginning of what a stranger sent.
std::string printable(std::string_view bytes) {
  std::string text(bytes.substr(0, 24));
  make_printable(text.data(), text.size());
  return text;
}

SocketAddress any_address(int family, std::uint16_t port) {
  SocketAddress address;
  std::memset(&address, 0, sizeof(address));
  if (family == AF_INET6) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    address.size = sizeof(address.v6);
  } else {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    address.size = sizeof(address.v4);
  }
  return address;
}

/// An address of this host.
SocketAddress own_address(const std::string& source, std::uint16_t port) {
  const std::vector<SocketAddress> found = find_host(source, port, read_hosts_file());
  if (!found.empty()) return found.front();
  fail("'%s' is neither an IP address nor a name in /etc/hosts: give an address of this host",
       source.c_str());
}

/// One attempt at one address: 0, or the errno of why not.
int try_connect(const SocketAddress& address, const SocketAddress* source, const Deadline& deadline,
                const StopSignals& stop, Socket* out) {
  Socket socket(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0) return errno;
  if (source != nullptr && bind(socket.fd(), &source->any, source->size) != 0) return errno;
  if (connect(socket.fd(), &address.any, address.size) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(socket.fd(), POLLOUT, deadline.left(), stop)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    if (error != 0) return error;
  }
  *out = std::move(socket);
  return 0;
}

void prepare(int fd) {
  const int on = 1;  // 52 bytes, then an answer: waiting for more to send would only delay it
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A server waits as long as its client measures: a host that has gone without a word is found out
  // in half a minute.
  const int idle_s = 10, between_s = 5, times = 4;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Listener::Listener(std::uint16_t port, int clients, const std::string& source) {
  std::optional<SocketAddress> only;
  if (!source.empty()) only = own_address(source, port);
  // An IPv6 socket takes IPv4 clients too; without IPv6 in the kernel, IPv4 alone.
  int family = only ? only->any.sa_family : AF_INET6;
  socket_ = Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket_.fd() < 0 && !only) {
    family = AF_INET;
    socket_ = Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  if (socket_.fd() < 0) fail("Couldn't make a TCP socket: %s", std::strerror(errno));
  const int on = 1, off = 0;
  setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // past TIME_WAIT only
  if (family == AF_INET6) setsockopt(socket_.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));

  SocketAddress address = only ? *only : any_address(family, port);
  int error = bind(socket_.fd(), &address.any, address.size) == 0 ? 0 : errno;
  if (error == EADDRNOTAVAIL && only) {
    fail("'%s' is no address of this host to listen at", source.c_str());
  }
  if (error == EADDRNOTAVAIL && family == AF_INET6) {  // IPv6 compiled in, but switched off
    socket_ = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    address = any_address(AF_INET, port);
    error = bind(socket_.fd(), &address.any, address.size) == 0 ? 0 : errno;
  }
  if (error == 0 && listen(socket_.fd(), clients) != 0) error = errno;
  if (error == EADDRINUSE) {
    fail("Couldn't listen to port %d: another program does; stop it or choose a port with -p",
         port);
  }
  if (error == EACCES) {
    fail("Couldn't listen to port %d: it is reserved for root; choose one above 1023 with -p",
         port);
  }
  if (error != 0) fail("Couldn't listen to port %d: %s", port, std::strerror(error));
  getsockname(socket_.fd(), &address.any, &address.size);
  port_ = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

Conversation Conversation::accept(Listener listener, const StopSignals& stop) {
  return accept_next(listener, stop);
}

Conversation Conversation::accept_next(const Listener& listener, const StopSignals& stop) {
  for (;;) {
    wait_for(listener.socket_.fd(), POLLIN, -1, stop);
    SocketAddress peer;
    peer.size = sizeof(peer.v6);
    Socket socket(
        accept4(listener.socket_.fd(), &peer.any, &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.fd() >= 0) {
      prepare(socket.fd());
      return Conversation(std::move(socket), peer.text(), stop);
    }
    // A client that left before we looked is not our failure; a lack of descriptors is.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      fail("accept() failed: %s", std::strerror(errno));
    }
  }
}

Conversation Conversation::connect(const std::string& host, std::uint16_t port,
                                   const StopSignals& stop, long connect_ms,
                                   const std::string& source) {
  const std::vector<SocketAddress> addresses = find_host(host, port, read_hosts_file());
  if (addresses.empty()) {
    fail(
        "'%s' is neither an IP address nor a name in /etc/hosts: give the address of the server "
        "(this program does not ask DNS)",
        host.c_str());
  }
  std::optional<SocketAddress> from;
  if (!source.empty()) from = own_address(source, 0);
  const Deadline deadline(connect_ms);
  int error = 0;
  for (;;) {
    bool refused = false;
    for (const SocketAddress& address : addresses) {
      Socket socket;
      error = try_connect(address, from ? &*from : nullptr, deadline, stop, &socket);
      if (error == 0) {
        prepare(socket.fd());
        return Conversation(std::move(socket), address.text(), stop);
      }
      refused |= error == ECONNREFUSED;
    }
    if (!refused || deadline.over()) break;
    wait_for(-1, 0, std::min<long>(kRefusedPauseMs, deadline.left()), stop);
  }
  if (from && (error == EADDRNOTAVAIL || error == EINVAL || error == EAFNOSUPPORT)) {
    fail("Couldn't connect to %s:%d from '%s': %s; is it an address of this host, of that family?",
         host.c_str(), port, source.c_str(), std::strerror(error));
  }
  if (error == ECONNREFUSED) {
    fail(
        "Couldn't connect to %s:%d: nobody listened there for %ld s; start the server first, or "
        "check -p",
        host.c_str(), port, connect_ms / 1000);
  }
  fail("Couldn't connect to %s:%d: %s; is it the right host, and does its firewall let -p %d in?",
       host.c_str(), port, std::strerror(error), port);
}

void Conversation::send_all(const char* bytes, std::size_t size) {
  // A fresh connection has room for an address; many of them may have to wait for the reader.
  const Deadline deadline(kExchangeMs);
  for (std::size_t done = 0; done < size;) {
    const ssize_t sent = send(socket_.fd(), bytes + done, size - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      fail("Couldn't send local address: the program at %s is gone (%s)", peer_.c_str(),
           std::strerror(errno));
    }
    if (!wait_for(socket_.fd(), POLLOUT, deadline.left(), stop_)) {
      fail("Couldn't send local address: %s took %zu of %zu bytes in %ld s; is it %s?",
           peer_.c_str(), done, size, kExchangeMs / 1000, program_);
    }
  }
}

void Conversation::receive_all(char* bytes, std::size_t size, long milliseconds, const char* what) {
  const Deadline deadline(milliseconds);
  std::size_t have = 0;
  while (have < size) {
    if (!wait_for(socket_.fd(), POLLIN, deadline.left(), stop_)) {
      fail("%s: %s sent %zu of %zu bytes in %ld s; is it %s, and alive?", what, peer_.c_str(), have,
           size, milliseconds / 1000, program_);
    }
    const ssize_t got = recv(socket_.fd(), bytes + have, size - have, 0);
    if (got > 0) {
      have += static_cast<std::size_t>(got);
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH)) {
      fail("%s: the host of %s answers no more (%s)", what, peer_.c_str(), std::strerror(errno));
    }
    const std::string sent = printable({bytes, have});
    fail("%s: %s closed the connection after %zu of %zu bytes ('%s'); look at its own message",
         what, peer_.c_str(), have, size, sent.c_str());
  }
}

void Conversation::send_addresses(std::span<const QpAddress> addresses) {
  std::string bytes;
  for (const QpAddress& address : addresses) {
    const QpAddressBytes one = encode(address);
    bytes.append(one.data(), one.size());
  }
  send_all(bytes.data(), bytes.size());
}

std::vector<QpAddress> Conversation::receive_addresses(std::size_t count, long exchange_ms) {
  std::vector<char> bytes(count * kQpAddressSize);
  receive_all(bytes.data(), bytes.size(), exchange_ms, "Couldn't read remote address");
  std::vector<QpAddress> addresses;
  for (std::size_t at = 0; at < bytes.size(); at += kQpAddressSize) {
    const std::span<const char, kQpAddressSize> one(bytes.data() + at, kQpAddressSize);
    const auto address = decode(one);
    if (!address) {
      fail(
          "Couldn't read remote address: %s sent '%s...' where lid:qpn:psn:gid belongs; is that a "
          "pingpong program?",
          peer_.c_str(), printable({one.data(), one.size()}).c_str());
    }
    addresses.push_back(*address);
  }
  return addresses;
}

void Conversation::send_done() { send_all(kDone, sizeof(kDone)); }

void Conversation::receive_done(long exchange_ms) {
  char bytes[sizeof(kDone)];
  receive_all(bytes, sizeof(bytes), exchange_ms, "Couldn't send/recv local address");
  if (std::memcmp(bytes, kDone, sizeof(bytes)) != 0) {
    fail("Couldn't send/recv local address: %s sent '%s' where 'done' belongs", peer_.c_str(),
         printable({bytes, sizeof(bytes)}).c_str());
  }
}

bool Conversation::hung_up() const {
  char byte;
  const ssize_t got = recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

bool Conversation::has_spoken() const {
  char byte;
  return recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool Conversation::speaks_within(long milliseconds) const {
  return wait_for(socket_.fd(), POLLIN, milliseconds, stop_) && has_spoken();
}

void Conversation::finish(long milliseconds) {
  shutdown(socket_.fd(), SHUT_WR);
  const Deadline deadline(milliseconds);
  char sink[64];
  while (wait_for(socket_.fd(), POLLIN, deadline.left(), stop_)) {
    const ssize_t got = recv(socket_.fd(), sink, sizeof(sink), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (deadline.over()) return;  // a stranger that talks on and on
  }
}

}  // namespace verbatim::cli
