// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/arena.hpp"

#include <fcntl.h>

#include <cerrno>

#include "runtime/base/log.hpp"
#include "runtime/memory/arena_table.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/memory_headroom.hpp"
#include "runtime/memory/populate.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kOwnArenaFrom = 1u << 20;
constexpr std::uint64_t kPackedArenaBytes = 4u << 20;
constexpr std::uint64_t kRoomCheckFrom = 1u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 46;

constinit std::uint64_t unchecked =
    0;  // packed bytes backed since the cgroup was last asked, under `change`
constexpr const char* kPurpose = "shared memory (vbt_alloc_shared)";

/// The application may have closed the file, and have another one under its number.
void punch(const SharedArena& arena, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (arena.fd.is_ours()) punch_memory_file(arena.fd.get(), offset, bytes);
}

int back(const SharedArena& arena, std::uint64_t offset, std::uint64_t bytes, bool check) noexcept {
  if (!arena.fd.is_ours()) {
    log_error("%s: the application closed the descriptor of the memory", kPurpose);
    return EBADF;
  }
  return back_memory_file(arena.fd.get(), offset, bytes, kPurpose, check);
}

/// Small pieces ask once per MiB.
int back_packed_locked(const SharedArena& arena, std::uint64_t offset,
                       std::uint64_t bytes) noexcept {
  unchecked += bytes;
  const bool check = unchecked > kRoomCheckFrom;
  if (check) unchecked = 0;
  return back(arena, offset, bytes, check);
}

/// Backs an arena of one allocation; by faults where that is how the mapping's advice
/// (map_memory_file) is heard.
int back_own_locked(const SharedArena& arena, std::uint64_t bytes) noexcept {
  if (bytes >= kHugePage && memory_files_take_advice() && populate(arena.base, bytes) == 0)
    return 0;
  return back(arena, 0, bytes, false);
}

/// Where an arena of one allocation is to lie; the default says nothing.
struct OwnPlace {
  std::uint64_t alignment = 1;
  PagePlan plan;
  int placed = 0;
};

void* alloc_own_locked(std::uint64_t bytes, OwnPlace& place, int& error) noexcept {
  error = check_memory_headroom(bytes, kPurpose);
  if (error != 0) return nullptr;
  SharedArena* arena = nullptr;
  for (std::uint32_t i = 0; i < arena_table.count; ++i) {
    SharedArena* const waiting = arena_table.sorted[i];
    if (waiting->pages == nullptr && waiting->in_use == 0 && waiting->size >= bytes &&
        !waiting->inherited &&
        reinterpret_cast<std::uintptr_t>(waiting->base) % place.alignment == 0 &&
        (arena == nullptr || waiting->size < arena->size)) {
      arena = waiting;
    }
  }
  if (arena == nullptr) arena = arena_table.make_locked(bytes, false, place.alignment, error);
  if (arena == nullptr) return nullptr;
  // The file remembers: its last user may have chosen.
  if (arena->placed) forget_placement(arena->base, arena->size);
  arena->placed = !place.plan.nodes.empty();
  place.placed = place_pages(arena->base, bytes, place.plan);
  error = back_own_locked(*arena, bytes);
  if (error != 0) {
    if (arena->given) {
      punch(*arena, 0, bytes);
    } else {
      arena_table.remove_locked(arena);
    }
    return nullptr;
  }
  const LockGuard guard(arena_table.look);
  arena->in_use = bytes;
  return arena->base;
}

void* alloc_packed_locked(std::uint64_t bytes, int& error) noexcept {
  const std::uint64_t page = page_bytes();
  const auto count = static_cast<std::uint32_t>(bytes / page);
  SharedArena* arena = nullptr;
  std::uint32_t first = ArenaPages::kNone;
  for (std::uint32_t i = 0; i < arena_table.count && first == ArenaPages::kNone; ++i) {
    arena = arena_table.sorted[i];
    if (arena->pages == nullptr || arena->inherited) continue;
    const LockGuard guard(arena_table.look);
    first = arena->pages->take(count);
  }
  if (first == ArenaPages::kNone) {
    arena = arena_table.make_locked(kPackedArenaBytes, true, 1, error);
    if (arena == nullptr) return nullptr;
    const LockGuard guard(arena_table.look);
    first = arena->pages->take(count);
  }
  error = back_packed_locked(*arena, first * page, bytes);
  if (error != 0) {
    punch(*arena, first * page, bytes);
    const LockGuard guard(arena_table.look);
    arena->pages->give(first);
    return nullptr;
  }
  return arena->base + first * page;
}

int free_own_locked(SharedArena* arena, const void* address) noexcept {
  std::uint64_t bytes = 0;
  {
    const LockGuard guard(arena_table.look);
    if (address != arena->base || arena->in_use == 0) return EINVAL;
    if (arena->holds != 0) return EBUSY;
    bytes = arena->in_use;
    arena->in_use = 0;
  }
  if (!arena->given) {
    arena_table.remove_locked(arena);
  } else if (!arena->inherited) {
    punch(*arena, 0, bytes);
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
    const LockGuard guard(arena_table.look);
    count = arena->pages->allocated_at(first);
    if (offset % page != 0 || count == 0) return EINVAL;
    if (arena->pages->held(first)) return EBUSY;
  }
  if (!arena->inherited) punch(*arena, offset, count * page);
  bool empty = false;
  {
    const LockGuard guard(arena_table.look);
    arena->pages->give(first);
    empty = arena->pages->empty();
  }
  if (empty && !arena->given) arena_table.remove_locked(arena);
  return 0;
}

int round_up(std::size_t bytes, std::uint64_t& rounded) noexcept {
  if (bytes == 0) return EINVAL;
  if (bytes > kLargest) return ENOMEM;
  const std::uint64_t page = page_bytes();
  rounded = (bytes + page - 1) / page * page;
  return 0;
}

/// Finds the range under `look` and, for a positive or negative `holds`, counts it.
bool look_up(const void* address, std::uint64_t length, int holds, ArenaView& view) noexcept {
  const std::uint64_t page = page_bytes();
  const LockGuard guard(arena_table.look);
  SharedArena* const arena = arena_table.find_locked(address);
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
  std::uint64_t rounded = 0;
  error = round_up(bytes, rounded);
  if (error != 0) return nullptr;
  const LockGuard guard(arena_table.change);
  error = arena_table.prepare_for_fork_locked();
  if (error != 0) return nullptr;
  if (rounded < kOwnArenaFrom) return alloc_packed_locked(rounded, error);
  OwnPlace anywhere;
  return alloc_own_locked(rounded, anywhere, error);
}

void* alloc_shared_placed(std::size_t bytes, std::size_t alignment, const PagePlan& plan,
                          int& placed, int& error) noexcept {
  std::uint64_t rounded = 0;
  error = round_up(bytes, rounded);
  if (error != 0) return nullptr;
  const LockGuard guard(arena_table.change);
  error = arena_table.prepare_for_fork_locked();
  if (error != 0) return nullptr;
  OwnPlace place{.alignment = alignment, .plan = plan, .placed = 0};
  void* const memory = alloc_own_locked(rounded, place, error);
  placed = place.placed;
  return memory;
}

int free_shared(void* address) noexcept {
  if (address == nullptr) return 0;
  const LockGuard guard(arena_table.change);
  SharedArena* const arena = arena_table.find_locked(address);
  if (arena == nullptr) return EINVAL;
  return arena->pages != nullptr ? free_packed_locked(arena, address)
                                 : free_own_locked(arena, address);
}

bool arena_of(const void* address, std::uint64_t length, ArenaView& view) noexcept {
  return look_up(address, length, 0, view);
}

int arena_prepare_for_forks() noexcept {
  const LockGuard guard(arena_table.change);
  return arena_table.prepare_for_fork_locked();
}

bool arena_hold(const void* address, std::uint64_t length, ArenaView& view) noexcept {
  return look_up(address, length, 1, view);
}

void arena_drop(const void* address, std::uint64_t length) noexcept {
  ArenaView view;
  (void)look_up(address, length, -1, view);
}

void arena_share(std::uint32_t number) noexcept {
  const LockGuard guard(arena_table.look);
  if (number < kMaxArenaNumbers && arena_table.by_number[number] != nullptr)
    arena_table.by_number[number]->shared = true;
}

int arena_give(std::uint32_t number, UniqueFd& fd, std::uint64_t& size) noexcept {
  const LockGuard guard(arena_table.change);
  SharedArena* const arena = number < kMaxArenaNumbers ? arena_table.by_number[number] : nullptr;
  if (arena == nullptr) return ENOENT;
  {
    const LockGuard look(arena_table.look);
    if (!arena->shared) return EACCES;
    if (arena->pages == nullptr && arena->in_use == 0)
      return ENOENT;  // freed: waits for its next user
  }
  if (!arena->fd.is_ours()) return ENOENT;
  const int copy = ::fcntl(arena->fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno;
  fd.reset(copy);
  size = arena->size;
  arena->given = true;
  return 0;
}

unsigned char* arena_base(std::uint32_t number, std::uint64_t& size) noexcept {
  const LockGuard guard(arena_table.change);
  SharedArena* const arena = number < kMaxArenaNumbers ? arena_table.by_number[number] : nullptr;
  if (arena == nullptr) return nullptr;
  size = arena->size;
  arena->given = true;
  return arena->base;
}

}  // namespace verbatim
