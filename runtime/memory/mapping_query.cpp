// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/mapping_query.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/memcheck.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/memory/memory_file.hpp"

namespace verbatim {
namespace {

// <linux/fs.h> of these kernels; older systems' headers lack them.
struct MapQuery {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, protection, page_size, offset, inode;
  std::uint32_t major, minor, name_size, build_id_size;
  std::uint64_t name, build_id;
};
static_assert(sizeof(MapQuery) == 104);

struct PageRegion {
  std::uint64_t begin, end, categories;
};
struct PageScan {
  std::uint64_t size, flags, begin, end, walked_to, regions, room, most_pages;
  std::uint64_t inverted, all_of, any_of, told;
};
static_assert(sizeof(PageScan) == 96);

constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr unsigned long kPageScan = _IOWR('f', 16, PageScan);
constexpr std::uint64_t kIsHuge = 1u << 6;

constexpr int kMostMappings = 4096;
/// A walk over a million small pages takes some 10 ms.
constexpr std::uint64_t kMostScanned = std::uint64_t{4} << 30;

/// Bytes that huge pages map; 0 also where the kernel does not tell.
std::uint64_t huge_bytes(int pagemap, std::uint64_t begin, std::uint64_t end) noexcept {
  std::uint64_t all = 0;
  while (begin < end) {
    constexpr std::uint64_t kRoom = 64;
    PageRegion regions[kRoom];
    PageScan scan{};
    scan.size = sizeof scan;
    scan.begin = begin;
    scan.end = end;
    scan.regions = reinterpret_cast<std::uintptr_t>(regions);
    scan.room = kRoom;
    scan.all_of = scan.told = kIsHuge;
    const int found = ::ioctl(pagemap, kPageScan, &scan);
    if (found < 0 || scan.walked_to <= begin) break;
    expect_written_by_others(regions, static_cast<std::size_t>(found) * sizeof regions[0]);
    for (int i = 0; i < found; ++i) all += regions[i].end - regions[i].begin;
    begin = scan.walked_to;
  }
  return all;
}

}  // namespace

int query_mapping(int maps, std::uint64_t address, Mapping& out) noexcept {
  MapQuery query{};
  query.size = sizeof query;
  query.address = address;
  if (::ioctl(maps, kMapQuery, &query) != 0) return errno;
  // The kernel's first two bits are PROT_READ and PROT_WRITE.
  out = {query.begin, query.end, query.inode,
         static_cast<int>(query.protection) & (PROT_READ | PROT_WRITE)};
  return 0;
}

bool query_mapping_sizes(std::uintptr_t from, std::uint64_t bytes, MappingSizes& sizes) noexcept {
  const UniqueFd maps(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return false;
  const std::uint64_t page = page_bytes();
  const std::uint64_t first = from / page * page;
  const std::uint64_t end = (from + bytes + page - 1) / page * page;
  sizes = {};
  std::uint64_t at = first;
  for (int i = 0; at < end && i < kMostMappings; ++i) {
    MapQuery query{};
    query.size = sizeof query;
    query.address = at;
    if (::ioctl(maps.get(), kMapQuery, &query) != 0) {
      sizes = {};
      return errno ==
             ENOENT;  // nothing is mapped there; else the kernel does not know the question
    }
    sizes.least_page =
        sizes.least_page == 0 ? query.page_size : std::min(sizes.least_page, query.page_size);
    sizes.most_page = std::max(sizes.most_page, query.page_size);
    const std::uint64_t until = std::min(query.end, end);
    // (Reserved huge pages count as the mapping's own.)
    if (query.page_size == page && end - first <= kMostScanned) {
      sizes.huge_bytes += huge_bytes(pagemap.get(), at, until);
    }
    at = until;
  }
  if (at < end) sizes = {};
  return true;
}

}  // namespace verbatim
