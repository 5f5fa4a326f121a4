// SPDX-License-Identifier: BSD-2-Clause
//
// What sentences about threads on an unreliable service have in common: who receives cannot count
// on what was sent, so a last message says that no other one will come.
#pragma once

#include <atomic>
#include <string_view>

#include "tests/conformance/crew.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {

class UnreliableThreads : public BetweenTwo {
 protected:
  /// Receives for the message that is sent behind all others, until it arrives.
  static constexpr std::uint32_t kRepeats = 16;
  const std::uint32_t each_ = scaled_rounds(250u, 60u);
  const std::uint32_t count_ = kPosters * each_;
  /// Over shm a receive waits for each.
  bool loses_none() const { return std::string_view(device()).starts_with("shm"); }
  PairWish wish(ibv_qp_type type) const {
    PairWish wish;
    wish.a.type = wish.b.type = type;
    wish.a.send_depth = 64;
    wish.b.receive_depth = count_ + kRepeats;
    wish.b.cq_depth = static_cast<std::int32_t>(count_ + kRepeats);
    return wish;
  }
  /// Behind all of them, and again as long as it may have been lost.
  static void send_last(Pair& pair, const Request& last, const std::atomic<bool>& ended) {
    for (std::uint32_t i = 0; i < kRepeats && !ended.load(); ++i) {
      expect_posted(pair.a.post_send(pair.qa, last));
      pair.a.poll_sends(pair.qa, 1);
      (void)wait_until([&] { return ended.load(); },
                       kDefaultWaitMs / static_cast<std::int32_t>(kRepeats));
    }
  }
};

}  // namespace verbatim::harness
