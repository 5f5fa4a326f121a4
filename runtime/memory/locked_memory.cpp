// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/locked_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim {

LockLimit read_lock_limit() noexcept {
  LockLimit answer;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    answer.limit = limit.rlim_cur;
  char text[8192];
  constexpr const char* kName = "\nVmLck:";
  if (read_proc_text("/proc/self/status", text, sizeof text)) {
    const char* const line = std::strstr(text, kName);
    if (line != nullptr) answer.used = std::strtoull(line + std::strlen(kName), nullptr, 10) << 10;
  }
  return answer;
}

int lock_memory(const void* base, std::uint64_t bytes, const char* what) noexcept {
  if (::mlock(base, bytes) == 0) return 0;
  const int error = errno == EPERM ? EPERM : ENOMEM;
  const LockLimit lock = read_lock_limit();
  const auto kib = [](std::uint64_t count) { return static_cast<unsigned long long>(count >> 10); };
  if (lock.limit != ~std::uint64_t{0} &&
      bytes > lock.limit - (lock.used < lock.limit ? lock.used : lock.limit)) {
    log_error(
        "%s: %llu KiB to lock, the limit is %llu KiB and %llu KiB are locked: raise 'ulimit -l' "
        "(memlock in limits.conf, LimitMEMLOCK= in systemd, --ulimit memlock of a container)",
        what, kib(bytes), kib(lock.limit), kib(lock.used));
  } else {
    log_error("%s: locking %llu KiB: %s", what, kib(bytes), std::strerror(error));
  }
  return error;
}

}  // namespace verbatim
