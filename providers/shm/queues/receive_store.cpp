// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/receive_store.hpp"

#include <algorithm>
#include <cerrno>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/local_range.hpp"

namespace verbatim::shm {
namespace {

/// How many bytes from the beginning of an SGE on a message may be written to.
[[gnu::cold, gnu::noinline]] std::uint64_t sound_bytes(const KeyHolder& keys,
                                                       const ibv_sge& sge) noexcept {
  std::uint64_t serial;
  const RegionRecord* record = find_local_key(keys, sge.lkey, IBV_ACCESS_LOCAL_WRITE, serial);
  if (record == nullptr) {
    const KeyHolder on_demand{keys.regions, keys.capacity, holder::kOnDemand | keys.pd};
    record = find_local_key(on_demand, sge.lkey, IBV_ACCESS_LOCAL_WRITE, serial);
  }
  if (record == nullptr) return 0;
  const std::uint64_t offset = sge.addr - load_relaxed(record->iova);  // huge when it lies before
  const std::uint64_t length = load_relaxed(record->length);
  return offset >= length ? 0 : std::min<std::uint64_t>(sge.length, length - offset);
}

}  // namespace

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

int ReceiveStore::check(const ibv_recv_wr& wr) const noexcept {
  const bool good =
      wr.num_sge >= 0 && wr.num_sge <= max_sge && (wr.num_sge == 0 || wr.sg_list != nullptr);
  return good ? 0 : EINVAL;
}

std::uint64_t ReceiveStore::fill(std::uint64_t index, const ibv_recv_wr& wr,
                                 const KeyHolder& keys) noexcept {
  ReceiveSge* to = sges_of(index);
  std::uint64_t bytes = 0;
  bool bad = false;
  std::uint32_t filled = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    to[filled++] = {sge.addr, sge.length, sge.lkey};
    if (bad) continue;
    LocalRange place;
    if (find_local_range(keys, sge.lkey, sge.addr, sge.length, IBV_ACCESS_LOCAL_WRITE, place)) {
      bytes += sge.length;
    } else {
      // A message that ends before the first byte that must not be written is an adapter's to take.
      bad = true;
      bytes += sound_bytes(keys, sge);
    }
  }
  if (filled < max_sge) to[filled] = {0, 0, 0};
  wr_ids[at(index)] = wr.wr_id;
  return Credit::make(
      lap(index),
      static_cast<std::uint32_t>(bytes < Credit::kLengthMask ? bytes : Credit::kLengthMask), bad);
}

}  // namespace verbatim::shm
