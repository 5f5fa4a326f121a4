// SPDX-License-Identifier: BSD-2-Clause
// A program's allocators may leave single requests to the library. In front of each piece that they
// were asked for stands whose it is, since their `free` must not see the others.
#include "runtime/verbs/queue_memory.hpp"

#include <cstdlib>
#include <cstring>

#include "runtime/base/cache_line.hpp"
#include "runtime/base/log.hpp"

namespace verbatim {
namespace {

struct Owner {
  bool is_program;
};
/// The owner stands before the piece, in so many bytes that the piece behind it stays aligned.
constexpr std::size_t kOwnerBytes = kCacheLine;
static_assert(sizeof(Owner) <= kOwnerBytes);

void* take_from_library(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

}  // namespace

void* QueueMemory::take(std::size_t bytes, std::size_t alignment) const noexcept {
  // calloc() touches no page of a large piece.
  if (domain_ == nullptr && alignment <= alignof(std::max_align_t))
    return std::calloc(1, bytes != 0 ? bytes : 1);
  void* const memory = take_unset(bytes, alignment);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

void* QueueMemory::take_unset(std::size_t bytes, std::size_t alignment) const noexcept {
  if (bytes == 0) bytes = 1;
  if (domain_ == nullptr) return take_from_library(bytes, alignment);
  const QueueAllocators& by = domain_->allocators;
  if (alignment < kOwnerBytes) alignment = kOwnerBytes;
  const std::size_t whole = kOwnerBytes + bytes;
  void* memory = by.alloc(&domain_->plain, by.context, whole, alignment, type_);
  const bool is_program = memory != IBV_ALLOCATOR_USE_DEFAULT;
  if (!is_program) memory = take_from_library(whole, alignment);
  if (memory == nullptr) {
    log_error("a parent domain's alloc has no %zu bytes for a queue", whole);
    return nullptr;
  }
  if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) {
    log_error("a parent domain's alloc answered %p, which is no multiple of the %zu asked for",
              memory, alignment);
    by.free(&domain_->plain, by.context, memory, type_);
    return nullptr;
  }
  auto* const at = static_cast<unsigned char*>(memory);
  const Owner owner{is_program};
  std::memcpy(at, &owner, sizeof owner);
  return at + kOwnerBytes;
}

void QueueMemory::give(void* memory) const noexcept {
  if (memory == nullptr) return;
  if (domain_ == nullptr) return std::free(memory);
  unsigned char* const at = static_cast<unsigned char*>(memory) - kOwnerBytes;
  Owner owner;
  std::memcpy(&owner, at, sizeof owner);
  if (!owner.is_program) return std::free(at);
  const QueueAllocators& by = domain_->allocators;
  by.free(&domain_->plain, by.context, at, type_);
}

}  // namespace verbatim
