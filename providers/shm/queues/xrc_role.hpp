// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair is in XRC (xrc_domain.hpp).
#pragma once

#include <cstdint>

namespace verbatim::shm {

struct Peer;
struct Qp;
struct QpRecord;

enum class XrcRole : std::uint8_t {
  kNone,
  kInitiator,  ///< sends (XRC_SEND)
  kTarget,     ///< where a connection ends (XRC_RECV)
  kOpened,     ///< a handle on a target
  kQueue       ///< a shared receive queue's presence on the host; no queue pair of verbs
};

/// What only a target, or a handle on one, has.
struct XrcEnd {
  bool disowned = false;        ///< a target that only others have open: its handle is gone
  bool counts_idle_cq = false;  ///< its CQ is the one of targets, which this process made
  std::uint32_t told = 0;       ///< a handle's: which event of its target was told last
  Qp* next_orphan = nullptr;
};

/// A target, found.
struct XrcTarget {
  const QpRecord* record = nullptr;
  Peer* owner = nullptr;  ///< held
  std::uint32_t qpn = 0;
};

}  // namespace verbatim::shm
