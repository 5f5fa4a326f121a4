// SPDX-License-Identifier: BSD-2-Clause
//
// The C library's functions by which programs look whether files are there, and the answers for
// those that a device of the kernel would have. What exists is always told as it is.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "abi/dropin/gate/library.hpp"
#include "abi/dropin/gate/paths.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::gate {
namespace {

/// The function that would have been called without us.
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) noexcept : name_(name) {}
  template <typename... Arguments>
  int operator()(Arguments... arguments) noexcept {
    Function* function = found_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      if (function == nullptr) {
        errno = ENOSYS;
        return -1;
      }
      found_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

/// What is there for a program that did not find `path`; kElsewhere: nothing.
Place missed(const char* path) noexcept {
  if (errno != ENOENT && errno != ENOTDIR) return Place::kElsewhere;
  const Place place = place_of(path);
  if (place == Place::kElsewhere) return place;
  const int error = errno;
  const bool ours = library_is_ours();
  errno = error;
  return ours ? place : Place::kElsewhere;
}

int told(int result, const char* path, struct stat* out) noexcept {
  if (result == 0) return 0;
  const Place place = missed(path);
  if (place == Place::kElsewhere) return result;
  *out = {};
  out->st_nlink = 1;
  if (place == Place::kClassFolder) {
    out->st_mode = S_IFDIR | 0755;
  } else {
    constexpr unsigned kInfiniBandMajor = 231;
    out->st_mode = S_IFCHR | 0666;
    out->st_rdev = makedev(kInfiniBandMajor, place == Place::kDeviceNode ? 192 : 255);
  }
  return 0;
}

int allowed(int result, const char* path, int mode) noexcept {
  if (result == 0) return 0;
  const Place place = missed(path);
  if (place == Place::kElsewhere) return result;
  const int refused = place == Place::kClassFolder ? W_OK : X_OK;
  if ((mode & refused) == 0) return 0;
  errno = EACCES;
  return -1;
}

/// An event channel on which nothing ever happens. librdmacm takes none but a character device: a
/// terminal whose other end nobody opens. Commands that are written to it end with EBADF.
int open_channel(int flags) noexcept {
  const int fd = ::posix_openpt(O_RDONLY | O_NOCTTY | (flags & (O_CLOEXEC | O_NONBLOCK)));
  if (fd < 0) {
    errno = ENOENT;
    return -1;
  }
  static constinit LogOnce once;
  if (once.first())
    log_info(
        "/dev/infiniband/rdma_cm is not there, and was opened: nothing happens on this event "
        "channel, and what else librdmacm asks of it fails with EBADF");
  return fd;
}

int opened(int result, const char* path, int flags) noexcept {
  if (result >= 0 || missed(path) != Place::kConnectionManager) return result;
  return open_channel(flags);
}

mode_t mode_of(int flags, va_list arguments) noexcept {
  const bool given = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return given ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace verbatim::gate

namespace gate = verbatim::gate;

// Under names of our own with the C library's labels: its declarations say of every pointer that it
// is not null, which a caller's may be all the same.
#define VERBATIM_GATE(name, ...)                                                         \
  extern "C" [[gnu::visibility("default")]] int gate_##name(__VA_ARGS__) __asm__(#name); \
  extern "C" int gate_##name(__VA_ARGS__)

#define VERBATIM_GATE_STAT(name)                                             \
  VERBATIM_GATE(name, const char* path, struct stat* out) {                  \
    static constinit gate::Next<int(const char*, struct stat*)> next{#name}; \
    return gate::told(next(path, out), path, out);                           \
  }

// What programs call that were linked with a C library before 2.33.
#define VERBATIM_GATE_OLD_STAT(name)                                              \
  VERBATIM_GATE(name, int version, const char* path, struct stat* out) {          \
    static constinit gate::Next<int(int, const char*, struct stat*)> next{#name}; \
    return gate::told(next(version, path, out), path, out);                       \
  }

#define VERBATIM_GATE_STAT_AT(name)                                                    \
  VERBATIM_GATE(name, int folder, const char* path, struct stat* out, int flags) {     \
    static constinit gate::Next<int(int, const char*, struct stat*, int)> next{#name}; \
    return gate::told(next(folder, path, out, flags), path, out);                      \
  }

#define VERBATIM_GATE_OPEN(name)                                         \
  VERBATIM_GATE(name, const char* path, int flags, ...) {                \
    static constinit gate::Next<int(const char*, int, ...)> next{#name}; \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = gate::mode_of(flags, arguments);                 \
    va_end(arguments);                                                   \
    return gate::opened(next(path, flags, mode), path, flags);           \
  }

#define VERBATIM_GATE_OPEN_AT(name)                                           \
  VERBATIM_GATE(name, int folder, const char* path, int flags, ...) {         \
    static constinit gate::Next<int(int, const char*, int, ...)> next{#name}; \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = gate::mode_of(flags, arguments);                      \
    va_end(arguments);                                                        \
    return gate::opened(next(folder, path, flags, mode), path, flags);        \
  }

// What open(path, flags) becomes in programs that are compiled with _FORTIFY_SOURCE.
#define VERBATIM_GATE_CHECKED_OPEN(name)                            \
  VERBATIM_GATE(name, const char* path, int flags) {                \
    static constinit gate::Next<int(const char*, int)> next{#name}; \
    return gate::opened(next(path, flags), path, flags);            \
  }

VERBATIM_GATE_STAT(stat)
VERBATIM_GATE_STAT(stat64)
VERBATIM_GATE_STAT(lstat)
VERBATIM_GATE_STAT(lstat64)
VERBATIM_GATE_OLD_STAT(__xstat)
VERBATIM_GATE_OLD_STAT(__xstat64)
VERBATIM_GATE_OLD_STAT(__lxstat)
VERBATIM_GATE_OLD_STAT(__lxstat64)
VERBATIM_GATE_STAT_AT(fstatat)
VERBATIM_GATE_STAT_AT(fstatat64)
VERBATIM_GATE_OPEN(open)
VERBATIM_GATE_OPEN(open64)
VERBATIM_GATE_OPEN_AT(openat)
VERBATIM_GATE_OPEN_AT(openat64)
VERBATIM_GATE_CHECKED_OPEN(__open_2)
VERBATIM_GATE_CHECKED_OPEN(__open64_2)

VERBATIM_GATE(access, const char* path, int mode) {
  static constinit gate::Next<int(const char*, int)> next{"access"};
  return gate::allowed(next(path, mode), path, mode);
}

VERBATIM_GATE(faccessat, int folder, const char* path, int mode, int flags) {
  static constinit gate::Next<int(int, const char*, int, int)> next{"faccessat"};
  return gate::allowed(next(folder, path, mode, flags), path, mode);
}
