// SPDX-License-Identifier: BSD-2-Clause
//
// Private memory with pages of a chosen size on chosen nodes. Any thread. Reserved huge pages
// (hugetlb) are taken only if all of the block's are there, on any node: the kernel's own answer to
// a missing one is SIGBUS. Spec: mmap(2) (MAP_HUGETLB), madvise(2) (MADV_POPULATE_WRITE,
// Linux 5.14).
#pragma once

#include <cstdint>

#include "runtime/memory/page_placement.hpp"

namespace verbatim {

struct PrivateWish {
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;
  std::uint64_t page = 0;  ///< 0, the system's, 2 MiB, 1 GiB
  PagePlan plan;
  bool touch = true;
};

struct PrivatePages {
  unsigned char* base = nullptr;
  std::uint64_t bytes = 0;  ///< of the mapping
  std::uint64_t page = 0;
  int placed = 0;                 ///< what place_pages answered
  const char* smaller = nullptr;  ///< why the pages are smaller than what was asked for
};

/// 0 or an errno (logged): ENOMEM.
[[nodiscard]] int map_private_pages(const PrivateWish& wish, PrivatePages& pages) noexcept;

/// Huge pages of this size that nobody has reserved; 0 also where the kernel knows no such size.
[[nodiscard]] std::uint64_t free_huge_pages(std::uint64_t page) noexcept;

}  // namespace verbatim
