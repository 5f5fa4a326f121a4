// SPDX-License-Identifier: BSD-2-Clause
//
// What a poll does that finds nothing. Man ibv_poll_cq asks no more than 0; but on a processor that
// two polling programs share, sched_yield(2) is how one lets the other send what it polls for.
// Without it each message waits for the end of a time slice (UCX's ucx_perftest: 4 ms).
#include <cerrno>

#include "tests/support/deadline.hpp"
#include "tests/support/device.hpp"
#include "tests/support/yields.hpp"

namespace verbatim::harness {
namespace {

class EmptyPoll : public OnDevice {
 protected:
  /// Whether a thread for which `polls_in_vain` finds nothing gives its processor away in the end.
  template <class Poll>
  static bool ends_in_a_yield(Poll polls_in_vain) {
    const std::uint64_t before = yields_of_this_thread();
    for (const Deadline deadline; !deadline.passed();)
      for (int i = 0; i < 1000; ++i) {
        if (!polls_in_vain()) return false;
        if (yields_of_this_thread() != before) return true;
      }
    return false;
  }
};

RUN_ON_EVERY_DEVICE(EmptyPoll);

TEST_P(EmptyPoll, GivesTheProcessorAwayAfterSomeThousandInARow) {
  const CqHandle cq(ibv_create_cq(context(), 8, nullptr, nullptr, 0));
  ASSERT_TRUE(cq);
  ibv_wc wc;
  EXPECT_TRUE(ends_in_a_yield([&] { return ibv_poll_cq(cq.get(), 1, &wc) == 0; }));
}

TEST_P(EmptyPoll, OfACursorGivesItAwayToo) {
  for (const std::uint32_t flags : {0u, std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}}) {
    ibv_cq_init_attr_ex init{};
    init.cqe = 8;
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = flags;
    ibv_cq_ex* const cq = ibv_create_cq_ex(context(), &init);
    ASSERT_NE(cq, nullptr) << flags;
    const CqHandle owner(ibv_cq_ex_to_cq(cq));
    ibv_poll_cq_attr none{};
    EXPECT_TRUE(ends_in_a_yield([&] { return ibv_start_poll(cq, &none) == ENOENT; })) << flags;
  }
}

}  // namespace
}  // namespace verbatim::harness
