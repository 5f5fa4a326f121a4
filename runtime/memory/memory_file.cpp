// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/memory_file.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/memory/memory_headroom.hpp"
#include "runtime/memory/sparse_map.hpp"

namespace verbatim {
namespace {

// Since Linux 6.3: never executable. A system may demand it (sysctl vm.memfd_noexec).
constexpr unsigned kMemfdNoexecSeal = 0x8;

// A signal undoes what the interrupted call had allocated: with a profiler's timer running, only
// short steps end.
constexpr std::uint64_t kBackingStep = 4u << 20;
constexpr int kMaxInterruptions = 1000;

constexpr unsigned long long kib(std::uint64_t bytes) { return bytes >> 10; }

}  // namespace

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::uint64_t file_size_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return ~std::uint64_t{0};
  }
  return limit.rlim_cur;
}

std::uint64_t address_space_left() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return ~std::uint64_t{0};
  }
  char text[256];
  const std::uint64_t used = read_proc_text("/proc/self/statm", text, sizeof text)
                                 ? std::strtoull(text, nullptr, 10) * page_bytes()
                                 : 0;
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

int make_memory_file(const char* name, std::uint64_t size, UniqueFd& fd) noexcept {
  if (size > file_size_limit()) {
    log_error(
        "a file of %llu KiB in memory (%s) is above the file size limit of %llu KiB: raise 'ulimit "
        "-f'",
        kib(size), name, kib(file_size_limit()));
    return ENOMEM;
  }
  int made = static_cast<int>(
      ::syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kMemfdNoexecSeal));
  if (made < 0 && errno == EINVAL) {
    made = static_cast<int>(::syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (made < 0) {
    const int error = errno;
    log_error("memfd_create for %s: %s%s", name, std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  fd.reset(made);
  while (::ftruncate(made, static_cast<off_t>(size)) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    log_error("sizing %s to %llu KiB: %s", name, kib(size), std::strerror(error));
    fd.reset();
    return error;
  }
  return 0;
}

int seal_memory_file(int fd, int seals) noexcept {
  if (::fcntl(fd, F_ADD_SEALS, seals) == 0) return 0;
  if (errno == EINVAL && (seals & F_SEAL_FUTURE_WRITE) != 0 &&
      ::fcntl(fd, F_ADD_SEALS, seals & ~F_SEAL_FUTURE_WRITE) == 0) {
    static constinit LogOnce once;
    if (once.first())
      log_info("this kernel cannot make files read-only for peers (needs Linux 5.1)");
    return 0;
  }
  const int error = errno;
  log_error("sealing a file in memory: %s", std::strerror(error));
  return error;
}

int memory_file_seals(int fd) noexcept {
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) return 0;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals < 0 ? 0 : seals;
}

int back_memory_file(int fd, std::uint64_t offset, std::uint64_t bytes, const char* what,
                     bool check_room) noexcept {
  if (check_room) {
    const int error = check_memory_headroom(bytes, what);
    if (error != 0) return error;
  }
  const std::uint64_t end = offset + bytes;
  int interruptions = 0;
  while (offset < end) {
    const std::uint64_t step = end - offset < kBackingStep ? end - offset : kBackingStep;
    if (::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(step)) == 0) {
      offset += step;
      interruptions = 0;
      continue;
    }
    const int error = errno;
    if (error == EINTR && ++interruptions < kMaxInterruptions) continue;
    log_error("no memory for %s: %llu KiB: %s", what, kib(bytes), std::strerror(error));
    return error == ENOSPC ? ENOMEM : error;
  }
  return 0;
}

int map_memory_file(int fd, std::uint64_t size, const char* what, unsigned char*& base,
                    std::uint64_t alignment, bool sparse) noexcept {
  const auto map = [sparse](void* at, std::uint64_t bytes, int protection, int flags, int file) {
    if (sparse) return map_sparse(at, bytes, protection, flags, file);
    return ::mmap(at, bytes, protection, flags | (at != nullptr ? MAP_FIXED : 0), file, 0);
  };
  const bool huge = size >= kHugePage;
  const std::uint64_t boundary = huge && alignment < kHugePage ? kHugePage : alignment;
  const std::uint64_t slack = boundary > page_bytes() ? boundary : 0;
  void* const area =
      map(nullptr, size + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (area == MAP_FAILED) {
    const int error = errno;
    log_error("mapping %llu KiB of %s: %s%s", kib(size), what, std::strerror(error),
              address_space_left() != ~std::uint64_t{0} ? " (raise 'ulimit -v')" : "");
    return error;
  }
  auto* const start = static_cast<unsigned char*>(area);
  unsigned char* at = start;
  if (slack != 0) {
    at += (boundary - reinterpret_cast<std::uintptr_t>(start) % boundary) % boundary;
    if (at != start) ::munmap(start, static_cast<std::size_t>(at - start));
    // Up to the end of a page: the size of somebody else's file may be anything.
    const std::uint64_t page = page_bytes();
    unsigned char* const used_end = at + (size + page - 1) / page * page;
    unsigned char* const end = start + (size + slack + page - 1) / page * page;
    if (end > used_end) ::munmap(used_end, static_cast<std::size_t>(end - used_end));
  }
  if (map(at, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd) == MAP_FAILED) {
    const int error = errno;
    log_error("mapping %s: %s", what, std::strerror(error));
    ::munmap(at, size);
    return error;
  }
  if (huge) ::madvise(at, size, MADV_HUGEPAGE);  // advice only: refusal costs speed, nothing else
  base = at;
  return 0;
}

void punch_memory_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  while (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    log_warn("giving memory back: %s", std::strerror(errno));
    return;
  }
}

}  // namespace verbatim
