// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/sparse_map.hpp"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/memory/locked_memory.hpp"
#include "runtime/memory/memory_file.hpp"

namespace verbatim {
namespace {

/// Whether the kernel fills a new map by itself. Nothing tells but a look at one.
bool new_maps_are_filled() noexcept {
  const std::size_t page = page_bytes();
  void* const probe =
      ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  unsigned char there = 0;
  const bool filled = ::mincore(probe, page, &there) == 0 && (there & 1) != 0;
  ::munmap(probe, page);
  return filled;
}

/// What is locked is of no limit's: a reservation would use up that of the program.
bool locks_without_limit() noexcept {
  if (read_lock_limit().limit == ~std::uint64_t{0}) return true;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capget, &header, held) == 0 &&
         (held[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

/// Pages are locked as they come.
void lock_what_is_touched(void* base, std::uint64_t bytes) noexcept {
  if (locks_without_limit() && ::mlock2(base, bytes, MLOCK_ONFAULT) == 0) return;
  static constinit LogOnce once;
  if (once.first()) {
    log_info(
        "the process locks all its memory, but not what this library maps and hardly touches "
        "(%llu MiB and more): that needs 'ulimit -l unlimited' or CAP_IPC_LOCK",
        static_cast<unsigned long long>(bytes >> 20));
  }
}

/// One page, which is filled, and unlocked: as it grows, nothing is filled or counted any more.
void* map_unfilled(void* at, std::uint64_t bytes, int protection, int flags, int fd) noexcept {
  const std::size_t page = page_bytes();
  void* const first = ::mmap(nullptr, page, protection, flags, fd, 0);
  if (first == MAP_FAILED) return first;
  void* whole = MAP_FAILED;
  if (::munlock(first, page) == 0) whole = ::mremap(first, page, bytes, MREMAP_MAYMOVE);
  if (whole == MAP_FAILED) {
    ::munmap(first, page);
    return whole;
  }
  if (at == nullptr) return whole;
  void* const moved = ::mremap(whole, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (moved == MAP_FAILED) ::munmap(whole, bytes);
  return moved;
}

}  // namespace

void* map_sparse(void* at, std::uint64_t bytes, int protection, int flags, int fd) noexcept {
  const int where = at != nullptr ? MAP_FIXED : 0;
  if (!new_maps_are_filled()) {
    void* const plain = ::mmap(at, bytes, protection, flags | where, fd, 0);
    // EAGAIN: with MCL_ONFAULT, too, the limit counts each byte.
    if (plain != MAP_FAILED || errno != EAGAIN) return plain;
  }
  void* const unfilled = map_unfilled(at, bytes, protection, flags, fd);
  if (unfilled == MAP_FAILED) return ::mmap(at, bytes, protection, flags | where, fd, 0);
  if (protection != PROT_NONE) lock_what_is_touched(unfilled, bytes);
  return unfilled;
}

}  // namespace verbatim
