// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/process_life.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vmpi {
namespace {

/// A small file of /proc as a string. False: errno says why.
bool read_text(const char* path, char* out, std::size_t room) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = ::read(fd, out, room - 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  if (got < 0) return false;
  out[got] = '\0';
  return true;
}

/// State and start time (proc(5), fields 3 and 22 of stat), behind the name, which may hold
/// anything.
bool read_stat(std::int32_t process, char& state, std::uint64_t& began) noexcept {
  char path[32];
  (void)std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  char text[1024];
  if (!read_text(path, text, sizeof text)) return false;
  const char* at = std::strrchr(text, ')');
  errno = EPROTO;
  if (at == nullptr || at[1] != ' ') return false;
  at += 2;
  state = *at;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return false;
    ++at;
  }
  began = std::strtoull(at, nullptr, 10);
  return true;
}

}  // namespace

std::uint64_t host_identity() noexcept {
  char boot[64];
  struct stat space;
  if (!read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot) ||
      ::stat("/proc/self/ns/pid", &space) != 0)
    return 0;
  std::uint64_t hash = 0xcbf29ce484222325u ^ space.st_ino;
  for (const char* at = boot; *at != '\0' && *at != '\n'; ++at)
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
  return hash | 1;
}

std::uint64_t start_of_process(std::int32_t process) noexcept {
  char state = 0;
  std::uint64_t began = 0;
  return read_stat(process, state, began) ? began : 0;
}

bool is_alive(std::int32_t process, std::uint64_t began) noexcept {
  char state = 0;
  std::uint64_t now = 0;
  if (!read_stat(process, state, now)) return errno != ENOENT && errno != ESRCH;
  return state != 'Z' && state != 'X' && (began == 0 || now == began);
}

}  // namespace vmpi
