// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/peer_life.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace verbatim::shm {
namespace {

constexpr int kSoPeerPidfd = 77;  // SO_PEERPIDFD, since Linux 6.5

/// What there is of `events` now; negative: it cannot be told.
int look(int fd, short events) noexcept {
  pollfd at{.fd = fd, .events = events, .revents = 0};
  int looked;
  do {
    looked = ::poll(&at, 1, 0);
  } while (looked < 0 && errno == EINTR);
  return looked < 0 ? looked : at.revents;
}

}  // namespace

bool peer_credentials(int socket, pid_t& pid, unsigned& uid) noexcept {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  pid = credentials.pid;
  uid = credentials.uid;
  return credentials.uid == ::geteuid();
}

UniqueFd open_peer_pidfd(int socket, pid_t pid) noexcept {
  if (pid <= 0) return UniqueFd();
  int fd = -1;
  socklen_t length = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &fd, &length) == 0) return UniqueFd(fd);
  if (errno != ENOPROTOOPT) {
    // Until Linux 6.15 EINVAL says so: its number may be another's by now.
    if (errno == EINVAL) errno = ESRCH;
    return UniqueFd();
  }
  UniqueFd opened(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!opened.valid()) return opened;
  // The number may have gone to another process meanwhile; then the socket has ended.
  const int end = look(socket, POLLRDHUP);
  if (end < 0 || (end & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
    opened.reset();
    errno = ENOTCONN;
  }
  return opened;
}

bool peer_has_ended(int socket, pid_t pid) noexcept {
  if (pid <= 0) return false;
  const UniqueFd process = open_peer_pidfd(socket, pid);
  // Of who has been waited for, older kernels have no descriptor.
  if (!process.valid()) return errno == ESRCH;
  const int end = look(process.get(), POLLIN);
  return end > 0 && (end & POLLIN) != 0;
}

bool life_lock_held(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool life_lock_is_others(int fd, pid_t pid) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid != pid;
}

}  // namespace verbatim::shm
