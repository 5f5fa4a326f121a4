// SPDX-License-Identifier: BSD-2-Clause
//
// One round of the death harness: what is connected, what flows, and when a process is killed. All
// of it follows from a seed and the number of the round, so a round that fails is repeated by its
// name.
#pragma once

#include <cstdint>
#include <string>

namespace verbatim::death {

enum class Op : std::uint32_t {
  kNone,
  kSendSmall,
  kSendMedium,
  kSendLarge,
  kSendHuge,  ///< many times what lies between two processes at a time
  kWrite,
  kWriteLarge,
  kRead,
  kReadLarge,
  kFetchAdd
};

/// What the victim is doing when it is killed.
enum class Moment : std::uint32_t {
  kOpening,     ///< starting, opening the device
  kConnecting,  ///< the handshake, the first messages
  kTraffic,
  kHalfWritten,  ///< in the middle of a message that the survivor does not take
  kChurn,        ///< destroying, making and connecting queue pairs over and over
  kLeaving       ///< closing everything in order
};

inline constexpr std::uint32_t kMaxQps = 3;

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t round = 0;
  Moment moment = Moment::kTraffic;
  std::uint32_t qps = 1;
  Op by_survivor[kMaxQps] = {};
  Op by_victim[kMaxQps] = {};
  std::uint32_t depth = 1;
  std::uint8_t timeout = 8;
  std::uint8_t pattern = 1;  ///< what the victim's messages are made of
  bool mapped = false;       ///< memory that peers map
  bool one_cq = false;
  bool survivor_sleeps = false;  ///< it waits in the completion channel for the end
  bool with_bystander = false;   ///< a third process has connections to the victim too
  bool leaves_child = false;     ///< the victim forks, and the child lives on
  bool keys_first = false;       ///< the survivor deregisters before it destroys
  std::uint32_t kill_after_us = 0;

  static Plan of(std::uint64_t seed, std::uint32_t round);
  std::string describe() const;
};

}  // namespace verbatim::death
