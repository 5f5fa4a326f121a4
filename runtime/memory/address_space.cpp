// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/address_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/base/memcheck.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/memory/mapping_query.hpp"
#include "runtime/memory/memory_file.hpp"

namespace verbatim {
namespace {

// linux/mman.h, since Linux 5.14.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

/// A registration brings in so many pages: that takes two microseconds, less than to ask about
/// mappings.
constexpr std::uint64_t kFewPages = 16;
/// Where a process's own addresses end at the latest.
constexpr std::uint64_t kUserEnd = std::uint64_t{1} << 63;

struct Pages {
  std::uint64_t first;
  std::uint64_t bytes;
  [[nodiscard]] void* at() const noexcept { return reinterpret_cast<void*>(first); }
};

/// False when they run past the end of the address space.
bool pages_of(std::uint64_t address, std::uint64_t length, Pages& out) noexcept {
  const std::uint64_t mask = page_bytes() - 1;
  if (length > ~address || address + length > ~mask) return false;
  const std::uint64_t first = address & ~mask;
  out = {first, ((address + length + mask) & ~mask) - first};
  return true;
}

/// 0 or an errno; EINVAL also when this kernel cannot, or will not for memory of devices.
int bring_in(const Pages& pages, bool for_writing) noexcept {
  int result;
  do {
    result = ::madvise(pages.at(), pages.bytes, for_writing ? kPopulateWrite : kPopulateRead);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0 ? 0 : errno;
}

/// A pipe with nothing in it: what is written to it is read by the kernel, which answers where an
/// instruction would be killed.
class Pipe {
 public:
  Pipe() noexcept {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    from_.reset(ends[0]);
    to_.reset(ends[1]);
  }
  [[nodiscard]] bool valid() const noexcept { return to_.valid(); }
  [[nodiscard]] bool copy(void* to, const void* from, std::size_t bytes) const noexcept {
    auto* at = static_cast<unsigned char*>(to);
    const auto* next = static_cast<const unsigned char*>(from);
    while (bytes != 0) {
      const ssize_t put = ::write(to_.get(), next, bytes);
      if (put <= 0) return false;
      for (ssize_t left = put; left != 0;) {
        const ssize_t got = ::read(from_.get(), at, static_cast<std::size_t>(left));
        if (got <= 0) return false;
        at += got;
        left -= got;
      }
      next += put;
      bytes -= static_cast<std::size_t>(put);
    }
    return true;
  }

 private:
  UniqueFd from_, to_;
};

/// Brings pages in before Linux 5.14. It reads only: a byte that was written back might undo what a
/// peer writes beside us.
int touch(const Pages& pages) noexcept {
  const Pipe pipe;
  if (!pipe.valid()) return EFAULT;
  const std::uint64_t page = page_bytes();
  for (std::uint64_t at = 0; at < pages.bytes; at += page) {
    unsigned char discarded;
    if (!pipe.copy(&discarded, reinterpret_cast<const void*>(pages.first + at), 1)) return EFAULT;
  }
  return 0;
}

/// The mappings of this process: the kernel is asked about each, or, where it cannot be, they are
/// read in a row.
class Maps {
 public:
  [[nodiscard]] bool valid() const noexcept { return maps_.valid(); }
  /// False: from here on they are read.
  [[nodiscard]] bool asks() const noexcept { return asks_; }
  /// The mapping that has `address`, which is never before the last: 0 or ENOENT.
  int look(std::uint64_t address, Mapping& out) noexcept {
    if (asks_) {
      const int error = query_mapping(maps_.get(), address, out);
      if (error == 0 || error == ENOENT) return error;
      asks_ = false;
    }
    while (now_.end <= address)
      if (!next()) return ENOENT;
    out = now_;
    return now_.begin <= address ? 0 : ENOENT;
  }

 private:
  int letter() noexcept {
    if (at_ == end_) {
      ssize_t got;
      do {
        got = ::read(maps_.get(), buffer_, sizeof buffer_);
      } while (got < 0 && errno == EINTR);
      if (got <= 0) return -1;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  /// Reads digits, and the letter behind them.
  std::uint64_t number(unsigned base) noexcept {
    for (std::uint64_t n = 0;;) {
      const int c = letter();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
      if (static_cast<unsigned>(digit) >= base) return n;
      n = n * base + static_cast<unsigned>(digit);
    }
  }
  /// A line, which come in the order of their addresses:
  ///   7f2c40000000-7f2c80000000 rw-s 00000000 00:01 1035   /memfd:name (deleted)
  bool next() noexcept {
    now_.begin = number(16);
    now_.end = number(16);
    if (now_.end == 0) return false;
    now_.protection = (letter() == 'r' ? PROT_READ : 0) | (letter() == 'w' ? PROT_WRITE : 0);
    for (int blanks = 0; blanks != 3;)  // over the offset and the device
      if (const int c = letter(); c == ' ' || c < 0) ++blanks;
    now_.inode = number(10);
    for (int c = 0; c >= 0 && c != '\n';) c = letter();
    return true;
  }

  const UniqueFd maps_{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
  bool asks_ = true;
  Mapping now_{};
  std::size_t at_ = 0, end_ = 0;
  char buffer_[4096];
};

bool is_there(std::uint64_t page) noexcept { return fault_in(page, 1, false) == 0; }

/// The first page of [first, end) that is not there. What a file lacks, it lacks at its end.
/// REQUIRES: the last one is not there.
std::uint64_t first_beyond_file(std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t page = page_bytes();
  std::uint64_t none = (end - first) / page - 1, some = 0;
  while (some != none) {
    const std::uint64_t middle = some + (none - some) / 2;
    if (is_there(first + middle * page))
      some = middle + 1;
    else
      none = middle;
  }
  return first + some * page;
}

/// The first byte that is missing. None is where nobody tells (no /proc), nor, with `only_asks`,
/// where the kernel cannot be asked, which `maps` says afterwards.
MissingByte find_in(Maps& maps, const Pages& pages, bool for_writing, bool only_asks) noexcept {
  const std::uint64_t end = std::min(pages.first + pages.bytes, kUserEnd);
  for (std::uint64_t at = pages.first; at < end && maps.valid();) {
    Mapping mapping{};
    const int error = maps.look(at, mapping);
    if (only_asks && !maps.asks()) return {};
    if (error != 0) return {at, Lack::kMapping};
    if ((mapping.protection & PROT_READ) == 0) return {at, Lack::kRights};
    if (for_writing && (mapping.protection & PROT_WRITE) == 0) return {at, Lack::kWriting};
    const std::uint64_t until = std::min(end, mapping.end);
    if (mapping.inode != 0 && !is_there(until - page_bytes()))
      return {first_beyond_file(at, until), Lack::kPage};
    at = until;
  }
  if (pages.first + pages.bytes <= kUserEnd) return {};
  return {std::max(pages.first, kUserEnd), Lack::kUser};
}

/// The byte that was asked for, where a page begins before it.
MissingByte from(std::uint64_t address, MissingByte missing) noexcept {
  if (missing.lack != Lack::kNothing) missing.at = std::max(missing.at, address);
  return missing;
}

constinit std::atomic<bool> without_cma{false};

enum class Copied : std::uint8_t { kWhole, kFault, kRefused };

Copied copy_by_cma(void* here, std::uint64_t there, std::size_t bytes, bool reads) noexcept {
  const pid_t self = ::getpid();
  auto* at = static_cast<unsigned char*>(here);
  while (bytes != 0) {
    const iovec local{at, bytes};
    const iovec remote{reinterpret_cast<void*>(there), bytes};
    const ssize_t moved = reads ? ::process_vm_readv(self, &local, 1, &remote, 1, 0)
                                : ::process_vm_writev(self, &local, 1, &remote, 1, 0);
    if (moved <= 0) return moved < 0 && errno != EFAULT ? Copied::kRefused : Copied::kFault;
    at += moved;
    there += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return Copied::kWhole;
}

bool copy_doubtful(void* here, std::uint64_t there, std::size_t bytes, bool reads) noexcept {
  if (!without_cma.load(std::memory_order_relaxed)) {
    const Copied copied = copy_by_cma(here, there, bytes, reads);
    if (copied != Copied::kRefused) return copied == Copied::kWhole;
    copy_doubtful_without_cma();
  }
  void* const doubtful = reinterpret_cast<void*>(there);
  void* const to = reads ? here : doubtful;
  const void* const from = reads ? doubtful : here;
  if (const Pipe pipe; pipe.valid()) return pipe.copy(to, from, bytes);
  if (fault_in(there, bytes, !reads) != 0) return false;  // no descriptor is left
  std::memcpy(to, from, bytes);
  return true;
}

}  // namespace

const char* words_of(Lack lack) noexcept {
  switch (lack) {
    case Lack::kMapping:
      return "is not mapped";
    case Lack::kRights:
      return "may not be read (PROT_NONE)";
    case Lack::kWriting:
      return "may only be read, and IBV_ACCESS_LOCAL_WRITE needs memory that may be written";
    case Lack::kPage:
      return "has no page: it lies past the end of the file that is mapped there, or no huge page "
             "is "
             "left for it";
    case Lack::kUser:
      return "is no address of a process";
    case Lack::kNothing:
      break;
  }
  return "is there";
}

MissingByte find_missing(std::uint64_t address, std::uint64_t length, bool for_writing) noexcept {
  Pages pages;
  if (!pages_of(address, length, pages)) return {std::max(address, kUserEnd), Lack::kUser};
  Maps maps;
  return from(address, find_in(maps, pages, for_writing, false));
}

MissingByte find_missing_to_register(std::uint64_t address, std::uint64_t length,
                                     bool for_writing) noexcept {
  Pages pages;
  const std::uint64_t page = page_bytes();
  if (!pages_of(address, length, pages)) return find_missing(address, length, for_writing);
  if (pages.bytes <= kFewPages * page) {
    if (bring_in(pages, for_writing) == 0) [[likely]]
      return {};
    return find_missing(address, length, for_writing);
  }
  {
    Maps maps;
    const MissingByte missing = find_in(maps, pages, for_writing, true);
    if (maps.valid() && maps.asks()) return from(address, missing);
  }
  if (::msync(pages.at(), pages.bytes, MS_ASYNC) == 0 &&  // asks for mappings, and no more
      bring_in({pages.first, page}, for_writing) == 0 &&
      bring_in({pages.first + pages.bytes - page, page}, for_writing) == 0)
    return {};
  return find_missing(address, length, for_writing);
}

int fault_in(std::uint64_t address, std::uint64_t length, bool for_writing) noexcept {
  if (length == 0) return 0;
  Pages pages;
  if (!pages_of(address, length, pages)) return EFAULT;
  const int error = bring_in(pages, for_writing);
  if (error == 0) return 0;
  return error == EINVAL ? touch(pages) : EFAULT;
}

int will_need(std::uint64_t address, std::uint64_t length) noexcept {
  if (length == 0) return 0;
  Pages pages;
  if (!pages_of(address, length, pages)) return EFAULT;
  // EBADF and EIO speak of files, and leave everything as it was.
  return ::madvise(pages.at(), pages.bytes, MADV_WILLNEED) != 0 && errno == ENOMEM ? EFAULT : 0;
}

bool copy_from_doubtful(void* to, std::uint64_t from, std::size_t bytes) noexcept {
  return copy_doubtful(to, from, bytes, true);
}

bool copy_to_doubtful(std::uint64_t to, const void* from, std::size_t bytes) noexcept {
  if (!copy_doubtful(const_cast<void*>(from), to, bytes, false)) return false;
  expect_written_by_others(reinterpret_cast<void*>(to), bytes);
  return true;
}

void copy_doubtful_without_cma() noexcept { without_cma.store(true, std::memory_order_relaxed); }

}  // namespace verbatim
