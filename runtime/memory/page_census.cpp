// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/page_census.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/memory/memory_file.hpp"

namespace verbatim {
namespace {

constexpr std::uint32_t kBatch = 256;

/// Spreads the places within their parts, the same at each call (a step of splitmix64).
std::uint64_t scatter(std::uint64_t number) noexcept {
  number += 0x9e3779b97f4a7c15u;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

}  // namespace

void PageCensus::take(const void* base, std::uint64_t bytes, std::uint64_t most,
                      bool reads) noexcept {
  *this = {};
  const std::uint64_t page = page_bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(base) / page;
  const auto last = (reinterpret_cast<std::uintptr_t>(base) + bytes - 1) / page;
  if (base == nullptr || bytes == 0 || last < first) return;
  pages_ = last - first + 1;
  const std::uint64_t count = std::min(pages_, most);
  bool mapped = false;
  for (std::uint64_t done = 0; done < count;) {
    void* address[kBatch];
    int status[kBatch];
    const auto batch = static_cast<std::uint32_t>(std::min<std::uint64_t>(kBatch, count - done));
    for (std::uint32_t i = 0; i < batch; ++i) {
      // (Products of page numbers and counts stay far below 64 bits.)
      const std::uint64_t part = pages_ * (done + i) / count;
      const std::uint64_t next = pages_ * (done + i + 1) / count;
      const std::uint64_t place = part + scatter(done + i) % (next - part);
      address[i] = reinterpret_cast<void*>((first + place) * page);
      status[i] = -ENOENT;
      if (reads) (void)*static_cast<const volatile char*>(address[i]);
    }
    if (::syscall(SYS_move_pages, 0L, static_cast<unsigned long>(batch), address, nullptr, status,
                  0L) != 0) {
      const std::uint64_t all = pages_;
      *this = {};
      pages_ = all;
      return;
    }
    for (std::uint32_t i = 0; i < batch; ++i) {
      mapped = mapped || status[i] != -EFAULT;  // (a page that was only read is nowhere, too)
      if (status[i] < 0 || static_cast<std::uint32_t>(status[i]) >= kNodes) continue;
      ++present_;
      ++on_node_[status[i]];
    }
    done += batch;
  }
  looked_at_ = count;
  known_ = mapped;
}

std::uint32_t PageCensus::fullest() const noexcept {
  const auto* const most = std::max_element(on_node_, on_node_ + kNodes);
  return *most == 0 ? kNodes : static_cast<std::uint32_t>(most - on_node_);
}

}  // namespace verbatim
