// SPDX-License-Identifier: BSD-2-Clause
// A buffer out of the calling thread's cache, and back into it. buffer_pool.hpp has the rules.
#pragma once

#include "runtime/memory/buffer_pool.hpp"

namespace verbatim {

inline void* BufferPool::hand_out(std::uint32_t index) noexcept {
  is_out_[index].store(1, std::memory_order_relaxed);
  return base_ + index * stride_;
}

inline void* BufferPool::alloc() noexcept {
  PoolCache* const cache = caches_[thread_number].load(std::memory_order_relaxed);
  if (cache == nullptr) [[unlikely]]
    return alloc_slowly(nullptr);
  cache->lock.lock_in_domain();
  const std::uint64_t kept = cache->count.look_locked();
  if (PoolCount::of(kept) == 0) [[unlikely]] {
    cache->lock.unlock();
    return alloc_slowly(cache);
  }
  const std::uint32_t index = cache->indices[PoolCount::of(kept) - 1];
  cache->count.take_one_locked(kept);
  cache->lock.unlock();
  return hand_out(index);
}

inline int BufferPool::free(void* buffer) noexcept {
  const auto offset = static_cast<std::uint64_t>(static_cast<unsigned char*>(buffer) - base_);
  // Exact for every multiple of the stride; anything else is found out by multiplying back.
  __extension__ using Wide = unsigned __int128;
  const auto index = static_cast<std::uint32_t>(static_cast<Wide>(offset) * reciprocal_ >> 64);
  if (offset >= bytes_ || index * stride_ != offset ||
      is_out_[index].load(std::memory_order_relaxed) == 0) [[unlikely]]
    return refuse(buffer);
  PoolCache* const cache = caches_[thread_number].load(std::memory_order_relaxed);
  if (cache == nullptr) [[unlikely]]
    return free_slowly(nullptr, index);
  cache->lock.lock_in_domain();
  const std::uint64_t kept = cache->count.look_locked();
  if (PoolCount::of(kept) == cache_room_ || !cache->near.has(index)) [[unlikely]] {
    cache->lock.unlock();
    return free_slowly(cache, index);
  }
  is_out_[index].store(0, std::memory_order_relaxed);
  cache->indices[PoolCount::of(kept)] = index;
  cache->count.add_one_locked(kept);
  cache->lock.unlock();
  return 0;
}

}  // namespace verbatim
