// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/buffer_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/buffer_pool_fast.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim {
namespace {

/// All pools of this process: a fork disowns them, and only they can be destroyed.
struct PoolList {
  Mutex change;
  BufferPool* first = nullptr;
  bool fork_known = false;
};

constinit PoolList pools;

/// The caches of a pool that is not ours: who looks for one there is sent the slow way.
constinit std::atomic<PoolCache*> no_caches[kMaxThreadNumbers] = {};

void lock_for_fork() noexcept { pools.change.lock(); }
void unlock_after_fork() noexcept { pools.change.unlock(); }

/// Where many threads share few buffers, each keeps few.
std::uint32_t batch_for(std::uint32_t count) noexcept {
  return std::clamp(count / 16, 1u, kMaxPoolBatch);
}

/// Takes the locks of two caches, in one order for all who take the two.
class [[nodiscard]] TwoCaches {
 public:
  TwoCaches(PoolCache& own, PoolCache& other) noexcept
      : own_(own), other_(other), own_first_(&own < &other) {
    if (own_first_) own_.lock.lock_in_domain();
    other_.lock.lock();
    if (!own_first_) own_.lock.lock_in_domain();
  }
  TwoCaches(const TwoCaches&) = delete;
  TwoCaches& operator=(const TwoCaches&) = delete;
  ~TwoCaches() {
    own_.lock.unlock();
    other_.lock.unlock();
  }

 private:
  PoolCache& own_;
  PoolCache& other_;
  bool own_first_;
};

}  // namespace

BufferPool::~BufferPool() {
  for (std::uint32_t number = 0; caches_ != nullptr && number < kMaxThreadNumbers; ++number)
    destroy_nothrow(caches_[number].load(std::memory_order_relaxed));
  std::free(static_cast<void*>(caches_));
  std::free(static_cast<void*>(is_out_));
}

int BufferPool::create(unsigned char* base, const PoolShape& shape, const SpreadParts& parts,
                       const PoolMap& map) noexcept {
  base_ = base;
  stride_ = shape.stride;
  count_ = shape.count;
  bytes_ = shape.stride * shape.count;
  reciprocal_ = ~std::uint64_t{0} / shape.stride + 1;
  batch_ = batch_for(shape.count);
  cache_room_ = 2 * batch_;
  // Zeros are what both begin with.
  caches_ = static_cast<std::atomic<PoolCache*>*>(std::calloc(kMaxThreadNumbers, sizeof *caches_));
  is_out_ = static_cast<std::atomic<std::uint8_t>*>(std::calloc(count_, sizeof *is_out_));
  if (caches_ == nullptr || is_out_ == nullptr || !rest_.create(count_, stride_, parts, map))
    return ENOMEM;
  // Without it the caches are ordinary spin locks.
  if (!membarrier_registered.load(std::memory_order_relaxed)) (void)register_for_membarrier();
  const LockGuard guard(pools.change);
  if (const int error = prepare_for_fork_locked()) return error;
  next_ = pools.first;
  pools.first = this;
  return 0;
}

int BufferPool::prepare_for_fork_locked() noexcept {
  if (pools.fork_known) return 0;
  const int error = ::pthread_atfork(lock_for_fork, unlock_after_fork, disown_in_child);
  pools.fork_known = error == 0;
  return error;
}

/// Other threads may have been anywhere in there.
void BufferPool::disown_in_child() noexcept {
  for (BufferPool* pool = pools.first; pool != nullptr; pool = pool->next_) {
    if (pool->inherited_) continue;
    pool->inherited_ = true;
    pool->parents_caches_ = pool->caches_;
    pool->caches_ = no_caches;
  }
  pools.change.unlock();
}

int BufferPool::unlist(BufferPool* pool) noexcept {
  const LockGuard guard(pools.change);
  BufferPool** link = &pools.first;
  while (*link != nullptr && *link != pool) link = &(*link)->next_;
  if (*link == nullptr) return EINVAL;
  if (pool->inherited_) return EPERM;
  if (pool->out() != 0) return EBUSY;
  *link = pool->next_;
  return 0;
}

void BufferPool::list_again() noexcept {
  const LockGuard guard(pools.change);
  next_ = pools.first;
  pools.first = this;
}

PoolCache* BufferPool::make_cache() noexcept {
  const std::uint32_t number = number_this_thread();
  if (number == 0) return nullptr;
  PoolCache* cache = caches_[number].load(std::memory_order_relaxed);
  if (cache != nullptr) return cache;
  cache = make_nothrow<PoolCache>();
  if (cache == nullptr) return nullptr;
  (void)cache->lock.declare();
  cache->near = rest_.near_this_thread();
  // Pairs with the loads of those who look into all caches.
  caches_[number].store(cache, std::memory_order_release);
  return cache;
}

void* BufferPool::alloc_slowly(PoolCache* cache) noexcept {
  if (inherited_) {
    errno = EPERM;
    return nullptr;
  }
  if (cache == nullptr) {
    cache = make_cache();
    // What an earlier thread with this number kept.
    if (cache != nullptr && PoolCount::of(cache->count.look()) != 0) return alloc();
  }
  std::uint32_t index = 0;
  if (take_from_rest(cache, index) || take_from_others(cache, index)) return hand_out(index);
  errno = ENOMEM;
  return nullptr;
}

int BufferPool::free_slowly(PoolCache* cache, std::uint32_t index) noexcept {
  if (inherited_) return EPERM;
  if (cache == nullptr) cache = make_cache();
  is_out_[index].store(0, std::memory_order_relaxed);
  if (cache == nullptr || !cache->near.has(index)) {
    const LockGuard rest(lock_);
    rest_.give_locked(&index, 1);
    return 0;
  }
  cache->lock.lock_in_domain();
  if (cache->count.locked() == cache_room_) {
    const LockGuard rest(lock_);
    give_to_rest_locked(*cache, batch_);
  }
  const std::uint32_t count = cache->count.locked();
  cache->indices[count] = index;
  cache->count.set_locked(count + 1);
  cache->lock.unlock();
  return 0;
}

int BufferPool::refuse(const void* buffer) const noexcept {
  if (buffer == nullptr) return 0;
  if (inherited_) return EPERM;
  const auto offset = static_cast<std::uint64_t>(static_cast<const unsigned char*>(buffer) - base_);
  log_error("vbt_pool_free: %p %s", buffer,
            offset >= bytes_        ? "is none of this pool's buffers"
            : offset % stride_ != 0 ? "lies inside a buffer, and is not its beginning"
                                    : "is not out: it was given back before");
  return EINVAL;
}

/// The oldest go: what was used last is still in the processor's caches. REQUIRES: both locks.
void BufferPool::give_to_rest_locked(PoolCache& cache, std::uint32_t many) noexcept {
  const std::uint32_t left = cache.count.locked() - many;
  rest_.give_locked(cache.indices, many);
  std::memmove(cache.indices, cache.indices + many, left * sizeof *cache.indices);
  cache.count.set_locked(left);
}

/// One for the caller, and the rest of a batch for its cache, if it has one, which is empty.
bool BufferPool::take_from_rest(PoolCache* cache, std::uint32_t& index) noexcept {
  if (rest_.looks_empty()) return false;
  const PoolRange near = rest_.near_this_thread();
  std::uint32_t taken[kMaxPoolBatch];
  std::uint32_t many = 0;
  if (cache != nullptr) {
    cache->lock.lock_in_domain();
    cache->near = near;
  }
  {
    const LockGuard rest(lock_);
    many = rest_.take_locked(near, cache == nullptr ? 1 : batch_, taken);
    if (many > 1) {
      std::memcpy(cache->indices, taken, (many - 1) * sizeof *taken);
      cache->count.set_locked(many - 1);
    }
  }
  if (cache != nullptr) cache->lock.unlock();
  if (many != 0) index = taken[many - 1];
  return many != 0;
}

/// Half of it, rounded up. False: it has become empty.
bool BufferPool::take_from(PoolCache& victim, PoolCache* own, std::uint32_t& index) noexcept {
  if (own == nullptr) {
    const LockGuard guard(victim.lock);
    const std::uint32_t there = victim.count.locked();
    if (there == 0) return false;
    index = victim.indices[there - 1];
    victim.count.set_locked(there - 1);
    return true;
  }
  const TwoCaches guard(*own, victim);
  const std::uint32_t there = victim.count.locked();
  if (there == 0) return false;
  const std::uint32_t left = there / 2;
  index = victim.indices[there - 1];
  std::memcpy(own->indices, victim.indices + left, (there - 1 - left) * sizeof *own->indices);
  own->count.set_locked(there - 1 - left);
  victim.count.set_locked(left);
  return true;
}

bool BufferPool::take_from_others(PoolCache* own, std::uint32_t& index) noexcept {
  for (Sight before = look();;) {
    // Somebody gave back a batch, perhaps.
    if (take_from_rest(own, index)) return true;
    const std::uint32_t highest = highest_thread_number();
    for (std::uint32_t number = 1; before.free_buffers != 0 && number <= highest; ++number) {
      PoolCache* const victim = caches_[number].load(std::memory_order_acquire);
      if (victim == nullptr || victim == own || PoolCount::of(victim->count.look()) == 0) continue;
      if (take_from(*victim, own, index)) return true;
    }
    const Sight after = look();
    if (after.free_buffers == 0 && after.serials == before.serials) return false;
    before = after;
  }
}

BufferPool::Sight BufferPool::look() const noexcept {
  Sight sight;
  const auto add = [&sight](const PoolCount& count) {
    const std::uint64_t both = count.look();
    sight.free_buffers += PoolCount::of(both);
    sight.serials += both >> 32;
  };
  rest_.look(add);
  const std::uint32_t highest = highest_thread_number();
  for (std::uint32_t number = 1; number <= highest; ++number) {
    const PoolCache* const cache = caches_[number].load(std::memory_order_acquire);
    if (cache != nullptr) add(cache->count);
  }
  return sight;
}

std::uint32_t BufferPool::out() const noexcept {
  return count_ - static_cast<std::uint32_t>(std::min<std::uint64_t>(look().free_buffers, count_));
}

}  // namespace verbatim
