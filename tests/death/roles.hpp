// SPDX-License-Identifier: BSD-2-Clause
//
// The other processes of a round.
//
//   victim      gets a Plan; sends an Offer to each of its survivors, gets theirs, connects, says
//               the pid of the child it leaves (0: none), and does what the plan says until it is
//               killed
//   bystander   lives for many rounds, told by Order what to do; each is answered
#pragma once

#include <cstdint>

#include "tests/death/half.hpp"

namespace verbatim::death {

enum class Step : std::uint32_t {
  kPrepare,  ///< plan -> its Offer to the victim
  kConnect,  ///< the victim's Offer -> 1 when connected; traffic flows until the next order
  kEnd,      ///< the victim is dead -> complaints
  kQuit      ///< -> nothing
};
struct Order {
  Step step = Step::kQuit;
  Plan plan{};
  Offer offer{};
};

}  // namespace verbatim::death
