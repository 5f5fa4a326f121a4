// SPDX-License-Identifier: BSD-2-Clause
//
// Setting up: what the port says, addressing by LID and by GID, ends that are not ready at the same
// time, one queue pair number per queue pair.
#include <algorithm>
#include <set>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcSetup : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcSetup, each_way_and_two_contexts());

/// Nobody may give up while the other end is still being told: 1 s a try, seven tries.
Link patient() {
  Link link;
  link.timeout = 18;
  return link;
}

void expect_send_passes(Side& from, const QpInfo& sender, Side& to, const QpInfo& receiver) {
  const RegionInfo source = from.allocate(MemoryKind::kOrdinary, 64);
  const RegionInfo target = to.allocate(MemoryKind::kOrdinary, 64);
  from.fill(source, 0, 64, 1);
  expect_posted(to.post_receive(receiver, receive(1, slice(target, 0, 64))));
  expect_posted(from.post_send(sender, send(2, slice(source, 0, 64))));
  expect_wc(from.poll_sends(sender, 1)[0], 2, IBV_WC_SEND, sender);
  expect_receive(to.poll_receives(receiver, 1)[0], 1, 64, receiver);
  EXPECT_EQ(to.mismatch(target, 0, 64, 1), -1);
}

TEST(RcPort, IsActiveWithALidAGidAndTheLargestMtu) {
  const Session session;
  EXPECT_STREQ(ibv_get_device_name(session.context->device), "shm0");
  EXPECT_EQ(session.port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(session.port.link_layer, IBV_LINK_LAYER_INFINIBAND);
  EXPECT_NE(session.port.lid, 0);
  EXPECT_EQ(session.port.max_mtu, IBV_MTU_4096);
  EXPECT_EQ(session.port.active_mtu, IBV_MTU_4096);
  EXPECT_GE(session.port.max_msg_sz, 1u << 30);
  const ibv_gid none{};
  EXPECT_NE(0, std::memcmp(&session.gid, &none, sizeof none));
}

TEST_P(RcSetup, AddressedByGid) {
  PairWish wish;
  wish.link_a.use_gid = 1;
  wish.link_b.use_gid = 1;
  Pair pair(GetParam(), wish);
  expect_send_passes(pair.a, pair.qa, pair.b, pair.qb);
  expect_send_passes(pair.b, pair.qb, pair.a, pair.qa);
}

TEST_P(RcSetup, QueuePairNumbersAreUniqueOnTheHost) {
  Pair pair(GetParam());
  std::set<std::uint32_t> numbers{pair.qa.qpn, pair.qb.qpn};
  ASSERT_EQ(numbers.size(), 2u);
  for (int i = 0; i < 100; ++i) {
    const QpInfo made = i % 2 == 0 ? pair.a.create_qp() : pair.b.create_qp();
    EXPECT_TRUE(numbers.insert(made.qpn).second) << made.qpn;
    EXPECT_GT(made.qpn, 1u);
    EXPECT_LT(made.qpn, 1u << 24);
  }
}

TEST_P(RcSetup, ASenderInRtsWaitsForAPeerThatIsNotYetInRtr) {
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64_KiB);
  pair.a.fill(from, 0, 64_KiB, 1);
  ASSERT_EQ(pair.b.call<&Endpoint::to_init>(pair.qb.id, patient()), 0);
  expect_posted(pair.b.post_receive(
      pair.qb, std::vector{receive(1, slice(to, 0, 8)), receive(2, slice(to, 8, 32_KiB))}));
  pair.a.connect(pair.qa, pair.qb, patient());
  expect_posted(pair.a.post_send(
      pair.qa,
      {send(3, slice(from, 0, 8)), send(4, slice(from, 0, 20'000)),
       write(5, slice(from, 0, 100), to, 40'000), read(6, slice(from, 60'000, 100), to, 40'000)}));
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  ASSERT_EQ(pair.b.call<&Endpoint::to_rtr>(pair.qb.id, pair.qa, patient()), 0);
  // RTR is enough to be sent to.
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_receive(got[0], 1, 8, pair.qb);
  expect_receive(got[1], 2, 20'000, pair.qb);
  const auto sent = pair.a.poll_sends(pair.qa, 4);
  expect_wc(sent[0], 3, IBV_WC_SEND, pair.qa);
  expect_wc(sent[1], 4, IBV_WC_SEND, pair.qa);
  expect_wc(sent[2], 5, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[3], 6, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(pair.b.mismatch(to, 40'000, 100, 1), -1);
  EXPECT_EQ(pair.a.mismatch(from, 60'000, 100, 1), -1);
  ASSERT_EQ(pair.b.call<&Endpoint::to_rts>(pair.qb.id, patient()), 0);
  expect_send_passes(pair.b, pair.qb, pair.a, pair.qa);
}

TEST_P(RcSetup, APeerThatLeavesAndComesBackUnderANewNumberIsMetAgain) {
  Pair pair(GetParam());
  expect_send_passes(pair.a, pair.qa, pair.b, pair.qb);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(pair.b.call<&Endpoint::destroy_qp>(pair.qb.id), 0);
    pair.qb = pair.b.create_qp();
    ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_RESET), 0);
    pair.connect();
    expect_send_passes(pair.a, pair.qa, pair.b, pair.qb);
    expect_send_passes(pair.b, pair.qb, pair.a, pair.qa);
  }
}

TEST_P(RcSetup, QueryQpTellsWhatModifyQpWasTold) {
  PairWish wish;
  wish.link_a.min_rnr_timer = 17;
  wish.link_a.timeout = 15;
  wish.link_a.retry_count = 5;
  wish.link_a.rnr_retry = 6;
  wish.link_a.mtu = IBV_MTU_2048;
  Pair pair(GetParam(), wish);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const int all = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                  IBV_QP_SQ_PSN | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                  IBV_QP_RNR_RETRY | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_CAP;
  ASSERT_EQ(ibv_query_qp(pair.a.here().qp(pair.qa.id), &attr, all, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(attr.dest_qp_num, pair.qb.qpn);
  EXPECT_EQ(attr.rq_psn, pair.qb.psn);
  EXPECT_EQ(attr.sq_psn, pair.qa.psn);
  EXPECT_EQ(attr.min_rnr_timer, 17);
  EXPECT_EQ(attr.timeout, 15);
  EXPECT_EQ(attr.retry_cnt, 5);
  EXPECT_EQ(attr.rnr_retry, 6);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.ah_attr.dlid, pair.qb.lid);
  EXPECT_EQ(attr.qp_access_flags & kAllAccess & ~IBV_ACCESS_LOCAL_WRITE,
            static_cast<unsigned>(kAllAccess & ~IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(attr.cap.max_send_wr, pair.qa.cap.max_send_wr);
  EXPECT_EQ(attr.cap.max_inline_data, pair.qa.cap.max_inline_data);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
}

}  // namespace
}  // namespace verbatim::harness
