// SPDX-License-Identifier: BSD-2-Clause
// What the three processes of a hostile test are told.
#pragma once

#include <cstdint>

namespace verbatim::hostile {

/// Queue pairs that a victim has with its hostile peer.
inline constexpr std::uint32_t kQps = 4;

/// Places in the hostile one's table of queue pairs, behind those, of what XRC needs.
inline constexpr std::uint32_t kXrcTargetAt = kQps;
inline constexpr std::uint32_t kXrcQueueAt = kQps + 1;
inline constexpr std::uint32_t kXrcInitiatorAt = kQps + 2;

/// What a victim tells of itself.
struct VictimFacts {
  std::uint32_t qpns[kQps];  ///< for the hostile peer
  std::uint32_t keys[4];
  std::uint64_t addresses[4];
  std::uint32_t honest_qpn;  ///< for the honest one
  std::uint32_t honest_key;
  std::uint64_t honest_address;
  std::uint32_t xrc_initiator, xrc_target, xrc_queue;
};

struct HostileOrder {
  std::uint64_t seed;
  std::uint32_t rounds;
  std::uint32_t block;  ///< of queue pair numbers, which it claims as its own
  VictimFacts victim;
  std::uint32_t honest_qpn;  ///< a number of the honest process
};

struct VictimOrder {
  std::uint64_t seed;
  std::uint32_t hostile_block;
  std::uint32_t honest_qpn;
};

/// How a victim fared.
struct VictimReport {
  std::uint64_t echoes;       ///< messages of the honest one, answered
  std::uint64_t connections;  ///< to the hostile one
  std::uint64_t completions;  ///< of what was posted to it, of which
  std::uint64_t successes;
  std::uint64_t xrc_connections, xrc_completions;
  std::uint64_t xrc_sent;         ///< to the hostile one's queue, with success
  std::uint64_t xrc_arrived;      ///< of the hostile one's messages
  std::int64_t descriptors_left;  ///< more than before the others came
};

}  // namespace verbatim::hostile
