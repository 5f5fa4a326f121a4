// SPDX-License-Identifier: BSD-2-Clause
//
// Several messages in one slot, on the receiving side. A list of small SENDs of one length moves a
// cache line for each handful of them (SlotKind::kPack): the lines between two cores, and not the
// work at their ends, are what limits a stream of small messages.
//
// A pack of which not all is taken at once is kept here: its line is given back with the first of its
// messages.
#pragma once

#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

/// What is left of a pack. Under the receive CQ's lock.
struct MessagePack {
  std::uint64_t begin = 0;  ///< the messages [begin, end) lie in `data`, one behind the other
  std::uint64_t end = 0;
  std::uint32_t bytes = 0;  ///< of each
  unsigned char data[Slot::kInlineBytes];

  bool has(std::uint64_t index) const noexcept { return index < end; }
  const unsigned char* data_of(std::uint64_t index) const noexcept {
    return data + (index - begin) * bytes;
  }
  /// Of lap 0.
  std::uint64_t header() const noexcept { return header::place(0, bytes); }
  /// As the slot that the message would have had alone.
  void show(std::uint64_t index, Slot& as) const noexcept;
  void clear() noexcept { begin = end = 0; }
};

/// How many messages a header speaks of; 0 when no honest sender would have written it.
constexpr std::uint32_t messages_in(std::uint64_t h) noexcept {
  const std::uint32_t count = header::immediate(h);
  const std::uint32_t bytes = header::inline_length(h);
  return count >= 2 && count <= kMostInPack && bytes != 0 && count * bytes <= Slot::kInlineBytes
             ? count
             : 0;
}

/// Keeps the pack that begins with message `index`, whose slot has the header `h`. False: it is none.
bool open_pack(MessagePack& pack, std::uint64_t index, const Slot& slot, std::uint64_t h) noexcept;

/// What a hot ring shows while its next message is one that is kept: lap 0, and no simple message,
/// so it goes to take_slowly(), which knows where it is.
inline constinit const Slot kKeptMessage{{header::make(0, SlotKind::kPack, 0, 0, 0)}, {}};

/// What is told of the others of a pack that is kept.
inline constinit const Slot kKeptOther{{header::place(0, 0)}, {}};

}  // namespace verbatim::shm
