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
  UniqueFd opened(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!opened.valid()) return opened;
  // The number may have gone to another process meanwhile; then the socket has ended.
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  int looked;
  do {
    looked = ::poll(&end, 1, 0);
  } while (looked < 0 && errno == EINTR);
  if (looked < 0 || (end.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) opened.reset();
  return opened;
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
