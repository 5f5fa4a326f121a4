// SPDX-License-Identifier: BSD-2-Clause
// vbt_pool of verbatim/memory.h: control here, buffers out and back in buffer_pool_fast.hpp. Any
// thread.
#include <verbatim/memory.h>

#include "abi/entry/border.hpp"
#include "abi/entry/growing.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/buffer_pool_fast.hpp"
#include "runtime/verbs/registered_pool.hpp"

using verbatim::RegisteredPool;

VBT_ENTRY vbt_pool* vbt_create_pool(const vbt_pool_attr* attr, std::size_t attr_size,
                                    vbt_alloc_facts* facts, std::size_t facts_size) {
  vbt_pool_attr all;
  vbt_alloc_attr memory{};
  constexpr std::size_t kLeast = offsetof(vbt_pool_attr, memory);
  if (!verbatim::take_in(attr, attr_size, kLeast, all) ||
      (all.memory != nullptr &&
       !verbatim::take_in(all.memory, all.memory_size, sizeof memory.size, memory))) {
    verbatim::log_refusal(
        "vbt_create_pool: no attributes, or some that this library does not know");
    errno = EINVAL;
    return nullptr;
  }
  vbt_alloc_facts got;
  const verbatim::Result<RegisteredPool*> pool = verbatim::create_pool(
      all, memory, memory.device == nullptr ? nullptr : ibv_get_device_name(memory.device->device),
      got);
  if (pool.ok()) verbatim::give_out(facts, facts_size, got);
  return verbatim::as_pointer(pool);
}

VBT_ENTRY int vbt_destroy_pool(vbt_pool* pool) {
  if (pool == nullptr) return 0;
  return verbatim::as_errno(verbatim::destroy_pool(RegisteredPool::from(pool)));
}

VBT_ENTRY void* vbt_pool_alloc(vbt_pool* pool) {
  return RegisteredPool::from(pool)->buffers.alloc();
}

VBT_ENTRY int vbt_pool_free(vbt_pool* pool, void* buffer) {
  return RegisteredPool::from(pool)->buffers.free(buffer);
}

VBT_ENTRY int vbt_query_pool(vbt_pool* pool, vbt_pool_facts* facts, std::size_t size) {
  if (pool == nullptr || facts == nullptr) return EINVAL;
  verbatim::give_out(facts, size, verbatim::facts_of(*RegisteredPool::from(pool)));
  return 0;
}
