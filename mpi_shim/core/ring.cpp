// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/ring.hpp"

namespace vmpi {

bool RingPlaces::find(std::uint32_t bytes, std::uint64_t taken) noexcept {
  while (count_ != 0 && taken > used_[first_].number) {
    tail_ = used_[first_].end;
    first_ = (first_ + 1) % RingMemory::kSlots;
    --count_;
  }
  if (count_ == RingMemory::kSlots) return false;
  if (count_ == 0) {
    if (restarts_) head_ = 0;
    tail_ = head_;
  }
  const std::uint32_t at = head_ % size_;
  const std::uint32_t skipped = bytes <= size_ - at ? 0 : size_ - at;
  const std::uint32_t rounded =
      (bytes + RingMemory::kUnit - 1) / RingMemory::kUnit * RingMemory::kUnit;
  if (head_ - tail_ + skipped + rounded > size_) return false;
  place_ = skipped == 0 ? at : 0;
  used_[(first_ + count_) % RingMemory::kSlots].end = head_ + skipped + rounded;
  return true;
}

bool RingWriter::look() noexcept {
  // Pairs with the store in RingReader::take(). What cannot be is not believed.
  const std::uint32_t taken = memory_->taken.load(std::memory_order_acquire);
  const std::uint32_t left = static_cast<std::uint32_t>(sent_) - taken;
  if (left <= sent_ - taken_) taken_ = sent_ - left;
  return sent_ - taken_ < RingMemory::kSlots;
}

unsigned char* RingWriter::reserve_long(std::size_t bytes) noexcept {
  // The header says the length in 16 bits.
  if (bytes >= RingMemory::kBytes) return nullptr;
  return find(places_, static_cast<std::uint32_t>(bytes)) ? memory_->bytes + places_.place()
                                                          : nullptr;
}

}  // namespace vmpi
