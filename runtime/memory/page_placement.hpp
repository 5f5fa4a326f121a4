// SPDX-License-Identifier: BSD-2-Clause
//
// Telling the kernel where pages are to lie before they exist, and asking where they lie. Any
// thread. The system calls themselves: libnuma is nobody's dependency here. Nodes are preferred,
// never demanded: a node without room costs speed then, and not the process (a demand that cannot
// be met wakes the OOM killer). Spec: mbind(2), move_pages(2).
#pragma once

#include <cstdint>
#include <span>

namespace verbatim {

enum class PageOrder {
  kPreferred,    ///< the first node of the list
  kInterleaved,  ///< page by page
  kParts,        ///< adjacent parts of like size
};

struct PagePlan {
  PageOrder order = PageOrder::kPreferred;
  std::span<const std::uint32_t> nodes;  ///< the kernel's numbers; none: the kernel's choice
  std::uint64_t granule = 4096;          ///< parts end at multiples of it
};

/// REQUIRES: `base` at a multiple of the page. 0 or an errno: EINVAL (a node that is not there),
/// ENOSYS (a kernel without NUMA), EPERM (a container that forbids it).
[[nodiscard]] int place_pages(void* base, std::uint64_t bytes, const PagePlan& plan) noexcept;
/// Makes the placement of a range as if nobody had chosen one.
void forget_placement(void* base, std::uint64_t bytes) noexcept;

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
inline constexpr std::uint32_t kSeveralNodes = kNoNode - 1;

struct PagesSeen {
  std::uint32_t node = kNoNode;  ///< or kSeveralNodes
  std::uint32_t looked_at = 0;   ///< pages that are there
  std::uint32_t elsewhere = 0;   ///< of them, on none of the nodes that were chosen
};

/// Looks at up to 256 pages, as PageCensus does, and reads them. `chosen` names each node once.
/// Where the pages of a range lie; nothing is seen where the kernel does not tell.
[[nodiscard]] PagesSeen look_at_pages(const void* base, std::uint64_t bytes,
                                      std::span<const std::uint32_t> chosen) noexcept;

}  // namespace verbatim
