// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/wake_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

/// The queue has net.unix.max_dgram_qlen places, 10 unless somebody changed it.
constexpr int kDatagramsPerWake = 32;

/// The device of the file system where a socket has its place; 0: it is no socket's. Asks no file
/// system's server, who may be the stranger.
std::uint64_t device_of_place(int place) noexcept {
  struct statx status {};
  if (::statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISSOCK(status.stx_mode))
    return 0;
  return std::uint64_t{status.stx_dev_major} << 32 | status.stx_dev_minor;
}

}  // namespace

int WakeSocket::open(FabricFolder& folder) noexcept {
  UniqueFd socket;
  UniqueFd place;
  const int error = folder.bind_apart(socket, place);
  socket_ = static_cast<UniqueFd&&>(socket);
  place_ = static_cast<UniqueFd&&>(place);
  device_ = error == 0 ? device_of_place(place_.get()) : 0;
  return error;
}

void WakeSocket::close() noexcept {
  socket_.reset();
  place_.reset();
}

void WakeSocket::drain() noexcept {
  if (!socket_.valid()) return;
  char byte;
  for (int i = 0; i < kDatagramsPerWake; ++i) {
    // Descriptors that came along are gone with the datagram: there is no room for them.
    if (::recv(socket_.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != EINTR)
      return;
  }
}

void WakeSockets::close() noexcept {
  told_.close();
  for (WakeSocket& former : former_) former.close();
}

bool WakeSockets::tell_of_one_beside(const WakeSocket& other) noexcept {
  if (told_.is_beside(other)) return true;
  for (WakeSocket& wanted : former_) {
    if (wanted.fd() < 0 || !wanted.is_beside(other)) continue;
    for (WakeSocket* former = former_; former <= &wanted; ++former) std::swap(told_, *former);
    return true;
  }
  return false;
}

void WakeSockets::tell_of(WakeSocket fresh) noexcept {
  for (WakeSocket& former : former_) std::swap(told_, former);
  told_ = std::move(fresh);
}

void WakeSockets::drain() noexcept {
  told_.drain();
  for (WakeSocket& former : former_) former.drain();
}

int WakeSocket::connect(int place, UniqueFd& out) const noexcept {
  if (device_ == 0 || device_of_place(place) != device_) return EPROTO;
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno;
  sockaddr_un way{};
  way.sun_family = AF_UNIX;
  std::snprintf(way.sun_path, sizeof way.sun_path, "/proc/self/fd/%d", place);
  int error = 0;
  do {
    error = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&way), sizeof way) == 0
                ? 0
                : errno;
  } while (error == EINTR);
  if (error == 0) {
    out = static_cast<UniqueFd&&>(socket);
  } else if (error == ECONNREFUSED) {
    return 0;  // it has ended since it said hello: what it had sent is met all the same
  } else if (error == ENOENT) {
    log_info("without /proc a peer is not woken: it looks every 50 ms");
    return 0;
  }
  return error == EPROTOTYPE ? EPROTO : error;
}

void wake_through(int socket) noexcept {
  const char byte = 0;
  while (::send(socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace verbatim::shm
