// SPDX-License-Identifier: BSD-2-Clause
// read_mapping_sizes of page_census.hpp. Where the kernel cannot be asked about one mapping: a walk
// over /proc/self/smaps, whose mappings come in the order of their addresses.
//
//   7f2c40000000-7f2c80000000 rw-p 00000000 00:00 0      [...]
//   KernelPageSize:        4 kB
//   AnonHugePages:      2048 kB
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "runtime/base/unique_fd.hpp"
#include "runtime/memory/mapping_query.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/page_census.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kLongest = std::uint64_t{16} << 30;
constexpr std::int64_t kPatienceMs = 200;

std::int64_t now_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000} + now.tv_nsec / 1'000'000;
}

/// A line at a time; longer ones (names of files) come cut.
class Lines {
 public:
  Lines() noexcept : fd_(::open("/proc/self/smaps", O_RDONLY | O_CLOEXEC)) {}
  /// Null: there is no more.
  const char* next() noexcept {
    std::size_t length = 0;
    for (;;) {
      if (at_ == end_ && !fill()) return length == 0 ? nullptr : finish(length);
      const char letter = buffer_[at_++];
      if (letter == '\n') return finish(length);
      if (length + 1 < sizeof line_) line_[length++] = letter;
    }
  }

 private:
  const char* finish(std::size_t length) noexcept {
    line_[length] = '\0';
    return line_;
  }
  bool fill() noexcept {
    if (!fd_.valid() || now_ms() > until_) return false;
    ssize_t got;
    do {
      got = ::read(fd_.get(), buffer_, sizeof buffer_);
    } while (got < 0 && errno == EINTR);
    at_ = 0;
    end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return got > 0;
  }

  UniqueFd fd_;
  std::int64_t until_ = now_ms() + kPatienceMs;
  std::size_t at_ = 0, end_ = 0;
  char buffer_[4096];
  char line_[128];
};

bool read_range(const char* line, std::uint64_t& begin, std::uint64_t& end) noexcept {
  char* at = nullptr;
  begin = std::strtoull(line, &at, 16);
  if (at == line || *at != '-') return false;
  const char* const second = at + 1;
  end = std::strtoull(second, &at, 16);
  return at != second && *at == ' ';
}

/// "Name:   12 kB" in bytes; 0 for other lines.
std::uint64_t bytes_of(const char* line, const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(line, name, length) != 0 || line[length] != ':') return 0;
  return std::strtoull(line + length + 1, nullptr, 10) << 10;
}

}  // namespace

MappingSizes read_mapping_sizes(const void* base, std::uint64_t bytes) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(base);
  if (bytes == 0 || bytes > UINTPTR_MAX - from - page_bytes()) return {};
  MappingSizes sizes;
  if (query_mapping_sizes(from, bytes, sizes)) return sizes;
  sizes = {};
  if (bytes > kLongest) return {};
  Lines lines;
  std::uint64_t covered = 0;
  bool within = false;
  while (const char* const line = lines.next()) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (read_range(line, begin, end)) {
      if (begin >= from + bytes) break;
      within = end > from;
      if (within) covered += std::min(end, from + bytes) - std::max<std::uint64_t>(begin, from);
      continue;
    }
    if (!within) continue;
    if (const std::uint64_t page = bytes_of(line, "KernelPageSize")) {
      sizes.least_page = sizes.least_page == 0 ? page : std::min(sizes.least_page, page);
      sizes.most_page = std::max(sizes.most_page, page);
    }
    for (const char* const name : {"AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"}) {
      sizes.huge_bytes += bytes_of(line, name);
    }
  }
  return covered == bytes ? sizes : MappingSizes{};  // time was up, or it is not all mapped
}

}  // namespace verbatim
