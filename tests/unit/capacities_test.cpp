// SPDX-License-Identifier: BSD-2-Clause
// What is asked of queues, refused and granted.
#include "runtime/verbs/software/capacities.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbatim {
namespace {

constexpr QueueLimits kLimits{"tiny", 64, 4, 32, 128};

ibv_qp_init_attr_ex asking(std::uint32_t send_wr, std::uint32_t recv_wr, std::uint32_t send_sge,
                           std::uint32_t recv_sge, std::uint32_t inline_data) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {send_wr, recv_wr, send_sge, recv_sge, inline_data};
  return attr;
}

int refusal(ibv_qp_init_attr_ex attr) { return grant_queue_pair_sizes(kLimits, attr); }

TEST(QueuePairSizes, UpToEveryLimitAreTaken) {
  EXPECT_EQ(refusal(asking(64, 64, 4, 4, 32)), 0);
  EXPECT_EQ(refusal(asking(0, 0, 0, 0, 0)), 0);
}

TEST(QueuePairSizes, BeyondAnyOneLimitAreRefused) {
  EXPECT_EQ(refusal(asking(65, 0, 0, 0, 0)), EINVAL);
  EXPECT_EQ(refusal(asking(0, 65, 0, 0, 0)), EINVAL);
  EXPECT_EQ(refusal(asking(0, 0, 5, 0, 0)), EINVAL);
  EXPECT_EQ(refusal(asking(0, 0, 0, 5, 0)), EINVAL);
  EXPECT_EQ(refusal(asking(0, 0, 0, 0, 33)), EINVAL);
}

TEST(QueuePairSizes, OfReceivesAreNotAskedByWhoSharesThem) {
  ibv_srq srq{};
  ibv_qp_init_attr_ex attr = asking(1, 65, 1, 5, 0);
  attr.srq = &srq;
  EXPECT_EQ(grant_queue_pair_sizes(kLimits, attr), 0);
  EXPECT_EQ(attr.cap.max_recv_wr, 0u);
  EXPECT_EQ(attr.cap.max_recv_sge, 0u);
}

TEST(QueuePairSizes, AreGrantedSoThatEveryQueueCanBeUsed) {
  ibv_qp_init_attr_ex attr = asking(0, 0, 0, 0, 0);
  ASSERT_EQ(grant_queue_pair_sizes(kLimits, attr), 0);
  EXPECT_EQ(attr.cap.max_send_wr, 1u);
  EXPECT_EQ(attr.cap.max_send_sge, 1u);
  EXPECT_EQ(attr.cap.max_recv_wr, 0u) << "a queue pair may receive nothing";
  EXPECT_EQ(attr.cap.max_recv_sge, 1u);
  EXPECT_EQ(attr.cap.max_inline_data, 32u);
}

TEST(QueuePairSizes, AreNeverGrantedBelowWhatWasAsked) {
  ibv_qp_init_attr_ex attr = asking(7, 9, 3, 2, 5);
  ASSERT_EQ(grant_queue_pair_sizes(kLimits, attr), 0);
  EXPECT_EQ(attr.cap.max_send_wr, 7u);
  EXPECT_EQ(attr.cap.max_recv_wr, 9u);
  EXPECT_EQ(attr.cap.max_send_sge, 3u);
  EXPECT_EQ(attr.cap.max_recv_sge, 2u);
}

TEST(QueuePairSizes, OfAnXrcInitiatorHaveNoReceives) {
  ibv_qp_init_attr_ex attr = asking(1, 8, 1, 1, 0);
  attr.qp_type = IBV_QPT_XRC_SEND;
  ASSERT_EQ(grant_queue_pair_sizes(kLimits, attr), 0);
  EXPECT_EQ(attr.cap.max_recv_wr, 0u);
}

TEST(Extras, ThatNeedHardwareAreNotSupported) {
  ibv_qp_init_attr_ex attr = asking(1, 1, 1, 1, 0);
  EXPECT_EQ(refuse_lacking_extras("tiny", attr, 0, "there are no create_flags"), 0);
  attr.max_tso_header = 14;
  EXPECT_EQ(refuse_lacking_extras("tiny", attr, 0, "there are no create_flags"), EOPNOTSUPP);
  attr.max_tso_header = 0;
  attr.rx_hash_conf.rx_hash_fields_mask = 1;
  EXPECT_EQ(refuse_lacking_extras("tiny", attr, 0, "there are no create_flags"), EOPNOTSUPP);
}

TEST(Extras, OfCreateFlagsOnlyTheProvidersAreTaken) {
  ibv_qp_init_attr_ex attr = asking(1, 1, 1, 1, 0);
  attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  EXPECT_EQ(refuse_lacking_extras("tiny", attr, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, "x"), 0);
  attr.create_flags |= IBV_QP_CREATE_SCATTER_FCS;
  EXPECT_EQ(refuse_lacking_extras("tiny", attr, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, "x"),
            EOPNOTSUPP);
}

TEST(Extras, OfCallsOnlyThoseOfTheProvidersOperationsAreTaken) {
  ibv_qp_init_attr_ex attr = asking(1, 1, 1, 1, 0);
  EXPECT_EQ(refuse_lacking_operations("tiny", attr, 0), 0);
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
  EXPECT_EQ(refuse_lacking_operations("tiny", attr, IBV_QP_EX_WITH_SEND), EOPNOTSUPP);
  EXPECT_EQ(refuse_lacking_operations("tiny", attr, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO), 0);
}

TEST(SharedQueueSizes, AreHeldAgainstBothLimits) {
  EXPECT_EQ(check_shared_queue_sizes(kLimits, "create_srq", 64, 4), 0);
  EXPECT_EQ(check_shared_queue_sizes(kLimits, "create_srq", 65, 4), EINVAL);
  EXPECT_EQ(check_shared_queue_sizes(kLimits, "create_srq", 64, 5), EINVAL);
}

TEST(Completions, AreAtLeastOneAndAtMostWhatThereIs) {
  EXPECT_EQ(check_completions(kLimits, "create_cq", 1), 0);
  EXPECT_EQ(check_completions(kLimits, "create_cq", 128), 0);
  EXPECT_EQ(check_completions(kLimits, "create_cq", 0), EINVAL);
  EXPECT_EQ(check_completions(kLimits, "create_cq", 129), EINVAL);
  EXPECT_EQ(check_completions(kLimits, "resize_cq", -1), EINVAL);
}

TEST(Completions, LieInARingOfAPowerOfTwo) {
  EXPECT_EQ(completion_places(1), 1u);
  EXPECT_EQ(completion_places(100), 128u);
  EXPECT_EQ(completion_places(128), 128u);
}

}  // namespace
}  // namespace verbatim
