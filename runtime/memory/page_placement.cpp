// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/page_placement.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/memory/memory_file.hpp"

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
  const std::uint64_t granules = (bytes + plan.granule - 1) / plan.granule;
  const std::uint64_t count = plan.nodes.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin = granules * i / count * plan.granule;
    const std::uint64_t end = std::min(granules * (i + 1) / count * plan.granule, bytes);
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
  const std::uint64_t page = page_bytes();
  const std::uint64_t pages = (bytes + page - 1) / page;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(pages, kPagesLookedAt));
  const void* address[kPagesLookedAt];
  int status[kPagesLookedAt];
  for (std::uint32_t i = 0; i < count; ++i) {
    address[i] = static_cast<const unsigned char*>(base) + pages * i / count * page;
    status[i] = -ENOENT;
  }
  PagesSeen seen;
  if (::syscall(SYS_move_pages, 0, static_cast<unsigned long>(count), address, nullptr, status,
                0) != 0)
    return seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (status[i] < 0) continue;
    const auto node = static_cast<std::uint32_t>(status[i]);
    if (seen.looked_at++ == 0) {
      seen.node = node;
    } else if (seen.node != node) {
      seen.node = kSeveralNodes;
    }
    seen.elsewhere += std::find(chosen.begin(), chosen.end(), node) == chosen.end();
  }
  return seen;
}

}  // namespace verbatim
