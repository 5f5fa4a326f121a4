// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/send_store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kFirstPlaces = 4;
constexpr std::uint32_t kGrowth = 4;

std::uint32_t bytes_of_place(std::uint32_t max_sge) noexcept {
  const std::size_t bytes = sizeof(PendingSend) + max_sge * sizeof(ibv_sge) + kMaxInline;
  return static_cast<std::uint32_t>((bytes + alignof(PendingSend) - 1) / alignof(PendingSend) *
                                    alignof(PendingSend));
}

}  // namespace

bool SendStore::make(const QueueMemory& memory, std::uint32_t most,
                     std::uint32_t max_sge) noexcept {
  return is_made() || move_to(memory, std::bit_ceil(most), max_sge, 0, 0);
}

bool SendStore::grow(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                     std::uint32_t head, std::uint32_t tail) noexcept {
  const std::uint32_t count = is_made() ? count_ * kGrowth : kFirstPlaces;
  return move_to(memory, std::min(std::bit_ceil(most), count), max_sge, head, tail);
}

bool SendStore::move_to(const QueueMemory& memory, std::uint32_t count, std::uint32_t max_sge,
                        std::uint32_t head, std::uint32_t tail) noexcept {
  SendStore larger;
  larger.count_ = count;
  larger.place_bytes_ = bytes_of_place(max_sge);
  larger.places_ = static_cast<unsigned char*>(
      memory.take_unset(std::size_t{larger.count_} * larger.place_bytes_, alignof(PendingSend)));
  if (larger.places_ == nullptr) return false;
  for (std::uint32_t i = head; i != tail; ++i) {
    std::memcpy(larger.place(i), place(i), place_bytes_);
    if (larger.at(i).is_inline)
      larger.sges_of(i)->addr = reinterpret_cast<std::uint64_t>(larger.inline_bytes_of(i));
  }
  memory.give(places_);
  *this = larger;
  return true;
}

void SendStore::free(const QueueMemory& memory) noexcept {
  memory.give(places_);
  *this = {};
}

}  // namespace verbatim::shm
