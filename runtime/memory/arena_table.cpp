// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/arena_table.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/memory_file.hpp"

namespace verbatim {

constinit ArenaTable arena_table;

namespace {

void lock_for_fork() noexcept {
  arena_table.change.lock();
  arena_table.look.lock();
}
void unlock_after_fork() noexcept {
  arena_table.look.unlock();
  arena_table.change.unlock();
}
void disown_in_child() noexcept {
  for (std::uint32_t i = 0; i < arena_table.count; ++i) arena_table.sorted[i]->inherited = true;
  unlock_after_fork();
}

}  // namespace

SharedArena::~SharedArena() {
  if (base != nullptr) ::munmap(base, size);
  destroy_nothrow(pages);
}

int ArenaTable::prepare_for_fork_locked() noexcept {
  if (fork_known) return 0;
  const int error = ::pthread_atfork(lock_for_fork, unlock_after_fork, disown_in_child);
  fork_known = error == 0;
  return error;
}

SharedArena* ArenaTable::find_locked(const void* address) noexcept {
  const auto* const p = static_cast<const unsigned char*>(address);
  std::uint32_t low = 0;
  std::uint32_t high = count;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (sorted[middle]->base <= p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  SharedArena* const arena = sorted[low - 1];
  return static_cast<std::uint64_t>(p - arena->base) < arena->size ? arena : nullptr;
}

int ArenaTable::insert_locked(SharedArena* arena) noexcept {
  if (count == capacity) {
    const std::uint32_t larger = capacity == 0 ? 16 : capacity * 2;
    auto** const grown = static_cast<SharedArena**>(std::malloc(larger * sizeof(SharedArena*)));
    if (grown == nullptr) return ENOMEM;
    SharedArena** const old = sorted;
    if (old != nullptr) std::memcpy(grown, old, count * sizeof(SharedArena*));
    look.lock();
    sorted = grown;
    capacity = larger;
    look.unlock();
    std::free(old);
  }
  std::uint32_t number = 0;
  while (number < kMaxArenaNumbers && by_number[number] != nullptr) ++number;
  if (number == kMaxArenaNumbers) {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn("%u arenas are in use: peers will reach further shared memory by slower copies",
               kMaxArenaNumbers);
    }
  }
  const LockGuard guard(look);
  std::uint32_t at = count;
  while (at > 0 && sorted[at - 1]->base > arena->base) {
    sorted[at] = sorted[at - 1];
    --at;
  }
  sorted[at] = arena;
  ++count;
  if (number < kMaxArenaNumbers) {
    arena->number = number;
    by_number[number] = arena;
  }
  return 0;
}

void ArenaTable::remove_locked(SharedArena* arena) noexcept {
  {
    const LockGuard guard(look);
    std::uint32_t at = 0;
    while (sorted[at] != arena) ++at;
    for (--count; at < count; ++at) sorted[at] = sorted[at + 1];
    if (arena->number != kNoArenaNumber) by_number[arena->number] = nullptr;
  }
  destroy_nothrow(arena);
}

SharedArena* ArenaTable::make_locked(std::uint64_t size, bool packed, std::uint64_t alignment,
                                     int& error) noexcept {
  auto* const arena = make_nothrow<SharedArena>();
  error = ENOMEM;
  if (arena == nullptr) return nullptr;
  arena->size = size;
  if (packed) {
    arena->pages = make_nothrow<ArenaPages>(static_cast<std::uint32_t>(size / page_bytes()));
    if (arena->pages == nullptr) {
      destroy_nothrow(arena);
      return nullptr;
    }
  }
  UniqueFd file;
  error = make_memory_file("verbatim-arena", size, file);
  arena->fd = static_cast<UniqueFd&&>(file);
  if (error == 0)
    error = seal_memory_file(arena->fd.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  if (error == 0)
    error = map_memory_file(arena->fd.get(), size, "shared memory", arena->base, alignment, false);
  if (error == 0) error = insert_locked(arena);
  if (error != 0) {
    destroy_nothrow(arena);
    return nullptr;
  }
  return arena;
}

}  // namespace verbatim
