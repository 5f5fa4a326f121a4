// SPDX-License-Identifier: BSD-2-Clause
// Which looks at doorbells are put off: those that find more for it.
#include "providers/shm/queues/gathering.hpp"

#include <gtest/gtest.h>

namespace verbatim::shm {
namespace {

/// So many looks, each of which finds so many. How many of them were put off.
std::uint32_t look(Gathering& gathering, std::uint32_t looks, std::uint32_t at_once,
                   std::uint32_t put_off, bool is_full = false) {
  std::uint32_t waited = 0;
  for (std::uint32_t i = 0; i < looks; ++i) {
    const bool waits = gathering.pauses() != 0;
    waited += waits;
    gathering.note(waits ? put_off : at_once, is_full);
  }
  return waited;
}

TEST(Gathering, PutsOffALookAfterOneThatFoundFew) {
  Gathering gathering;
  look(gathering, Gathering::kLooks + 1, 5, 5);
  EXPECT_EQ(look(gathering, 100, 5, 20), 100U);
}

TEST(Gathering, DoesNotPutOffALookAfterOneThatFoundMany) {
  Gathering gathering;
  look(gathering, Gathering::kLooks + 1, 5, 5);
  EXPECT_EQ(look(gathering, 1, 5, Gathering::kWorth), 1U);
  EXPECT_EQ(look(gathering, 100, Gathering::kWorth, Gathering::kWorth), 0U);
}

TEST(Gathering, PutsOffNoLookWhereOneRingsAtATime) {
  Gathering gathering;
  EXPECT_EQ(look(gathering, 1000, 1, 1), 0U);
}

TEST(Gathering, PutsOffNoLookThatFoundAsManyAsTheProgramAsksFor) {
  Gathering gathering;
  EXPECT_EQ(look(gathering, 1000, 2, 2, true), 0U);
}

TEST(Gathering, EndsWhereLooksFindNoMoreForIt) {
  Gathering gathering;
  const std::uint32_t waited = look(gathering, Gathering::kLooksAtOnce, 2, 2);
  EXPECT_GT(waited, 0U) << "it was tried";
  EXPECT_LE(waited, Gathering::kLooks);
}

TEST(Gathering, IsTriedAgainLater) {
  Gathering gathering;
  look(gathering, Gathering::kLooksAtOnce, 2, 2);
  look(gathering, 4 * Gathering::kLooks, 5, 20);
  EXPECT_EQ(look(gathering, 100, 5, 20), 100U);
}

}  // namespace
}  // namespace verbatim::shm
