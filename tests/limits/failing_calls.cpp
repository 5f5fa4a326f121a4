// SPDX-License-Identifier: BSD-2-Clause
#include "tests/limits/failing_calls.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim::harness {
namespace {

std::atomic<bool> armed{false};
std::atomic<unsigned> count{0};
std::atomic<unsigned> target{0};
std::atomic<const char*> failed{nullptr};

/// The service thread looks at its descriptors again and again, as often as the life lasts. These
/// many looks stand for all.
constexpr unsigned kLooks = 60;
std::atomic<unsigned> looks{0};

bool fails(const char* name) {
  if (!armed.load(std::memory_order_acquire)) return false;
  if (std::strcmp(name, "fstat") == 0 && looks.fetch_add(1) >= kLooks) return false;
  if (count.fetch_add(1) + 1 != target.load()) return false;
  failed = name;
  return true;
}

}  // namespace

void arm_failure(unsigned which) {
  count = 0;
  looks = 0;
  target = which;
  failed = nullptr;
  armed = true;
}

unsigned disarm_failure() {
  armed = false;
  return count.load();
}

std::string failed_call() {
  const char* name = failed.load();
  return name == nullptr ? "" : name;
}

}  // namespace verbatim::harness

// Each has its line in calls.txt.
#define VBT_FAILING(type, name, parameters, arguments, value, error) \
  extern "C" type __real_##name parameters;                          \
  extern "C" type __wrap_##name parameters;                          \
  extern "C" type __wrap_##name parameters {                         \
    if (verbatim::harness::fails(#name)) {                           \
      errno = error;                                                 \
      return value;                                                  \
    }                                                                \
    return __real_##name arguments;                                  \
  }

VBT_FAILING(void*, malloc, (std::size_t n), (n), nullptr, ENOMEM)
VBT_FAILING(void*, calloc, (std::size_t n, std::size_t m), (n, m), nullptr, ENOMEM)
VBT_FAILING(void*, realloc, (void* p, std::size_t n), (p, n), nullptr, ENOMEM)
VBT_FAILING(void*, aligned_alloc, (std::size_t a, std::size_t n), (a, n), nullptr, ENOMEM)
VBT_FAILING(void*, mmap, (void* p, std::size_t n, int prot, int flags, int fd, off_t at),
            (p, n, prot, flags, fd, at), MAP_FAILED, ENOMEM)
VBT_FAILING(int, madvise, (void* p, std::size_t n, int advice), (p, n, advice), -1, ENOMEM)
VBT_FAILING(int, open, (const char* path, int flags, mode_t mode), (path, flags, mode), -1, EMFILE)
VBT_FAILING(int, openat, (int dir, const char* path, int flags, mode_t mode),
            (dir, path, flags, mode), -1, EMFILE)
VBT_FAILING(int, fcntl, (int fd, int command, long argument), (fd, command, argument), -1, EMFILE)
VBT_FAILING(int, dup3, (int from, int to, int flags), (from, to, flags), -1, EBUSY)
VBT_FAILING(int, fstat, (int fd, struct stat* out), (fd, out), -1, EIO)
VBT_FAILING(int, ftruncate, (int fd, off_t n), (fd, n), -1, ENOSPC)
VBT_FAILING(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1, ENOSPC)
VBT_FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
VBT_FAILING(int, flock, (int fd, int operation), (fd, operation), -1, ENOLCK)
VBT_FAILING(int, mkdirat, (int dir, const char* path, mode_t mode), (dir, path, mode), -1, ENOSPC)
VBT_FAILING(int, unlinkat, (int dir, const char* path, int flags), (dir, path, flags), -1, EIO)
VBT_FAILING(int, epoll_create1, (int flags), (flags), -1, EMFILE)
VBT_FAILING(int, epoll_ctl, (int epoll, int operation, int fd, epoll_event* event),
            (epoll, operation, fd, event), -1, ENOSPC)
VBT_FAILING(int, eventfd, (unsigned value, int flags), (value, flags), -1, EMFILE)
VBT_FAILING(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
VBT_FAILING(int, bind, (int fd, const sockaddr* at, socklen_t n), (fd, at, n), -1, ENOMEM)
VBT_FAILING(int, listen, (int fd, int backlog), (fd, backlog), -1, ENOMEM)
VBT_FAILING(int, connect, (int fd, const sockaddr* to, socklen_t n), (fd, to, n), -1, ENOMEM)
VBT_FAILING(int, accept4, (int fd, sockaddr* from, socklen_t* n, int flags), (fd, from, n, flags),
            -1, EMFILE)
VBT_FAILING(int, getsockopt, (int fd, int level, int name, void* value, socklen_t* n),
            (fd, level, name, value, n), -1, ENOMEM)
VBT_FAILING(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags), -1,
            ENOMEM)
VBT_FAILING(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), -1,
            ENOMEM)
VBT_FAILING(ssize_t, process_vm_readv,
            (pid_t pid, const iovec* to, unsigned long a, const iovec* from, unsigned long b,
             unsigned long flags),
            (pid, to, a, from, b, flags), -1, EPERM)
VBT_FAILING(ssize_t, process_vm_writev,
            (pid_t pid, const iovec* from, unsigned long a, const iovec* to, unsigned long b,
             unsigned long flags),
            (pid, from, a, to, b, flags), -1, EPERM)

VBT_FAILING(int, epoll_wait, (int epoll, epoll_event* events, int n, int timeout),
            (epoll, events, n, timeout), -1, EINTR)
VBT_FAILING(int, poll, (pollfd * fds, nfds_t n, int timeout), (fds, n, timeout), -1, EINTR)
VBT_FAILING(ssize_t, getrandom, (void* bytes, std::size_t n, unsigned flags), (bytes, n, flags), -1,
            EAGAIN)
VBT_FAILING(DIR*, opendir, (const char* path), (path), nullptr, EMFILE)
VBT_FAILING(DIR*, fdopendir, (int fd), (fd), nullptr, ENOMEM)
VBT_FAILING(dirent*, readdir, (DIR * entries), (entries), nullptr, EIO)
VBT_FAILING(int, stat, (const char* path, struct stat* out), (path, out), -1, EACCES)
VBT_FAILING(int, fstatat, (int dir, const char* path, struct stat* out, int flags),
            (dir, path, out, flags), -1, EACCES)
VBT_FAILING(int, statx, (int dir, const char* path, int flags, unsigned mask, struct statx* out),
            (dir, path, flags, mask, out), -1, ENOSYS)
VBT_FAILING(int, fstatfs, (int fd, struct statfs* out), (fd, out), -1, EIO)
VBT_FAILING(int, faccessat, (int dir, const char* path, int mode, int flags),
            (dir, path, mode, flags), -1, EACCES)
VBT_FAILING(int, fchmodat, (int dir, const char* path, mode_t mode, int flags),
            (dir, path, mode, flags), -1, EPERM)
VBT_FAILING(int, renameat, (int from, const char* path, int to, const char* name),
            (from, path, to, name), -1, ENOSPC)
VBT_FAILING(ssize_t, readlink, (const char* path, char* out, std::size_t n), (path, out, n), -1,
            EACCES)
VBT_FAILING(int, ioctl, (int fd, unsigned long request, void* argument), (fd, request, argument),
            -1, ENOTTY)
VBT_FAILING(int, prctl,
            (int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
            (what, a, b, c, d), -1, EINVAL)
VBT_FAILING(int, mlock, (const void* p, std::size_t n), (p, n), -1, ENOMEM)
VBT_FAILING(int, munlock, (const void* p, std::size_t n), (p, n), -1, ENOMEM)
VBT_FAILING(int, pipe2, (int* ends, int flags), (ends, flags), -1, EMFILE)
VBT_FAILING(int, shutdown, (int fd, int how), (fd, how), -1, ENOTCONN)
VBT_FAILING(char*, strdup, (const char* text), (text), nullptr, ENOMEM)
VBT_FAILING(int, sched_getcpu, (), (), -1, ENOSYS)

// Reading an eventfd that holds something, and waking by it, may only be interrupted: the same
// errno for all. The log, and the pipes by which the tests watch it, are not the library's.
extern "C" ssize_t __real_read(int fd, void* bytes, std::size_t n);
extern "C" ssize_t __wrap_read(int fd, void* bytes, std::size_t n);
extern "C" ssize_t __wrap_read(int fd, void* bytes, std::size_t n) {
  struct stat about {};
  const bool watches = __real_fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) && n > 1;
  if (!watches && verbatim::harness::fails("read")) {
    errno = EINTR;
    return -1;
  }
  return __real_read(fd, bytes, n);
}
extern "C" ssize_t __real_write(int fd, const void* bytes, std::size_t n);
extern "C" ssize_t __wrap_write(int fd, const void* bytes, std::size_t n);
extern "C" ssize_t __wrap_write(int fd, const void* bytes, std::size_t n) {
  if (fd != STDERR_FILENO && verbatim::harness::fails("write")) {
    errno = n == sizeof(std::uint64_t) ? EINTR : ENOSPC;
    return -1;
  }
  return __real_write(fd, bytes, n);
}

// Wakes are one byte; what this program has to say to its partner is longer, and left alone.
#define VBT_FAILING_BYTE(name, buffer, error)                                        \
  extern "C" ssize_t __real_##name(int fd, buffer bytes, std::size_t n, int flags);  \
  extern "C" ssize_t __wrap_##name(int fd, buffer bytes, std::size_t n, int flags);  \
  extern "C" ssize_t __wrap_##name(int fd, buffer bytes, std::size_t n, int flags) { \
    if (n == 1 && verbatim::harness::fails(#name)) {                                 \
      errno = error;                                                                 \
      return -1;                                                                     \
    }                                                                                \
    return __real_##name(fd, bytes, n, flags);                                       \
  }

VBT_FAILING_BYTE(send, const void*, ENOBUFS)
VBT_FAILING_BYTE(recv, void*, ENOMEM)

// Not through errno.
extern "C" int __real_pthread_create(pthread_t* thread, const pthread_attr_t* how,
                                     void* (*body)(void*), void* argument);
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* how,
                                     void* (*body)(void*), void* argument);
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* how,
                                     void* (*body)(void*), void* argument) {
  if (verbatim::harness::fails("pthread_create")) return EAGAIN;
  return __real_pthread_create(thread, how, body, argument);
}

// memfd_create, pidfd_open and membarrier, where they have no function of their own. A futex is
// left alone: its failures are a lock's business, and none that a correct program can see.
extern "C" long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number != SYS_futex && verbatim::harness::fails("syscall")) {
    errno = number == SYS_membarrier ? EPERM : EMFILE;
    return -1;
  }
  return __real_syscall(number, a, b, c, d, e, f);
}
