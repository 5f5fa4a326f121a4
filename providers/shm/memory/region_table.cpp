// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/region_table.hpp"

#include <cerrno>

#include "providers/shm/fabric/node.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {

constinit RegionTable region_table;

namespace {

/// Publishes a record of ours; pairs with find_region().
void write_record(RegionRecord& record, const Region& region, std::uint32_t key,
                  std::uint64_t serial) noexcept {
  poke(record.iova, region.iova);
  poke(record.length, region.length);
  poke(record.address, region.address);
  poke(record.arena_offset, region.arena_offset);
  poke(record.access, region.access);
  poke(record.pd, region.pd);
  poke(record.arena, region.arena);
  poke(record.key, key);
  record.serial.store(serial, std::memory_order_release);
}

}  // namespace

int RegionTable::take(std::uint32_t& key) noexcept {
  OwnSegment& segment = Node::get().segment();
  std::uint32_t index = 0;
  {
    LockGuard<SpinLock> guard(lock_);
    // Fresh indices first, up to a point: an index rests for at least that many registrations.
    constexpr std::uint32_t kRest = 1024;
    const std::uint32_t capacity = segment.head().mr_capacity;
    if (free_head_ != 0 && used_ >= kRest) {
      index = free_head_;
      free_head_ = next_[index];
      if (free_head_ == 0) free_tail_ = 0;
    } else if (used_ + 1 < capacity) {
      index = ++used_;
    } else if (free_head_ != 0) {
      index = free_head_;
      free_head_ = next_[index];
      if (free_head_ == 0) free_tail_ = 0;
    }
    if (index != 0) {
      ++generation_[index];
      segment.head().key_count.store(++in_use_, std::memory_order_relaxed);
    }
  }
  if (index == 0) {
    log_error("all %u memory region keys are in use: deregister some", segment.head().mr_capacity);
    return ENOMEM;
  }
  const RegionRecord& record = segment.regions()[index];
  if (const int error = segment.back(&record, sizeof(record)); error != 0) {
    give_back(index);
    return error;
  }
  key = index << 8 | generation_[index];
  return 0;
}

int RegionTable::publish(const Region& region, std::uint32_t& key) noexcept {
  std::uint32_t taken;
  if (const int error = take(taken); error != 0) return error;
  key = taken;
  show(key, region);
  return 0;
}

int RegionTable::reserve(std::uint32_t& key) noexcept { return take(key); }

void RegionTable::show(std::uint32_t key, const Region& region) noexcept {
  write_record(Node::get().segment().regions()[key >> 8], region, key, next_serial());
}

void RegionTable::hide(std::uint32_t key) noexcept {
  Node::get().segment().regions()[key >> 8].serial.exchange(0, std::memory_order_seq_cst);
}

void RegionTable::release(std::uint32_t key) noexcept {
  const std::uint32_t index = key >> 8;
  generation_[index] = static_cast<std::uint8_t>(key);
  give_back(index);
}

int RegionTable::change(std::uint32_t key, const Region& region, bool may_be_written) noexcept {
  RegionRecord& record = Node::get().segment().regions()[key >> 8];
  const std::uint64_t before = record.serial.exchange(0, std::memory_order_seq_cst);
  if (may_be_written && !await_users_()) {
    record.serial.store(before, std::memory_order_release);
    log_error(
        "rereg_mr: a peer process was stopped in the middle of a copy to or from this region; "
        "continue that process and try again");
    return EBUSY;
  }
  write_record(record, region, key, next_serial());
  return 0;
}

std::uint64_t RegionTable::next_serial() noexcept {
  LockGuard<SpinLock> guard(lock_);
  return ++serials_;
}

int RegionTable::retire(std::uint32_t key, bool may_be_written) noexcept {
  const std::uint32_t index = key >> 8;
  RegionRecord& record = Node::get().segment().regions()[index];
  // A full fence between taking the serial away and looking at the active words: a peer that is odd
  // before this has either seen it gone, or is waited for.
  record.serial.exchange(0, std::memory_order_seq_cst);
  if (may_be_written && !await_users_()) {
    log_error(
        "dereg_mr: a peer process was stopped in the middle of a copy to or from this region; "
        "its key is dead, continue that process and deregister again");
    return EBUSY;
  }
  give_back(index);
  return 0;
}

void RegionTable::give_back(std::uint32_t index) noexcept {
  LockGuard<SpinLock> guard(lock_);
  Node::get().segment().head().key_count.store(--in_use_, std::memory_order_relaxed);
  next_[index] = 0;
  if (free_tail_ != 0)
    next_[free_tail_] = index;
  else
    free_head_ = index;
  free_tail_ = index;
}

void RegionTable::reset() noexcept {
  LockGuard<SpinLock> guard(lock_);
  used_ = in_use_ = free_head_ = free_tail_ = 0;
}

}  // namespace verbatim::shm
