// SPDX-License-Identifier: BSD-2-Clause
// A pool of buffers with its memory and, in one protection domain, its memory region
// (verbatim/memory.h has the contract). The region is the pool's child of the domain, as any other.
#pragma once

#include <verbatim/memory.h>

#include "runtime/base/result.hpp"
#include "runtime/memory/buffer_pool.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

struct RegisteredPool {
  BufferPool buffers;  ///< first: C programs hold its address
  Mr* mr = nullptr;

  [[nodiscard]] static RegisteredPool* from(vbt_pool* handle) noexcept {
    return reinterpret_cast<RegisteredPool*>(handle);
  }
  [[nodiscard]] vbt_pool* handle() noexcept { return reinterpret_cast<vbt_pool*>(this); }
};

/// `memory` is attr.memory, whole, and `device` the name of its device, or null.
[[nodiscard]] Result<RegisteredPool*> create_pool(const vbt_pool_attr& attr,
                                                  const vbt_alloc_attr& memory, const char* device,
                                                  vbt_alloc_facts& facts) noexcept;
[[nodiscard]] Status destroy_pool(RegisteredPool* pool) noexcept;
[[nodiscard]] vbt_pool_facts facts_of(const RegisteredPool& pool) noexcept;

}  // namespace verbatim
