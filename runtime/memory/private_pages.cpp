// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/private_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/memory_headroom.hpp"
#include "runtime/memory/populate.hpp"

namespace verbatim {
namespace {

constexpr const char* kPurpose = "memory (vbt_alloc)";
constexpr int kHugeShift = 26;

unsigned long long kib(std::uint64_t bytes) noexcept { return bytes >> 10; }

void touch_by_hand(unsigned char* base, std::uint64_t bytes) noexcept {
  const std::uint64_t page = page_bytes();
  for (std::uint64_t at = 0; at < bytes; at += page)
    *const_cast<volatile unsigned char*>(base + at) = 0;
}

/// Populates huge pages where populate() is not known, by a read(2) into each: a store of the
/// kernel's to a page that is not there after all fails; one of ours raises SIGBUS.
int populate_by_reading(unsigned char* base, std::uint64_t bytes, std::uint64_t page) noexcept {
  const UniqueFd zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  if (!zeros.valid()) return errno;
  for (std::uint64_t at = 0; at < bytes;) {
    if (::read(zeros.get(), base + at, 1) == 1) {
      at += page;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// False: they are not all there. Nothing stays mapped then.
bool map_huge(const PrivateWish& wish, std::uint64_t page, PrivatePages& pages) noexcept {
  const std::uint64_t bytes = (wish.bytes + page - 1) / page * page;
  if (free_huge_pages(page) < bytes / page) return false;
  void* const area = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
                                static_cast<int>(std::countr_zero(page)) << kHugeShift,
                            -1, 0);
  if (area == MAP_FAILED) return false;
  auto* const base = static_cast<unsigned char*>(area);
  PagePlan plan = wish.plan;
  plan.granule = page;
  const int placed = place_pages(base, bytes, plan);
  int error = populate(base, bytes);
  if (error == EINVAL) error = populate_by_reading(base, bytes, page);
  if (error != 0) {
    ::munmap(base, bytes);
    return false;
  }
  pages = {.base = base, .bytes = bytes, .page = page, .placed = placed, .smaller = nullptr};
  return true;
}

int map_small(const PrivateWish& wish, PrivatePages& pages) noexcept {
  const std::uint64_t page = page_bytes();
  const std::uint64_t bytes = (wish.bytes + page - 1) / page * page;
  const bool large = bytes >= kHugePage && wish.page != page;
  std::uint64_t boundary = wish.alignment > page ? wish.alignment : page;
  if (large && boundary < kHugePage) boundary = kHugePage;
  const std::uint64_t slack = boundary - page;
  void* const area =
      ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) {
    const int error = errno;
    log_error("mapping %llu KiB of %s: %s%s", kib(bytes + slack), kPurpose, std::strerror(error),
              address_space_left() < bytes + slack ? " (raise 'ulimit -v')" : "");
    return error;
  }
  auto* const start = static_cast<unsigned char*>(area);
  unsigned char* const base =
      start + (boundary - reinterpret_cast<std::uintptr_t>(start) % boundary) % boundary;
  if (base != start) ::munmap(start, static_cast<std::size_t>(base - start));
  unsigned char* const end = start + bytes + slack;
  if (end != base + bytes) ::munmap(base + bytes, static_cast<std::size_t>(end - (base + bytes)));
  // Advice only: refusal costs speed, nothing else.
  if (large) ::madvise(base, bytes, MADV_HUGEPAGE);
  if (wish.page == page) ::madvise(base, bytes, MADV_NOHUGEPAGE);
  PagePlan plan = wish.plan;
  plan.granule = page;
  const int placed = place_pages(base, bytes, plan);
  if (wish.touch) {
    int error = populate(base, bytes);
    if (error == EINVAL) {
      touch_by_hand(base, bytes);
      error = 0;
    }
    if (error != 0) {
      log_error("no memory for %llu KiB of %s: %s", kib(bytes), kPurpose, std::strerror(error));
      ::munmap(base, bytes);
      return ENOMEM;
    }
  }
  pages = {.base = base, .bytes = bytes, .page = page, .placed = placed, .smaller = nullptr};
  return 0;
}

}  // namespace

std::uint64_t free_huge_pages(std::uint64_t page) noexcept {
  char path[128];
  char text[32];
  const auto number = [&](const char* name) -> std::uint64_t {
    std::snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%llukB/%s", kib(page),
                  name);
    return read_proc_text(path, text, sizeof text) ? std::strtoull(text, nullptr, 10) : 0;
  };
  const std::uint64_t free_pages = number("free_hugepages");
  const std::uint64_t reserved = number("resv_hugepages");
  return free_pages > reserved ? free_pages - reserved : 0;
}

int map_private_pages(const PrivateWish& wish, PrivatePages& pages) noexcept {
  const char* smaller = nullptr;
  if (wish.page > page_bytes()) {
    const bool possible = wish.touch && wish.alignment <= wish.page;
    if (possible && map_huge(wish, wish.page, pages)) return 0;
    smaller = !wish.touch ? "untouched memory takes no reserved huge pages"
              : !possible ? "no pages of a smaller size than the alignment are taken"
              : wish.page == kGiantPage
                  ? "too few free pages of 1 GiB (/sys/kernel/mm/hugepages/hugepages-1048576kB)"
                  : "too few free pages of 2 MiB (raise vm.nr_hugepages)";
    if (wish.page == kGiantPage && wish.touch && wish.alignment <= kHugePage &&
        map_huge(wish, kHugePage, pages)) {
      pages.smaller = smaller;
      return 0;
    }
  }
  if (wish.touch) {
    if (const int error = check_memory_headroom(wish.bytes, kPurpose)) return error;
  }
  const int error = map_small(wish, pages);
  pages.smaller = smaller;
  return error;
}

}  // namespace verbatim
