// SPDX-License-Identifier: BSD-2-Clause
//
// Who copies: the process that asked, from or to memory of the other that it has mapped or that the
// kernel copies for it, or the other's service thread.
#pragma once

#include <gtest/gtest.h>
#include <verbatim/query.h>

#include <cstdint>

#include "tests/support/pair.hpp"

namespace verbatim::harness {

/// Whether `b` of a pair in two processes itself copies to and from `region` of `a`. Both have met.
inline bool copies_itself(Pair& pair, const RegionInfo& region) {
  vbt_mr_peer peers[4] = {};
  vbt_mr_attr attr{};
  attr.peers = peers;
  attr.peer_room = 4;
  EXPECT_EQ(vbt_query_mr(pair.a.here().mr(region.id), &attr, sizeof attr), 0);
  for (std::uint32_t i = 0; i < attr.peer_count && i < attr.peer_room; ++i) {
    if (peers[i].pid == static_cast<std::int32_t>(pair.b.child().pid()))
      return peers[i].tier != VBT_TIER_SERVICE_THREAD;
  }
  ADD_FAILURE() << "not met";
  return false;
}

}  // namespace verbatim::harness
