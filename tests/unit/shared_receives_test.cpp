// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues: their size, their limit and its event.
#include "runtime/verbs/software/shared_receives.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

struct Shared : Srq {
  SpinLock lock;
  PostedReceives<ibv_sge> store;
  std::uint32_t limit = 0;
  std::uint64_t waits = 0;
  int refusal = 0;
  SoftEvents events;
};
std::uint64_t waiting(const Shared& srq) { return srq.waits; }
int resize(Shared& srq, std::uint32_t max_wr) {
  if (srq.refusal == 0) srq.store.max = max_wr;
  return srq.refusal;
}
SoftEvents& events_of(const Shared& srq) { return const_cast<Shared&>(srq).events; }

using SharedVerbs = SharedReceiveVerbs<Shared>;

class SharedReceives : public ::testing::Test {
 protected:
  SharedReceives() {
    srq_.store.max = 8;
    srq_.store.max_sge = 2;
    srq_.waits = 4;
    EXPECT_EQ(srq_.events.open(), 0);
    EXPECT_EQ(::fcntl(srq_.events.fd(), F_SETFL, O_NONBLOCK), 0);
  }
  int modify(ibv_srq_attr attr, int mask) { return SharedVerbs::modify_srq(srq_, attr, mask); }
  ibv_srq_attr query() {
    ibv_srq_attr attr{};
    EXPECT_EQ(SharedVerbs::query_srq(srq_, attr), 0);
    return attr;
  }
  bool was_told() {
    ibv_async_event event{};
    return srq_.events.get(event) == 0 && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
  }

  Shared srq_;
};

TEST_F(SharedReceives, SayHowManyThereMayBeAndTheLimit) {
  EXPECT_EQ(modify({0, 0, 3}, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().max_wr, 8u);
  EXPECT_EQ(query().max_sge, 2u);
  EXPECT_EQ(query().srq_limit, 3u);
}

TEST_F(SharedReceives, AreToldOfOnceWhenFewerAreLeftThanTheLimit) {
  EXPECT_EQ(modify({0, 0, 4}, IBV_SRQ_LIMIT), 0);
  EXPECT_FALSE(was_told());
  srq_.waits = 3;
  tell_if_low_locked(srq_);
  EXPECT_TRUE(was_told());
  EXPECT_EQ(query().srq_limit, 0u) << "it is unarmed then";
  tell_if_low_locked(srq_);
  EXPECT_FALSE(was_told());
}

TEST_F(SharedReceives, AreToldOfAtOnceWhereFewerAreLeftAlready) {
  EXPECT_EQ(modify({0, 0, 5}, IBV_SRQ_LIMIT), 0);
  EXPECT_TRUE(was_told());
}

TEST_F(SharedReceives, HaveNoLimitBeyondWhatTheQueueHolds) {
  EXPECT_EQ(modify({0, 0, 9}, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(modify({4, 0, 5}, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(query().max_wr, 8u) << "nothing of what is refused is done";
  EXPECT_EQ(modify({9, 0, 9}, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), 0);
  EXPECT_EQ(query().max_wr, 9u);
}

TEST_F(SharedReceives, KeepTheirLimitWhenOnlyTheSizeChangesOrCannot) {
  EXPECT_EQ(modify({0, 0, 2}, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(modify({16, 0, 7}, IBV_SRQ_MAX_WR), 0);
  EXPECT_EQ(query().srq_limit, 2u);
  srq_.refusal = ENOMEM;
  EXPECT_EQ(modify({32, 0, 1}, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), ENOMEM);
  EXPECT_EQ(query().srq_limit, 2u);
}

}  // namespace
}  // namespace verbatim
