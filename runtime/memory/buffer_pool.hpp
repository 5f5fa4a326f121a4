// SPDX-License-Identifier: BSD-2-Clause
//
// Buffers of one size in one block of memory, for verbatim/memory.h's vbt_pool. Each thread keeps a
// few free ones in a cache of its own, and exchanges them by the batch with the shared rest. The
// cache of a thread that has ended waits for the next one with its number. Of memory that is spread
// over nodes a thread keeps what is near it: other buffers it takes one by one when those are all
// out, and gives back to the rest.
//
// Free buffers are numbers in arrays beside the block: nothing is written into them, since a peer
// may still write there, and no page is touched for the pool's sake.
//
// Any thread, but for create and destroy. Locks, in this order: the caches' (several: by address),
// the rest's. An owner enters its cache without an atomic read-modify-write (BiasedLock); others do
// when everything else is empty, so that what is free is found wherever it lies. A free buffer is
// in exactly one place to whoever holds the locks; without them it may be seen in two, when it
// moves, never in none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cache_line.hpp"
#include "runtime/memory/pool_rest.hpp"
#include "runtime/memory/thread_number.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

inline constexpr std::uint32_t kMaxPoolBatch = 32;

/// One thread's free buffers, the last one in the first one out.
struct alignas(kCacheLine) PoolCache {
  BiasedLock lock;
  PoolCount count;
  PoolRange near;  ///< what is given back here is of these; its owner's, who sets it when empty
  std::uint32_t indices[2 * kMaxPoolBatch];
};

struct PoolShape {
  std::uint64_t stride = 0;  ///< 8 B ... 1 GiB
  std::uint32_t count = 0;   ///< below 2^31
};

class BufferPool {
 public:
  BufferPool() noexcept = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  /// REQUIRES: not listed.
  ~BufferPool();

  /// Over count * stride bytes at `base`, which stay the caller's and lie as `parts` says, and
  /// lists it. 0 or an errno.
  [[nodiscard]] int create(unsigned char* base, const PoolShape& shape, const SpreadParts& parts,
                           const PoolMap& map = host_pool_map) noexcept;

  /// nullptr + errno: ENOMEM (all are out), EPERM (a forked child: it is the parent's).
  [[nodiscard]] void* alloc() noexcept;
  /// 0, EINVAL (logged: no buffer of this pool, or one that is not out), EPERM.
  int free(void* buffer) noexcept;

  [[nodiscard]] unsigned char* base() const noexcept { return base_; }
  [[nodiscard]] PoolShape shape() const noexcept { return {stride_, count_}; }
  /// Exact while nobody allocates and frees.
  [[nodiscard]] std::uint32_t out() const noexcept;
  [[nodiscard]] bool is_inherited() const noexcept { return inherited_; }

  /// Whether such a pool lives; then, and with no buffer out, takes it from the list. 0, EINVAL,
  /// EBUSY, EPERM.
  [[nodiscard]] static int unlist(BufferPool* pool) noexcept;
  /// Undoes unlist().
  void list_again() noexcept;

 private:
  /// What the whole pool looks like at one moment, if `serials` stays the same.
  struct Sight {
    std::uint64_t free_buffers = 0;
    std::uint64_t serials = 0;
  };

  void* hand_out(std::uint32_t index) noexcept;
  void* alloc_slowly(PoolCache* cache) noexcept;
  int free_slowly(PoolCache* cache, std::uint32_t index) noexcept;
  int refuse(const void* buffer) const noexcept;
  PoolCache* make_cache() noexcept;
  bool take_from_rest(PoolCache* cache, std::uint32_t& index) noexcept;
  bool take_from_others(PoolCache* own, std::uint32_t& index) noexcept;
  bool take_from(PoolCache& victim, PoolCache* own, std::uint32_t& index) noexcept;
  void give_to_rest_locked(PoolCache& cache, std::uint32_t many) noexcept;
  Sight look() const noexcept;
  static int prepare_for_fork_locked() noexcept;
  static void disown_in_child() noexcept;

  // What every call reads.
  unsigned char* base_ = nullptr;
  std::uint64_t stride_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t reciprocal_ = 0;  ///< 2^64 / stride, rounded up
  std::atomic<std::uint8_t>* is_out_ = nullptr;
  std::atomic<PoolCache*>* caches_ = nullptr;  ///< by the thread's number; of 0 there is none
  std::uint32_t cache_room_ = 0;
  std::uint32_t batch_ = 0;
  bool inherited_ = false;
  // What those calls need that found their cache empty or full.
  alignas(kCacheLine) SpinLock lock_;
  PoolRest rest_;
  std::uint32_t count_ = 0;
  BufferPool* next_ = nullptr;
  std::atomic<PoolCache*>* parents_caches_ = nullptr;
};

}  // namespace verbatim
