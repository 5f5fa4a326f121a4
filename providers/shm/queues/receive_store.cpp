// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/receive_store.hpp"

#include <algorithm>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/local_range.hpp"

namespace verbatim::shm {
namespace {

/// How many bytes from the beginning of an SGE on a message may be written to.
[[gnu::cold, gnu::noinline]] std::uint64_t sound_bytes(const KeyHolder& keys,
                                                       const ReceiveSge& sge) noexcept {
  std::uint64_t serial;
  const RegionRecord* record = find_local_key(keys, sge.lkey, IBV_ACCESS_LOCAL_WRITE, serial);
  if (record == nullptr) {
    const KeyHolder on_demand{keys.regions, keys.capacity, holder::kOnDemand | keys.pd};
    record = find_local_key(on_demand, sge.lkey, IBV_ACCESS_LOCAL_WRITE, serial);
  }
  if (record == nullptr) return 0;
  const std::uint64_t offset =
      sge.address - load_relaxed(record->iova);  // huge when it lies before
  const std::uint64_t length = load_relaxed(record->length);
  return offset >= length ? 0 : std::min<std::uint64_t>(sge.length, length - offset);
}

}  // namespace

void ReceiveStore::copy_from(const ReceiveStore& other, std::uint64_t from,
                             std::uint64_t to) noexcept {
  for (std::uint64_t i = from; i != to; ++i) {
    std::copy_n(other.sges_of(i), max_sge, sges_of(i));
    wr_ids[at(i)] = other.wr_ids[other.at(i)];
    // Its length and verdict; the lap is that of the new place.
    const std::uint64_t credit = other.credits[other.at(i)].load(std::memory_order_relaxed);
    credits[at(i)].store(Credit::make(lap(i), static_cast<std::uint32_t>(credit), false),
                         std::memory_order_relaxed);
  }
}

bool ReceiveStore::make_own(const QueueMemory& memory) noexcept {
  const std::size_t entries = std::size_t{1} << log;
  if (wr_ids == nullptr)
    wr_ids = static_cast<std::uint64_t*>(
        memory.take_unset(entries * sizeof(std::uint64_t), alignof(std::uint64_t)));
  return wr_ids != nullptr;
}

bool ReceiveStore::reserve() noexcept {
  return is_reserved = Process::get().segment().reserve(shown_bytes());
}

void ReceiveStore::give_up(const void* owner) noexcept {
  if (OwnSegment& segment = Process::get().segment(); is_reserved && segment.holds(owner))
    segment.give_up(shown_bytes());
  is_reserved = false;
}

std::uint64_t ReceiveStore::make(const QueueMemory& memory) noexcept {
  if (!make_own(memory)) return 0;
  const std::size_t entries = std::size_t{1} << log;
  OwnSegment& segment = Process::get().segment();
  const std::uint64_t offset = segment.allocate(shown_bytes(), true);
  if (offset == 0) return 0;
  is_reserved = false;
  credits = segment.at<std::atomic<std::uint64_t>>(offset);
  sges = segment.at<ReceiveSge>(offset + entries * sizeof(std::uint64_t));
  return offset;
}

void ReceiveStore::release(std::uint64_t offset, bool stays_reserved) noexcept {
  if (credits == nullptr) return;
  if (OwnSegment& segment = Process::get().segment(); segment.holds(credits)) {
    segment.release(offset, shown_bytes(), stays_reserved);
    is_reserved = stays_reserved;
  }
  credits = nullptr;
  sges = nullptr;
}

void ReceiveStore::free(const QueueMemory& memory) noexcept {
  memory.give(wr_ids);
  wr_ids = nullptr;
}

std::uint64_t ReceiveStore::fill(std::uint64_t index, const ibv_recv_wr& wr,
                                 const KeyHolder& keys) noexcept {
  const std::uint32_t count = keep(index, wr);
  std::uint64_t bytes = 0;
  bool bad = false;
  for (std::uint32_t i = 0; i < count && !bad; ++i) {
    const ReceiveSge& sge = sges_of(index)[i];
    LocalRange place;
    bad = !find_local_range(keys, sge.lkey, sge.address, sge.length, IBV_ACCESS_LOCAL_WRITE, place);
    // A message that ends before the first byte that must not be written is an adapter's to take.
    bytes += bad ? sound_bytes(keys, sge) : sge.length;
  }
  return Credit::make(
      lap(index),
      static_cast<std::uint32_t>(bytes < Credit::kLengthMask ? bytes : Credit::kLengthMask), bad);
}

}  // namespace verbatim::shm
