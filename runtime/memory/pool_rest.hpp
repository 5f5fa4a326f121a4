// SPDX-License-Identifier: BSD-2-Clause
//
// A pool's free buffers that no thread keeps. Of memory that was spread over nodes, one rest for
// the buffers on each node, so that a thread gets those of its own; of any other memory, one for
// all. Buffers are numbers; who has how many is counted for those who look without the lock.
//
// Any thread; the lock is the pool's. Spec: verbatim/memory.h, VBT_WHERE_SPREAD.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/page_placement.hpp"
#include "runtime/memory/spread_parts.hpp"

namespace verbatim {

/// How many, and a serial number of the changes: two equal ones mean that nothing happened between.
/// Written by who holds the lock of what is counted.
class PoolCount {
 public:
  [[nodiscard]] std::uint64_t look() const noexcept {
    return both_.load(std::memory_order_acquire);
  }
  [[nodiscard]] static std::uint32_t of(std::uint64_t look) noexcept {
    return static_cast<std::uint32_t>(look);
  }
  [[nodiscard]] std::uint64_t look_locked() const noexcept {
    return both_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t locked() const noexcept { return of(look_locked()); }
  /// Publishes what was done before to who looks.
  void set_locked(std::uint32_t count) noexcept {
    both_.store(((look_locked() >> 32) + 1) << 32 | count, std::memory_order_release);
  }
  /// Publish one fewer, or one more, than `look`, which is of now. To take one, it has one.
  void take_one_locked(std::uint64_t look) noexcept {
    both_.store(look + kOneChange - 1, std::memory_order_release);
  }
  void add_one_locked(std::uint64_t look) noexcept {
    both_.store(look + kOneChange + 1, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kOneChange = std::uint64_t{1} << 32;

  std::atomic<std::uint64_t> both_{0};
};

/// Adjacent buffers: [first, first + count).
struct PoolRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  [[nodiscard]] bool has(std::uint32_t index) const noexcept { return index - first < count; }
};

/// Where the calling thread is, and how far nodes are from each other: by the kernel's numbers.
struct PoolMap {
  std::uint32_t (*node_of_thread)() noexcept;
  std::uint32_t (*distance)(std::uint32_t from, std::uint32_t to) noexcept;
};
/// The host's nodes and distances as topo::host_machine() knows them.
extern const PoolMap host_pool_map;

class PoolRest {
 public:
  PoolRest() noexcept = default;
  PoolRest(const PoolRest&) = delete;
  PoolRest& operator=(const PoolRest&) = delete;
  ~PoolRest();

  /// All of `count` buffers are in it. `parts` says where those of `stride` bytes lie that begin at
  /// the beginning of the memory. False: no memory.
  [[nodiscard]] bool create(std::uint32_t count, std::uint64_t stride, const SpreadParts& parts,
                            const PoolMap& map) noexcept;

  /// The buffers that are near the calling thread: all, when there is one rest, or none on its
  /// node.
  [[nodiscard]] PoolRange near_this_thread() const noexcept;
  [[nodiscard]] bool looks_empty() const noexcept;
  /// Takes up to `most` of `near`, else one of the nearest. How many. REQUIRES: the lock.
  [[nodiscard]] std::uint32_t take_locked(const PoolRange& near, std::uint32_t most,
                                          std::uint32_t* out) noexcept;
  /// REQUIRES: the lock; none of them is in it.
  void give_locked(const std::uint32_t* indices, std::uint32_t many) noexcept;
  /// Calls `see` with the count of each shelf.
  template <class See>
  void look(See see) const noexcept {
    for (std::uint32_t i = 0; i < shelf_count_; ++i) see(shelves_[i].left);
  }

 private:
  /// Of one node: a stack in its buffers' own piece of indices_, which has room for all of them.
  struct Shelf {
    PoolRange range;
    std::uint32_t node = kNoNode;
    PoolCount left;
  };

  [[nodiscard]] Shelf& shelf_of(std::uint32_t index) noexcept;
  [[nodiscard]] Shelf* nearest_with_some(std::uint32_t node) noexcept;

  Shelf* shelves_ = nullptr;  ///< by their buffers
  std::uint32_t shelf_count_ = 0;
  std::uint32_t* indices_ = nullptr;
  const PoolMap* map_ = nullptr;
};

}  // namespace verbatim
