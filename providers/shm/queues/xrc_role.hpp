// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair is in XRC (xrc_domain.hpp).
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;
struct QpRecord;

enum class XrcRole : std::uint8_t {
  kNone,
  kInitiator,  ///< sends (XRC_SEND)
  kTarget,     ///< where a connection ends (XRC_RECV)
  kOpened,     ///< a handle on a target
  kQueue       ///< a shared receive queue's presence on the host; no queue pair of verbs
};

/// A target, found.
struct XrcTarget {
  const QpRecord* record = nullptr;
  Peer* owner = nullptr;  ///< held
  std::uint32_t qpn = 0;
};

}  // namespace verbatim::shm
