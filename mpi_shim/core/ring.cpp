// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/ring.hpp"

namespace vmpi {

bool RingWriter::look() noexcept {
  // Pairs with the store in RingReader::take(). What cannot be is not believed.
  const std::uint32_t taken = memory_->taken.load(std::memory_order_acquire);
  if (sent_ - taken <= sent_ - taken_) taken_ = taken;
  return sent_ - taken_ < RingMemory::kSlots;
}

bool RingWriter::find_place(std::uint32_t bytes) noexcept {
  while (longs_ != 0 && static_cast<std::int32_t>(taken_ - long_[first_long_].number) > 0) {
    tail_ = long_[first_long_].end;
    first_long_ = (first_long_ + 1) % RingMemory::kSlots;
    --longs_;
  }
  // What is free from the beginning on has been in use last, and lies in caches.
  if (longs_ == 0) head_ = tail_ = 0;
  const std::uint32_t at = head_ % RingMemory::kBytes;
  const std::uint32_t skipped = bytes <= RingMemory::kBytes - at ? 0 : RingMemory::kBytes - at;
  const std::uint32_t rounded =
      (bytes + RingMemory::kUnit - 1) / RingMemory::kUnit * RingMemory::kUnit;
  if (head_ - tail_ + skipped + rounded > RingMemory::kBytes) return false;
  place_ = skipped == 0 ? at : 0;
  long_[(first_long_ + longs_) % RingMemory::kSlots] = {sent_, head_ + skipped + rounded};
  return true;
}

unsigned char* RingWriter::reserve_long(std::uint32_t bytes) noexcept {
  if (bytes > kMost) return nullptr;
  if (!find_place(bytes) && (!look() || !find_place(bytes))) return nullptr;
  return memory_->bytes + place_;
}

}  // namespace vmpi
