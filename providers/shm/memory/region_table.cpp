// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/region_table.hpp"

#include "providers/shm/fabric/process.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {

constinit RegionTable region_table;

RegionRecord* SegmentKeys::records() noexcept { return Process::get().segment().regions(); }

std::uint32_t SegmentKeys::capacity() noexcept {
  return Process::get().segment().head().mr_capacity;
}

int SegmentKeys::back(const RegionRecord& record) noexcept {
  return Process::get().segment().back(&record, sizeof(record));
}

void SegmentKeys::write_rest(RegionRecord& record, const Region& region) noexcept {
  store_relaxed(record.arena_offset, region.arena_offset);
  store_relaxed(record.arena, region.arena);
}

void SegmentKeys::counted(std::uint32_t keys) noexcept {
  Process::get().segment().head().key_count.store(keys, std::memory_order_relaxed);
}

int RegionTable::publish(const Region& region, std::uint32_t& key) noexcept {
  return keys_.publish(region, key);
}

int RegionTable::reserve(std::uint32_t& key) noexcept { return keys_.reserve(key); }

void RegionTable::show(std::uint32_t key, const Region& region) noexcept {
  keys_.show(key, region);
}

void RegionTable::hide(std::uint32_t key) noexcept { keys_.hide(key); }

void RegionTable::release(std::uint32_t key) noexcept { keys_.release(key); }

int RegionTable::change(std::uint32_t key, const Region& region, bool may_be_written) noexcept {
  const int error = keys_.change(key, region, users_of(may_be_written));
  if (error != 0)
    log_error(
        "rereg_mr: a peer process was stopped in the middle of a copy to or from this region; "
        "continue that process and try again");
  return error;
}

int RegionTable::retire(std::uint32_t key, bool may_be_written) noexcept {
  const int error = keys_.retire(key, users_of(may_be_written));
  if (error != 0)
    log_error(
        "dereg_mr: a peer process was stopped in the middle of a copy to or from this region; "
        "its key is dead, continue that process and deregister again");
  return error;
}

void RegionTable::reset() noexcept { keys_.reset(); }

}  // namespace verbatim::shm
