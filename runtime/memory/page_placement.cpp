// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/page_placement.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/memory/page_census.hpp"
#include "runtime/memory/spread_parts.hpp"

namespace verbatim {
namespace {

constexpr std::uint32_t kMaskBits = 1024;
constexpr std::uint32_t kWordBits = 8 * sizeof(unsigned long);
constexpr std::uint32_t kPagesLookedAt = 256;

int bind(void* base, std::uint64_t bytes, int mode, std::span<const std::uint32_t> nodes) noexcept {
  unsigned long mask[kMaskBits / kWordBits] = {};
  for (const std::uint32_t node : nodes) {
    if (node >= kMaskBits) return EINVAL;
    mask[node / kWordBits] |= 1ul << (node % kWordBits);
  }
  // The kernel takes one bit less than it is told.
  const long result = ::syscall(SYS_mbind, base, bytes, mode, nodes.empty() ? nullptr : mask,
                                nodes.empty() ? 0ul : kMaskBits + 1ul, 0u);
  return result == 0 ? 0 : errno;
}

int place_parts(unsigned char* base, std::uint64_t bytes, const PagePlan& plan) noexcept {
  const std::uint64_t count = plan.nodes.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin = part_begin(bytes, plan.granule, i, count);
    const std::uint64_t end = part_begin(bytes, plan.granule, i + 1, count);
    if (begin >= end) continue;
    if (const int error = bind(base + begin, end - begin, MPOL_PREFERRED, plan.nodes.subspan(i, 1)))
      return error;
  }
  return 0;
}

}  // namespace

int place_pages(void* base, std::uint64_t bytes, const PagePlan& plan) noexcept {
  if (plan.nodes.empty()) return 0;
  switch (plan.order) {
    case PageOrder::kInterleaved:
      return bind(base, bytes, MPOL_INTERLEAVE, plan.nodes);
    case PageOrder::kParts:
      return place_parts(static_cast<unsigned char*>(base), bytes, plan);
    case PageOrder::kPreferred:
      break;
  }
  return bind(base, bytes, MPOL_PREFERRED, plan.nodes.first(1));
}

void forget_placement(void* base, std::uint64_t bytes) noexcept {
  (void)bind(base, bytes, MPOL_DEFAULT, {});
}

PagesSeen look_at_pages(const void* base, std::uint64_t bytes,
                        std::span<const std::uint32_t> chosen) noexcept {
  PageCensus census;
  census.take(base, bytes, kPagesLookedAt, true);
  PagesSeen seen;
  if (census.present() == 0) return seen;
  const std::uint32_t most = census.fullest();
  seen.node = census.on_node(most) == census.present() ? most : kSeveralNodes;
  seen.looked_at = seen.elsewhere = static_cast<std::uint32_t>(census.present());
  for (const std::uint32_t node : chosen)
    seen.elsewhere -= static_cast<std::uint32_t>(census.on_node(node));
  return seen;
}

}  // namespace verbatim
