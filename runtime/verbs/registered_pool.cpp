// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/registered_pool.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/ledger.hpp"
#include "runtime/memory/placed_memory.hpp"
#include "runtime/memory/placed_release.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/memory_regions.hpp"

namespace verbatim {
namespace {

constexpr const char* kCreatePool = "vbt_create_pool";
constexpr const char* kDestroy = "vbt_destroy_pool";
constexpr std::size_t kLargestBuffer = std::size_t{1} << 30;
constexpr std::size_t kMostBuffers = (std::size_t{1} << 31) - 1;
constexpr std::size_t kSmallestAlignment = 8;
constexpr std::size_t kUsualAlignment = 64;

const char* wrong_with(const vbt_pool_attr& attr, const vbt_alloc_attr& memory) noexcept {
  if (attr.buffer_size == 0 || attr.buffer_size > kLargestBuffer)
    return "buffers of 0 bytes, or of more than 1 GiB";
  if (attr.count == 0 || attr.count > kMostBuffers) return "no buffers, or 2^31 of them or more";
  if (attr.alignment != 0 &&
      (!std::has_single_bit(attr.alignment) || attr.alignment < kSmallestAlignment ||
       attr.alignment > kLargestBuffer))
    return "an alignment that is no power of two from 8 up to 1 GiB";
  if (attr.flags != 0) return "unknown flags";
  if (memory.size != 0) return "a size of the memory, which the pool knows itself";
  return nullptr;
}

PoolShape shape_of(const vbt_pool_attr& attr) noexcept {
  const std::uint64_t alignment = attr.alignment != 0 ? attr.alignment : kUsualAlignment;
  return {.stride = (attr.buffer_size + alignment - 1) / alignment * alignment,
          .count = static_cast<std::uint32_t>(attr.count)};
}

void give_memory_back(void* base) noexcept {
  if (const int error = free_placed(base))
    log_warn("a pool's memory stays mapped: error %d", error);
}

Status fill(RegisteredPool& pool, const vbt_pool_attr& attr, unsigned char* base,
            const SpreadParts& parts) noexcept {
  const PoolShape shape = shape_of(attr);
  if (attr.pd != nullptr) {
    const Result<Mr*> mr = reg_mr(Pd::from(attr.pd), base, shape.stride * shape.count,
                                  reinterpret_cast<std::uintptr_t>(base), attr.access);
    if (!mr.ok()) return mr.error();
    pool.mr = mr.value();
  }
  const int error = pool.buffers.create(base, shape, parts);
  if (error == 0) return {};
  if (pool.mr != nullptr) (void)dereg_mr(*pool.mr);
  return refuse(error, kCreatePool, "no memory to keep account of the buffers");
}

}  // namespace

Result<RegisteredPool*> create_pool(const vbt_pool_attr& attr, const vbt_alloc_attr& memory,
                                    const char* device, vbt_alloc_facts& facts) noexcept {
  if (const char* const wrong = wrong_with(attr, memory)) return refuse(EINVAL, kCreatePool, wrong);
  const PoolShape shape = shape_of(attr);
  vbt_alloc_attr whole = memory;
  // Below 2^61.
  whole.size = shape.stride * shape.count;
  whole.alignment = std::max({memory.alignment, attr.alignment, kUsualAlignment});
  int error = 0;
  SpreadParts parts;
  void* const base = alloc_placed(whole, device, facts, error, &parts);
  if (base == nullptr) return Error{error, "alloc_placed"};
  auto* const pool = make_nothrow<RegisteredPool>();
  const Status status = pool == nullptr
                            ? Status(refuse(ENOMEM, kCreatePool, "no memory for the pool itself"))
                            : fill(*pool, attr, static_cast<unsigned char*>(base), parts);
  if (status.ok()) return pool;
  destroy_nothrow(pool);
  give_memory_back(base);
  return status.error();
}

Status destroy_pool(RegisteredPool* pool) noexcept {
  // It may be anything: nothing is looked at before it is found to be one of ours.
  static_assert(offsetof(RegisteredPool, buffers) == 0);
  switch (const int error = BufferPool::unlist(reinterpret_cast<BufferPool*>(pool))) {
    case 0:
      break;
    case EINVAL:
      return refuse(error, kDestroy, "no pool, or one that was destroyed before");
    case EBUSY:
      return refuse_busy(kDestroy, pool->buffers.out(), "buffers");
    default:
      return refuse(error, kDestroy, "the pool is the parent's");
  }
  BufferPool& buffers = pool->buffers;
  // One whose device was closed holds the memory no more.
  const bool is_held = pool->mr != nullptr && pool->mr->owned.state == Owned::State::kListed;
  const std::uint32_t others = ledger_regions(buffers.base()) - (is_held ? 1 : 0);
  Status status;
  if (others != 0) {
    status = refuse_busy(kDestroy, others, "memory regions");
  } else if (pool->mr != nullptr) {
    status = dereg_mr(*pool->mr);
  }
  if (!status.ok()) {
    buffers.list_again();
    return status;
  }
  give_memory_back(buffers.base());
  destroy_nothrow(pool);
  return {};
}

vbt_pool_facts facts_of(const RegisteredPool& pool) noexcept {
  const PoolShape shape = pool.buffers.shape();
  return {.memory = pool.buffers.base(),
          .size = shape.stride * shape.count,
          .stride = shape.stride,
          .count = shape.count,
          .out = pool.buffers.out(),
          .mr = pool.mr == nullptr ? nullptr : &pool.mr->plain};
}

}  // namespace verbatim
