// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/wire/message_pack.hpp"

#include <cstring>

namespace verbatim::shm {

bool open_pack(MessagePack& pack, std::uint64_t index, const Slot& slot, std::uint64_t h) noexcept {
  const std::uint32_t count = messages_in(h);
  if (count == 0) return false;
  std::memcpy(pack.data, slot.data, sizeof pack.data);
  pack.bytes = header::inline_length(h);
  pack.begin = index;
  pack.end = index + count;
  return true;
}

void MessagePack::show(std::uint64_t index, Slot& as) const noexcept {
  std::memcpy(as.data, data_of(index), bytes);
  as.header.store(header(), std::memory_order_relaxed);
}

}  // namespace verbatim::shm
