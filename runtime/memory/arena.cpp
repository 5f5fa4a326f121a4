// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/arena.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena_pages.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/memory_room.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kOwnArenaFrom = 1u << 20;
constexpr std::uint64_t kPackedArenaBytes = 4u << 20;
constexpr std::uint64_t kRoomCheckFrom = 1u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 46;

struct SharedArena {
  unsigned char* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t in_use = 0;  ///< bytes of the one allocation; 0: the file waits for the next one
  UniqueFd fd;
  std::uint32_t number = kNoArenaNumber;
  std::uint32_t holds = 0;      ///< registrations of the one allocation
  ArenaPages* pages = nullptr;  ///< of a packed arena
  bool shared = false;
  bool given = false;      ///< a peer may hold a mapping
  bool inherited = false;  ///< made by our parent before it forked

  SharedArena() noexcept = default;
  ~SharedArena() {
    if (base != nullptr) ::munmap(base, size);
    destroy_nothrow(pages);
  }
};

/// All arenas by address, and by number. `change` is held by whoever adds, removes, allocates or
/// frees; `look` guards what lookups read, and is never held across a system call.
struct Table {
  Mutex change;
  SpinLock look;
  SharedArena** sorted = nullptr;
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  SharedArena* by_number[kMaxArenaNumbers] = {};
  std::uint64_t unchecked = 0;  ///< bytes backed since the cgroup was last asked
  bool fork_known = false;
};
constinit Table table;

void lock_for_fork() noexcept {
  table.change.lock();
  table.look.lock();
}
void unlock_after_fork() noexcept {
  table.look.unlock();
  table.change.unlock();
}
void disown_in_child() noexcept {
  for (std::uint32_t i = 0; i < table.count; ++i) table.sorted[i]->inherited = true;
  unlock_after_fork();
}

/// The last arena that starts at or below `address`. Either lock is held.
SharedArena* find_locked(const void* address) noexcept {
  const auto* const p = static_cast<const unsigned char*>(address);
  std::uint32_t low = 0;
  std::uint32_t high = table.count;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (table.sorted[middle]->base <= p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  SharedArena* const arena = table.sorted[low - 1];
  return static_cast<std::uint64_t>(p - arena->base) < arena->size ? arena : nullptr;
}

int insert_locked(SharedArena* arena) noexcept {
  if (table.count == table.capacity) {
    const std::uint32_t capacity = table.capacity == 0 ? 16 : table.capacity * 2;
    auto** const grown = static_cast<SharedArena**>(std::malloc(capacity * sizeof(SharedArena*)));
    if (grown == nullptr) return ENOMEM;
    SharedArena** const old = table.sorted;
    if (old != nullptr) std::memcpy(grown, old, table.count * sizeof(SharedArena*));
    table.look.lock();
    table.sorted = grown;
    table.capacity = capacity;
    table.look.unlock();
    std::free(old);
  }
  std::uint32_t number = 0;
  while (number < kMaxArenaNumbers && table.by_number[number] != nullptr) ++number;
  if (number == kMaxArenaNumbers) {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn("%u arenas are in use: peers will reach further shared memory by slower copies",
               kMaxArenaNumbers);
    }
  }
  const LockGuard guard(table.look);
  std::uint32_t at = table.count;
  while (at > 0 && table.sorted[at - 1]->base > arena->base) {
    table.sorted[at] = table.sorted[at - 1];
    --at;
  }
  table.sorted[at] = arena;
  ++table.count;
  if (number < kMaxArenaNumbers) {
    arena->number = number;
    table.by_number[number] = arena;
  }
  return 0;
}

void remove_locked(SharedArena* arena) noexcept {
  {
    const LockGuard guard(table.look);
    std::uint32_t at = 0;
    while (table.sorted[at] != arena) ++at;
    for (--table.count; at < table.count; ++at) table.sorted[at] = table.sorted[at + 1];
    if (arena->number != kNoArenaNumber) table.by_number[arena->number] = nullptr;
  }
  destroy_nothrow(arena);
}

/// A new arena in the table, without backing.
SharedArena* make_arena_locked(std::uint64_t size, bool packed, int& error) noexcept {
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
  error = make_memory_file("verbatim-arena", size, arena->fd);
  if (error == 0)
    error = seal_memory_file(arena->fd.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  if (error == 0) error = map_memory_file(arena->fd.get(), size, "shared memory", arena->base);
  if (error == 0) error = insert_locked(arena);
  if (error != 0) {
    destroy_nothrow(arena);
    return nullptr;
  }
  return arena;
}

constexpr const char* kPurpose = "shared memory (vbt_alloc_shared)";

/// Small pieces ask once per MiB.
int back_packed_locked(const SharedArena& arena, std::uint64_t offset,
                       std::uint64_t bytes) noexcept {
  table.unchecked += bytes;
  const bool check = table.unchecked > kRoomCheckFrom;
  if (check) table.unchecked = 0;
  return back_memory_file(arena.fd.get(), offset, bytes, kPurpose, check);
}

void* alloc_own_locked(std::uint64_t bytes, int& error) noexcept {
  error = check_memory_room(bytes, kPurpose);
  if (error != 0) return nullptr;
  SharedArena* arena = nullptr;
  for (std::uint32_t i = 0; i < table.count; ++i) {
    SharedArena* const waiting = table.sorted[i];
    if (waiting->pages == nullptr && waiting->in_use == 0 && waiting->size >= bytes &&
        !waiting->inherited && (arena == nullptr || waiting->size < arena->size)) {
      arena = waiting;
    }
  }
  if (arena == nullptr) arena = make_arena_locked(bytes, false, error);
  if (arena == nullptr) return nullptr;
  error = back_memory_file(arena->fd.get(), 0, bytes, kPurpose, false);
  if (error != 0) {
    if (arena->given) {
      punch_memory_file(arena->fd.get(), 0, bytes);
    } else {
      remove_locked(arena);
    }
    return nullptr;
  }
  const LockGuard guard(table.look);
  arena->in_use = bytes;
  return arena->base;
}

void* alloc_packed_locked(std::uint64_t bytes, int& error) noexcept {
  const std::uint64_t page = page_bytes();
  const auto count = static_cast<std::uint32_t>(bytes / page);
  SharedArena* arena = nullptr;
  std::uint32_t first = ArenaPages::kNone;
  for (std::uint32_t i = 0; i < table.count && first == ArenaPages::kNone; ++i) {
    arena = table.sorted[i];
    if (arena->pages == nullptr || arena->inherited) continue;
    const LockGuard guard(table.look);
    first = arena->pages->take(count);
  }
  if (first == ArenaPages::kNone) {
    arena = make_arena_locked(kPackedArenaBytes, true, error);
    if (arena == nullptr) return nullptr;
    const LockGuard guard(table.look);
    first = arena->pages->take(count);
  }
  error = back_packed_locked(*arena, first * page, bytes);
  if (error != 0) {
    punch_memory_file(arena->fd.get(), first * page, bytes);
    const LockGuard guard(table.look);
    arena->pages->give(first);
    return nullptr;
  }
  return arena->base + first * page;
}

int free_own_locked(SharedArena* arena, const void* address) noexcept {
  std::uint64_t bytes = 0;
  {
    const LockGuard guard(table.look);
    if (address != arena->base || arena->in_use == 0) return EINVAL;
    if (arena->holds != 0) return EBUSY;
    bytes = arena->in_use;
    arena->in_use = 0;
  }
  if (!arena->given) {
    remove_locked(arena);
  } else if (!arena->inherited) {
    punch_memory_file(arena->fd.get(), 0, bytes);
  }
  return 0;
}

int free_packed_locked(SharedArena* arena, const void* address) noexcept {
  const std::uint64_t page = page_bytes();
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const unsigned char*>(address) - arena->base);
  const auto first = static_cast<std::uint32_t>(offset / page);
  std::uint32_t count = 0;
  {
    const LockGuard guard(table.look);
    count = arena->pages->allocated_at(first);
    if (offset % page != 0 || count == 0) return EINVAL;
    if (arena->pages->held(first)) return EBUSY;
  }
  if (!arena->inherited) punch_memory_file(arena->fd.get(), offset, count * page);
  bool empty = false;
  {
    const LockGuard guard(table.look);
    arena->pages->give(first);
    empty = arena->pages->empty();
  }
  if (empty && !arena->given) remove_locked(arena);
  return 0;
}

/// Finds the range under `look` and, for a positive or negative `holds`, counts it.
bool look_up(const void* address, std::uint64_t length, int holds, ArenaView& view) noexcept {
  const std::uint64_t page = page_bytes();
  const LockGuard guard(table.look);
  SharedArena* const arena = find_locked(address);
  if (arena == nullptr) return false;
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const unsigned char*>(address) - arena->base);
  const std::uint64_t end = arena->pages != nullptr ? arena->size : arena->in_use;
  if (offset >= end || length > end - offset) return false;
  if (arena->pages == nullptr) {
    arena->holds += static_cast<std::uint32_t>(holds);
  } else {
    const auto first = static_cast<std::uint32_t>(offset / page);
    const auto last = static_cast<std::uint32_t>((offset + (length == 0 ? 0 : length - 1)) / page);
    if (!arena->pages->all_in_use(first, last)) return false;
    if (holds > 0) arena->pages->hold(first, last);
    if (holds < 0) arena->pages->drop(first, last);
  }
  view = {.number = arena->number, .offset = offset, .size = arena->size, .fd = arena->fd.get()};
  return true;
}

}  // namespace

void* alloc_shared(std::size_t bytes, int& error) noexcept {
  error = EINVAL;
  if (bytes == 0) return nullptr;
  error = ENOMEM;
  if (bytes > kLargest) return nullptr;
  const std::uint64_t page = page_bytes();
  const std::uint64_t rounded = (bytes + page - 1) / page * page;
  const LockGuard guard(table.change);
  if (!table.fork_known) {
    error = ::pthread_atfork(lock_for_fork, unlock_after_fork, disown_in_child);
    if (error != 0) return nullptr;
    table.fork_known = true;
  }
  return rounded >= kOwnArenaFrom ? alloc_own_locked(rounded, error)
                                  : alloc_packed_locked(rounded, error);
}

int free_shared(void* address) noexcept {
  if (address == nullptr) return 0;
  const LockGuard guard(table.change);
  SharedArena* const arena = find_locked(address);
  if (arena == nullptr) return EINVAL;
  return arena->pages != nullptr ? free_packed_locked(arena, address)
                                 : free_own_locked(arena, address);
}

bool arena_of(const void* address, std::uint64_t length, ArenaView& view) noexcept {
  return look_up(address, length, 0, view);
}

bool arena_hold(const void* address, std::uint64_t length, ArenaView& view) noexcept {
  return look_up(address, length, 1, view);
}

void arena_drop(const void* address, std::uint64_t length) noexcept {
  ArenaView view;
  (void)look_up(address, length, -1, view);
}

void arena_share(std::uint32_t number) noexcept {
  const LockGuard guard(table.look);
  if (number < kMaxArenaNumbers && table.by_number[number] != nullptr)
    table.by_number[number]->shared = true;
}

int arena_give(std::uint32_t number, UniqueFd& fd, std::uint64_t& size) noexcept {
  const LockGuard guard(table.change);
  SharedArena* const arena = number < kMaxArenaNumbers ? table.by_number[number] : nullptr;
  if (arena == nullptr) return ENOENT;
  {
    const LockGuard look(table.look);
    if (!arena->shared) return EACCES;
  }
  const int copy = ::fcntl(arena->fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno;
  fd.reset(copy);
  size = arena->size;
  arena->given = true;
  return 0;
}

unsigned char* arena_base(std::uint32_t number, std::uint64_t& size) noexcept {
  const LockGuard guard(table.change);
  SharedArena* const arena = number < kMaxArenaNumbers ? table.by_number[number] : nullptr;
  if (arena == nullptr) return nullptr;
  size = arena->size;
  arena->given = true;
  return arena->base;
}

}  // namespace verbatim
