// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/message_pack.hpp"

#include <cstring>

namespace verbatim::shm {

bool open_pack(MessagePack& pack, std::uint64_t index, std::uint32_t ring_log, const Slot& slot,
               std::uint64_t h) noexcept {
  const std::uint32_t count = messages_in(h);
  const std::uint32_t bytes = header::inline_length(h);
  if (count == 0) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(pack.slots[i].data, slot.data + i * bytes, bytes);
    const std::uint32_t lap = static_cast<std::uint32_t>((index + i) >> ring_log) + 1;
    pack.slots[i].header.store(header::place(lap, bytes), std::memory_order_relaxed);
  }
  pack.begin = index;
  pack.end = index + count;
  return true;
}

}  // namespace verbatim::shm
