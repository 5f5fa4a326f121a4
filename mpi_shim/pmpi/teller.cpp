// SPDX-License-Identifier: BSD-2-Clause
// Who has bound a name of Linux's abstract ones is the first. It goes away with the process, and is nowhere
// in a file system.
#include "mpi_shim/pmpi/teller.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace vmpi::pmpi {
namespace {

constexpr int kLines = 2;
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool are_mine[kLines] = {};

/// False: another process has it.
[[nodiscard]] bool take_name(Line line) noexcept {
  // Whom init has taken in, or who is init's own, has no launcher to be known by.
  const auto parent = static_cast<long>(::getppid());
  if (parent <= 1) return true;
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  constexpr std::size_t kRoom = sizeof name.sun_path - 1;
  const int length =
      std::snprintf(name.sun_path + 1, kRoom, "verbatim-pmpi-%lu-%ld-%d",
                    static_cast<unsigned long>(::getuid()), parent, static_cast<int>(line));
  // It stays open until the process ends.
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0 || length < 0) return true;
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1) + static_cast<socklen_t>(length);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), bytes) == 0) return true;
  const bool is_anothers = errno == EADDRINUSE;
  (void)::close(socket);
  return !is_anothers;
}

}  // namespace

bool is_mine_to_tell(Line line) noexcept {
  (void)::pthread_mutex_lock(&lock);
  bool& is_mine = are_mine[static_cast<int>(line)];
  if (!is_mine) is_mine = take_name(line);
  const bool answer = is_mine;
  (void)::pthread_mutex_unlock(&lock);
  return answer;
}

}  // namespace vmpi::pmpi
