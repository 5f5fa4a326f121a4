// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/ledger.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {
namespace {

struct Ledger {
  Mutex change;
  PlacedBlock* sorted = nullptr;  ///< by address; blocks do not overlap
  std::uint32_t capacity = 0;
  std::atomic<std::uint32_t> count{0};
  std::uint64_t last_serial = 0;
  bool fork_known = false;
};

constinit Ledger ledger;

void lock_for_fork() noexcept { ledger.change.lock(); }
void unlock_after_fork() noexcept { ledger.change.unlock(); }

std::uint32_t size_locked() noexcept { return ledger.count.load(std::memory_order_relaxed); }

/// The first block that ends behind `address`.
std::uint32_t find_locked(const unsigned char* address) noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = size_locked();
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (ledger.sorted[middle].base + ledger.sorted[middle].bytes <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

int grow_locked() noexcept {
  const std::uint32_t larger = ledger.capacity == 0 ? 64 : ledger.capacity * 2;
  auto* const grown = static_cast<PlacedBlock*>(
      std::realloc(static_cast<void*>(ledger.sorted), larger * sizeof(PlacedBlock)));
  if (grown == nullptr) return ENOMEM;
  ledger.sorted = grown;
  ledger.capacity = larger;
  return 0;
}

/// REQUIRES: room for one more.
void insert_locked(const PlacedBlock& block) noexcept {
  const std::uint32_t at = find_locked(block.base);
  const std::uint32_t behind = size_locked() - at;
  PlacedBlock* const place = ledger.sorted + at;
  std::memmove(static_cast<void*>(place + 1), place, behind * sizeof(PlacedBlock));
  *place = block;
  ledger.count.store(size_locked() + 1, std::memory_order_relaxed);
}

/// Calls act(block) for each block that the range touches.
template <class F>
void for_each_locked(const void* address, std::uint64_t length, F act) noexcept {
  const auto* const first = static_cast<const unsigned char*>(address);
  for (std::uint32_t at = find_locked(first); at < size_locked(); ++at) {
    PlacedBlock& block = ledger.sorted[at];
    if (block.base > first && static_cast<std::uint64_t>(block.base - first) >= length) return;
    act(block);
  }
}

}  // namespace

int ledger_add(const PlacedBlock& block) noexcept {
  const LockGuard guard(ledger.change);
  if (!ledger.fork_known) {
    const int error = ::pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
    if (error != 0) return error;
    ledger.fork_known = true;
  }
  if (size_locked() == ledger.capacity) {
    if (const int error = grow_locked()) return error;
  }
  PlacedBlock numbered = block;
  numbered.serial = ++ledger.last_serial;
  insert_locked(numbered);
  return 0;
}

int ledger_take(const void* address, PlacedBlock& block) noexcept {
  const LockGuard guard(ledger.change);
  const std::uint32_t at = find_locked(static_cast<const unsigned char*>(address));
  if (at == size_locked() || ledger.sorted[at].base != address) return EINVAL;
  PlacedBlock* const place = ledger.sorted + at;
  if (place->holds != 0) return EBUSY;
  block = *place;
  const std::uint32_t behind = size_locked() - at - 1;
  std::memmove(static_cast<void*>(place), place + 1, behind * sizeof(PlacedBlock));
  ledger.count.store(size_locked() - 1, std::memory_order_relaxed);
  return 0;
}

std::uint32_t ledger_regions(const void* address) noexcept {
  const LockGuard guard(ledger.change);
  const std::uint32_t at = find_locked(static_cast<const unsigned char*>(address));
  return at != size_locked() && ledger.sorted[at].base == address ? ledger.sorted[at].holds : 0;
}

void ledger_return(const PlacedBlock& block) noexcept {
  const LockGuard guard(ledger.change);
  // Another thread may have taken the room since.
  if (size_locked() == ledger.capacity && grow_locked() != 0) return;
  insert_locked(block);
}

std::uint64_t ledger_hold(const void* address, std::uint64_t length) noexcept {
  // Who registers a block knows it from the thread that allocated it, and with it this count.
  if (ledger.count.load(std::memory_order_relaxed) == 0) return 0;
  const LockGuard guard(ledger.change);
  std::uint64_t serial = 0;
  for_each_locked(address, length, [&](PlacedBlock& block) {
    ++block.holds;
    serial = ledger.last_serial;
  });
  return serial;
}

void ledger_drop(const void* address, std::uint64_t length, std::uint64_t serial) noexcept {
  if (serial == 0) return;
  const LockGuard guard(ledger.change);
  for_each_locked(address, length, [&](PlacedBlock& block) {
    if (block.serial <= serial) --block.holds;
  });
}

}  // namespace verbatim
