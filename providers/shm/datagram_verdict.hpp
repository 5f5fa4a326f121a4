// SPDX-License-Identifier: BSD-2-Clause
//
// Whether what lies on a lane is a datagram. Anybody of the host may send to a UD queue pair, so
// what one sender says amiss is no reason to fail it: its lane ends, and the others are heard on.
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Qp;
enum class SlotKind : std::uint8_t;

enum class Verdict : std::uint8_t {
  kSound,      ///< a datagram, or the word of one that the queue pair's own receive refuses
  kUnfounded,  ///< it was refused for a receive that is not the one it would have: somebody was
               ///< faster, or it is made up
  kLie         ///< no honest sender says so
};

/// Of message `index`, by one copy of its sender's words. REQUIRES: a lane of UD, the receive CQ's
/// lock.
[[nodiscard]] Verdict judge_datagram(Qp& lane, std::uint64_t index, SlotKind kind, std::uint64_t h,
                                     std::uint64_t length, std::uint64_t start) noexcept;

}  // namespace verbatim::shm
