// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/address_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/unique_fd.hpp"

namespace verbatim::shm {
namespace {

// linux/mman.h, since Linux 5.14.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

struct Pages {
  unsigned char* first;
  std::size_t bytes;
};

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// False when they run past the end of the address space.
bool pages_of(std::uint64_t address, std::uint64_t length, Pages& out) noexcept {
  const std::uint64_t mask = page_size() - 1;
  if (length > ~address || address + length > ~mask) return false;
  const std::uint64_t first = address & ~mask;
  out = {reinterpret_cast<unsigned char*>(first), ((address + length + mask) & ~mask) - first};
  return true;
}

/// Before Linux 5.14: a system call answers where an instruction would be killed. It reads only:
/// a byte that were written back might undo what a peer writes beside us.
int touch(const Pages& pages) noexcept {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return EFAULT;
  const UniqueFd from(ends[0]), to(ends[1]);
  const std::uint64_t page = page_size();
  for (std::size_t at = 0; at < pages.bytes; at += page) {
    unsigned char discarded;
    if (::write(to.get(), pages.first + at, 1) != 1 || ::read(from.get(), &discarded, 1) != 1)
      return EFAULT;
  }
  return 0;
}

}  // namespace

int fault_in(std::uint64_t address, std::uint64_t length, bool for_writing) noexcept {
  if (length == 0) return 0;
  Pages pages;
  if (!pages_of(address, length, pages)) return EFAULT;
  int result;
  do {
    result = ::madvise(pages.first, pages.bytes, for_writing ? kPopulateWrite : kPopulateRead);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) return 0;
  return errno == EINVAL ? touch(pages) : EFAULT;
}

int will_need(std::uint64_t address, std::uint64_t length) noexcept {
  if (length == 0) return 0;
  Pages pages;
  if (!pages_of(address, length, pages)) return EFAULT;
  // EBADF and EIO speak of files, and leave everything as it was.
  return ::madvise(pages.first, pages.bytes, MADV_WILLNEED) != 0 && errno == ENOMEM ? EFAULT : 0;
}

}  // namespace verbatim::shm
