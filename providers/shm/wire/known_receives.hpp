// SPDX-License-Identifier: BSD-2-Clause
//
// What a sender knows of the receives that its peer has posted. The receiver posts the next lap
// right behind what it takes, in lines of eight credits: a sender that looked at one for each
// message would take the line away between any two of them, and wait for it. So it looks at many
// together, and does not again: what is posted stays so until it is used up.
#pragma once

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

/// A receive of the peer that the next message would use up.
enum class CreditState : std::uint8_t {
  kNone,
  kGood,
  kBadKey  ///< good for a message that is no longer than its sound part
};

/// The receives of a peer's own, by the messages that will use them up.
struct Receives {
  const std::atomic<std::uint64_t>* credits;
  std::uint64_t mask;
  std::uint32_t log;

  /// How long message `index`'s is; below zero when it is not posted (not of its lap), or its key
  /// is bad.
  [[gnu::always_inline]] std::int32_t length(std::uint64_t index) const noexcept {
    const std::uint64_t credit = credits[index & mask].load(std::memory_order_acquire);
    const std::uint32_t lap = static_cast<std::uint32_t>(index >> log) + 1;
    static_assert(Credit::kBadKey == 1u << 31);
    return static_cast<std::uint32_t>(credit >> 32) == lap ? static_cast<std::int32_t>(credit) : -1;
  }
};

/// The receives of the next messages, of all below `behind`, are posted and sound, and none is
/// shorter than `room`.
struct KnownReceives {
  std::uint64_t behind = 0;
  std::int64_t room = 0;

  /// Is message `index`'s posted, sound and long enough?
  [[gnu::always_inline]] bool has(const Receives& receives, std::uint64_t index,
                                  std::uint32_t bytes) const noexcept {
    return has(index, bytes) || receives.length(index) >= static_cast<std::int32_t>(bytes);
  }
  /// Without a look?
  [[gnu::always_inline]] bool has(std::uint64_t index, std::uint32_t bytes) const noexcept {
    return index < behind && bytes <= room;
  }
  /// Do we know nothing of message `index`'s, the first of a line?
  [[gnu::always_inline]] bool must_look(std::uint64_t index) const noexcept {
    return index >= behind && index % (kCacheLine / sizeof(std::uint64_t)) == 0;
  }
};

/// Looks at the receives of message `from` and of those behind it, 32 at most.
[[gnu::noinline]] KnownReceives look_ahead(const Receives& receives, std::uint64_t from) noexcept;

}  // namespace verbatim::shm
