// SPDX-License-Identifier: BSD-2-Clause
//
// On which nodes the pages of a range lie, and how large they are: asked of the kernel, moved by
// nobody. Any thread; no allocation. Spec: move_pages(2) without nodes, proc(5) (smaps).
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim {

class PageCensus {
 public:
  /// What the kernel numbers nodes below (MAX_NUMNODES).
  static constexpr std::uint32_t kNodes = 1024;

  /// Looks at up to `most` pages of the range: at all, or at one in each of `most` like parts, at
  /// places that no regular layout (interleaved pages) agrees with. `reads` them first: of a file's
  /// pages (shared memory) the kernel tells only those that this process has mapped, so all others
  /// look absent. REQUIRES then: the range may be read.
  void take(const void* base, std::uint64_t bytes, std::uint64_t most, bool reads = false) noexcept;

  /// False: the kernel does not tell (no NUMA, a sandbox that forbids it), or the range is no
  /// memory of ours; then all counts but pages() are 0.
  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] std::uint64_t pages() const noexcept { return pages_; }
  [[nodiscard]] std::uint64_t looked_at() const noexcept { return looked_at_; }
  /// How many of the pages looked at have memory at this moment.
  [[nodiscard]] std::uint64_t present() const noexcept { return present_; }
  [[nodiscard]] std::uint64_t on_node(std::uint32_t node) const noexcept {
    return node < kNodes ? on_node_[node] : 0;
  }
  /// The node with the most of them; kNodes when none is present.
  [[nodiscard]] std::uint32_t fullest() const noexcept;

 private:
  bool known_ = false;
  std::uint64_t pages_ = 0;
  std::uint64_t looked_at_ = 0;
  std::uint64_t present_ = 0;
  std::uint32_t on_node_[kNodes] = {};
};

/// The page sizes of the mappings that a range lies in.
struct MappingSizes {
  std::uint64_t least_page = 0;  ///< bytes; 0: unknown
  std::uint64_t most_page = 0;
  std::uint64_t huge_bytes = 0;  ///< in transparent huge pages; 0 also for ranges over 4 GiB
};
/// Before Linux 6.11 it takes time in proportion to the process's memory below the end of the range
/// (20 ms a GiB of small pages at worst), so a range over 16 GiB, or a long wait, is answered by
/// "unknown"; and huge_bytes is that of the mappings, which may be larger than the range.
[[nodiscard]] MappingSizes read_mapping_sizes(const void* base, std::uint64_t bytes) noexcept;

}  // namespace verbatim
