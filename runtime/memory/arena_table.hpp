// SPDX-License-Identifier: BSD-2-Clause
//
// All arenas of this process: by address for look-ups, by number for peers. Internal to
// runtime/memory; arena.hpp is the door.
//
// Two locks, taken in this order: `change` by whoever adds, removes, allocates or frees (it is held
// across system calls), `look` by whoever reads or writes what look-ups read (it never is). Around
// a fork both are held, so that the child finds them free.
#pragma once

#include <cstdint>

#include "runtime/base/kept_fd.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/arena_pages.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

struct SharedArena {
  unsigned char* base = nullptr;
  std::uint64_t size = 0;
  std::uint64_t in_use = 0;  ///< bytes of the one allocation; 0: the file waits for the next one
  KeptFd fd;
  std::uint32_t number = kNoArenaNumber;
  std::uint32_t holds = 0;      ///< registrations of the one allocation
  ArenaPages* pages = nullptr;  ///< of a packed arena
  bool shared = false;
  bool given = false;      ///< a peer may hold a mapping
  bool placed = false;     ///< the file has a memory policy
  bool inherited = false;  ///< made by our parent before it forked

  SharedArena() noexcept = default;
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  /// Unmaps and closes.
  ~SharedArena();
};

struct ArenaTable {
  Mutex change;
  SpinLock look;
  SharedArena** sorted = nullptr;  ///< by address
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  SharedArena* by_number[kMaxArenaNumbers] = {};
  bool fork_known = false;

  /// Lets fork() take the locks. 0 or an errno. REQUIRES: `change` is held.
  [[nodiscard]] int prepare_for_fork_locked() noexcept;
  /// The arena that contains `address`, or nullptr. REQUIRES: either lock is held.
  [[nodiscard]] SharedArena* find_locked(const void* address) noexcept;
  /// A new arena, mapped and sealed but without memory. REQUIRES: `change` is held.
  [[nodiscard]] SharedArena* make_locked(std::uint64_t size, bool packed, std::uint64_t alignment,
                                         int& error) noexcept;
  /// Takes it out and destroys it. REQUIRES: `change` is held.
  void remove_locked(SharedArena* arena) noexcept;

 private:
  int insert_locked(SharedArena* arena) noexcept;
};

extern ArenaTable arena_table;

}  // namespace verbatim
