// SPDX-License-Identifier: BSD-2-Clause
// Who depends on whom: a parent refuses to go while a child lives, with EBUSY and a line that says
// why, and goes afterwards. Over both witnesses, since the rules are the runtime's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

class Lifetime : public EachWitness {};
INSTANTIATE_TEST_SUITE_P(Witness, Lifetime, ::testing::Values("null0", "fakek0"), witness_name);

/// The call answers EBUSY and the log names the verb.
template <class Call>
void expect_busy(const char* verb, Call&& destroy) {
  const CapturedStderr captured;
  EXPECT_EQ(destroy(), EBUSY) << verb;
  EXPECT_THAT(captured.text(), HasSubstr(verb));
  EXPECT_EQ(captured.lines(), 1);
}

TEST_P(Lifetime, AContextIsClosedWhateverIsLeftOfIt) {
  // man ibv_close_device: it "does not release all the resources".
  static char memory[64];
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  ibv_cq* const cq = make_cq(channel);
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  ibv_qp* const left = make_qp(cq);
  ibv_qp* const forgotten = make_qp(cq);
  {
    const CapturedStderr captured;
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_EQ(captured.text(), "");
    EXPECT_EQ(ibv_poll_cq(cq, 0, nullptr), -EINVAL);
  }
  // In any order: they depend on each other no more.
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_qp(left), 0);
  EXPECT_EQ(forgotten->qp_type, IBV_QPT_RC) << "the memory stays";
  context = nullptr;
}

TEST_P(Lifetime, APdOutlivesItsRegions) {
  char memory[64];
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->context, context);
  EXPECT_EQ(mr->pd, pd);
  EXPECT_EQ(mr->addr, memory);
  EXPECT_EQ(mr->length, sizeof memory);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_P(Lifetime, AChannelOutlivesItsCqs) {
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(channel->context, context);
  ibv_cq* const one = make_cq(channel);
  ibv_cq* const two = make_cq(channel);
  EXPECT_EQ(channel->refcnt, 2);
  expect_busy("ibv_destroy_comp_channel", [&] { return ibv_destroy_comp_channel(channel); });
  EXPECT_EQ(ibv_destroy_cq(one), 0);
  expect_busy("ibv_destroy_comp_channel", [&] { return ibv_destroy_comp_channel(channel); });
  EXPECT_EQ(ibv_destroy_cq(two), 0);
  EXPECT_EQ(channel->refcnt, 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_P(Lifetime, CqsAndPdOutliveTheirQps) {
  ibv_cq* const send = make_cq();
  ibv_cq* const receive = make_cq();
  ibv_qp_init_attr init{};
  init.send_cq = send;
  init.recv_cq = receive;
  init.qp_type = IBV_QPT_RC;
  init.qp_context = &init;
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  ASSERT_NE(qp, nullptr);
  expect_busy("ibv_destroy_cq", [&] { return ibv_destroy_cq(send); });
  expect_busy("ibv_destroy_cq", [&] { return ibv_destroy_cq(receive); });
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(send), 0);
  EXPECT_EQ(ibv_destroy_cq(receive), 0);
}

TEST_P(Lifetime, AQpShowsWhatItWasMadeOf) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_UC;
  init.qp_context = &init;
  init.sq_sig_all = 1;
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->context, context);
  EXPECT_EQ(qp->qp_context, &init);
  EXPECT_EQ(qp->pd, pd);
  EXPECT_EQ(qp->send_cq, cq);
  EXPECT_EQ(qp->recv_cq, cq);
  EXPECT_EQ(qp->srq, nullptr);
  EXPECT_EQ(qp->qp_type, IBV_QPT_UC);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(qp->events_completed, 0u);
  EXPECT_NE(qp->qp_num, 0u);
  ibv_qp_attr attr;
  ibv_qp_init_attr as_made;
  ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &as_made), 0);
  EXPECT_EQ(as_made.qp_context, &init);
  EXPECT_EQ(as_made.sq_sig_all, 1);
  EXPECT_EQ(as_made.qp_type, IBV_QPT_UC);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_P(Lifetime, AFailedCreationLeavesNothingPinned) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = static_cast<ibv_qp_type>(99);
  {
    const CapturedStderr captured;
    EXPECT_EQ(ibv_create_qp(pd, &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

using NullLifetime = OpenedDevice;

TEST_F(NullLifetime, AQpThatIsLeftIsLedOutOfItsGroups) {
  ibv_qp* const qp = make_qp(make_cq(), IBV_QPT_UD);
  ibv_gid group{};
  group.raw[0] = 0xff;
  for (std::uint8_t number = 1; number <= 3; ++number) {
    group.raw[15] = number;
    ASSERT_EQ(ibv_attach_mcast(qp, &group, 0xc000), 0);
  }
  ASSERT_EQ(ibv_detach_mcast(qp, &group, 0xc000), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  context = nullptr;
}

TEST_F(NullLifetime, AnSrqOutlivesItsQps) {
  ibv_srq_init_attr init{};
  init.srq_context = &init;
  init.attr = {16, 2, 0};
  ibv_srq* const srq = ibv_create_srq(pd, &init);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(srq->srq_context, &init);
  EXPECT_EQ(srq->pd, pd);
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq, IBV_QPT_RC, srq);
  expect_busy("ibv_destroy_srq", [&] { return ibv_destroy_srq(srq); });
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(NullLifetime, APdOutlivesItsAddressHandles) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  ibv_ah* const ah = ibv_create_ah(pd, &attr);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(ah->pd, pd);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(NullLifetime, AQpLeavesItsGroupsFirst) {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq, IBV_QPT_UD);
  ibv_gid group{};
  group.raw[0] = 0xff;
  ASSERT_EQ(ibv_attach_mcast(qp, &group, 0xc000), 0);
  expect_busy("ibv_destroy_qp", [&] { return ibv_destroy_qp(qp); });
  EXPECT_EQ(ibv_detach_mcast(qp, &group, 0xc000), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(NullLifetime, AMovedRegionPinsItsNewDomain) {
  char memory[64];
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
  ibv_pd* const other = ibv_alloc_pd(context);
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, other);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(other); });
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(NullLifetime, CapacitiesComeBack) {
  ibv_cq* const cq = make_cq();
  EXPECT_EQ(cq->cqe, 64) << "what it really holds, not what was asked";
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(init.cap.max_inline_data, 7u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace verbatim::unit
