// SPDX-License-Identifier: BSD-2-Clause
// Floors of UDP over loopback: what a transport of datagrams cannot undercut on one host. There and
// back with both ends polling (F6) or asleep (F7); in bulk by one core, one datagram a call (F8) or
// fifteen (F9). 4140 bytes are a RoCE packet of 4 KiB with its headers.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "perf/ends/end.hpp"
#include "perf/ends/wire.hpp"
#include "perf/floors/floors.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/process.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace verbatim::perf {
namespace {

constexpr std::size_t kPacket = 4140;
constexpr std::size_t kPacketsOfATrain = 15;
// A block that meets none for so long has failed: loopback does not lose what there is room for.
constexpr timeval kPatience = {10, 0};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Fd open_socket() {
  Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail("UDP socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) fail("bind to loopback");
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  return fd;
}

in_port_t port_of(const Fd& fd) {
  sockaddr_in own{};
  socklen_t length = sizeof own;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) fail("getsockname");
  return own.sin_port;
}

void connect_to(const Fd& fd, in_port_t port) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = port;
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer) != 0) fail("connect");
}

void send_all(const Fd& fd, const std::vector<std::byte>& bytes) {
  if (send(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail("send a datagram");
  }
}

std::size_t receive(const Fd& fd, std::vector<std::byte>& room, bool spins) {
  const std::uint64_t limit = now_ns() + 10'000'000'000u;
  for (unsigned looks = 1;; ++looks) {
    const ssize_t got = recv(fd.get(), room.data(), room.size(), spins ? MSG_DONTWAIT : 0);
    if (got > 0) return static_cast<std::size_t>(got);
    if (!spins || (errno != EAGAIN && errno != EINTR)) fail("receive a datagram");
    if (looks % 65536 == 0 && now_ns() > limit) fail("receive a datagram");
  }
}

}  // namespace

void run_datagram_ping_pong(End& end, const Request& request, Reply& reply) {
  const bool spins = request.floor == Floor::kDatagramSpin;
  const Fd socket = open_socket();
  connect_to(socket, exchange_record(end.peer_fd(), port_of(socket)));
  std::vector<std::byte> message(request.size), room(request.size);
  end.meet();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (end.is_near()) send_all(socket, message);
    receive(socket, room, spins);
    if (!end.is_near()) send_all(socket, message);
  }
  const double messages = 2.0 * static_cast<double>(request.iterations);
  count_block(reply, start, now_ns(), messages, messages * static_cast<double>(request.size));
}

void run_datagram_bulk(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  const bool trains = request.floor == Floor::kDatagramTrains;
  const Fd sender = open_socket();
  const Fd receiver = open_socket();
  connect_to(sender, port_of(receiver));
  const int segment = kPacket, on = 1;
  if (trains &&
      (setsockopt(sender.get(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0 ||
       setsockopt(receiver.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0)) {
    return say_unavailable(reply, "the kernel has no UDP_SEGMENT or UDP_GRO");
  }
  const std::size_t packets = trains ? kPacketsOfATrain : 1;
  const std::vector<std::byte> train(packets * kPacket);
  std::vector<std::byte> room(std::size_t{64} << 10);
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    send_all(sender, train);
    for (std::size_t got = 0; got < train.size();) got += receive(receiver, room, false);
  }
  const auto sent = static_cast<double>(request.iterations * packets);
  count_block(reply, start, now_ns(), sent, sent * static_cast<double>(kPacket));
}

}  // namespace verbatim::perf
