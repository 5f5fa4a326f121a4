// SPDX-License-Identifier: BSD-2-Clause
//
// Memory of a queue that no other process sees: the library's, or that of the allocators which a
// program named for its parent domain (man ibv_alloc_parent_domain). They are called on the
// program's own threads, from verbs that create, resize and destroy, and never with a lock held.
#pragma once

#include <verbatim/memory.h>

#include <cstddef>
#include <cstdint>

#include "runtime/verbs/handles.hpp"

namespace verbatim {

class QueueMemory {
 public:
  /// Memory of the library.
  QueueMemory() noexcept = default;
  /// Memory for a queue of `type` in `domain`, or in none.
  QueueMemory(ibv_pd* domain, vbt_resource type) noexcept
      : domain_(domain == nullptr ? nullptr : &Pd::from(domain)), type_(type) {
    if (domain_ != nullptr && domain_->allocators.alloc == nullptr) domain_ = nullptr;
  }
  /// Whether allocators of the program give it. Then all of it must be taken while the queue is
  /// created.
  [[nodiscard]] bool is_of_program() const noexcept { return domain_ != nullptr; }

  /// Zeroed, at a multiple of `alignment`, a power of two. nullptr: there is none.
  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) const noexcept;
  /// Takes memory as it comes, for what is written before it is read: of a long queue that is never
  /// full, only what is used takes memory of the system.
  [[nodiscard]] void* take_unset(std::size_t bytes, std::size_t alignment) const noexcept;
  /// Gives back what take() or take_unset() answered, or nullptr.
  void give(void* memory) const noexcept;

 private:
  Pd* domain_ = nullptr;
  std::uint64_t type_ = 0;
};

}  // namespace verbatim
