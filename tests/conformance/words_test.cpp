// SPDX-License-Identifier: BSD-2-Clause
//
// Functions without a device: names of values, rates, keys, fork (man ibv_rate_to_mbps,
// ibv_rate_to_mult, ibv_node_type_str, ibv_port_state_str, ibv_event_type_str, ibv_inc_rkey,
// ibv_fork_init, ibv_is_fork_initialized).
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <set>
#include <string>

namespace verbatim::harness {
namespace {

TEST(Words, EveryStatusHasOneOfItsOwn) {
  std::set<std::string> words;
  for (int i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
    EXPECT_TRUE(words.insert(ibv_wc_status_str(static_cast<ibv_wc_status>(i))).second) << i;
  }
  EXPECT_NE(ibv_wc_status_str(static_cast<ibv_wc_status>(31)), nullptr);
}

TEST(Words, EveryEventHasOneOfItsOwn) {
  std::set<std::string> words;
  for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_DEVICE_SPEED_CHANGE; ++i) {
    EXPECT_TRUE(words.insert(ibv_event_type_str(static_cast<ibv_event_type>(i))).second) << i;
  }
  EXPECT_NE(ibv_event_type_str(static_cast<ibv_event_type>(31)), nullptr);
}

TEST(Words, EveryPortStateHasOneOfItsOwn) {
  std::set<std::string> words;
  for (int i = IBV_PORT_NOP; i <= IBV_PORT_ACTIVE_DEFER; ++i) {
    EXPECT_TRUE(words.insert(ibv_port_state_str(static_cast<ibv_port_state>(i))).second) << i;
  }
  EXPECT_NE(ibv_port_state_str(static_cast<ibv_port_state>(7)), nullptr);
}

TEST(Words, EveryNodeTypeHasOneOfItsOwn) {
  std::set<std::string> words;
  for (int i = IBV_NODE_CA; i <= IBV_NODE_USNIC; ++i) {
    EXPECT_TRUE(words.insert(ibv_node_type_str(static_cast<ibv_node_type>(i))).second) << i;
  }
  EXPECT_NE(ibv_node_type_str(IBV_NODE_UNKNOWN), nullptr);
}

TEST(Words, EveryOpcodeHasOneOfItsOwn) {
  std::set<std::string> words;
  for (const ibv_wr_opcode op :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV,
        IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO, IBV_WR_FLUSH, IBV_WR_ATOMIC_WRITE}) {
    EXPECT_TRUE(words.insert(ibv_wr_opcode_str(op)).second) << op;
  }
}

struct Rate {
  ibv_rate code;
  int multiple;  ///< of 2.5 Gbit/s, or -1
  int mbps;
};
constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},  {IBV_RATE_5_GBPS, 2, 5000},    {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},  {IBV_RATE_30_GBPS, 12, 30000}, {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000}, {IBV_RATE_80_GBPS, 32, 80000}, {IBV_RATE_120_GBPS, 48, 120000},
};

class Rates : public ::testing::TestWithParam<Rate> {};
INSTANTIATE_TEST_SUITE_P(, Rates, ::testing::ValuesIn(kRates),
                         [](const ::testing::TestParamInfo<Rate>& tested) {
                           return "Mbps" + std::to_string(tested.param.mbps);
                         });
TEST_P(Rates, AreConvertedBothWays) {
  const Rate& rate = GetParam();
  EXPECT_EQ(ibv_rate_to_mult(rate.code), rate.multiple);
  EXPECT_EQ(mult_to_ibv_rate(rate.multiple), rate.code);
  EXPECT_EQ(ibv_rate_to_mbps(rate.code), rate.mbps);
  EXPECT_EQ(mbps_to_ibv_rate(rate.mbps), rate.code);
}

TEST(RatesOfNothing, AreMinusOneOrTheMost) {
  EXPECT_EQ(ibv_rate_to_mult(static_cast<ibv_rate>(31)), -1);
  EXPECT_EQ(ibv_rate_to_mbps(static_cast<ibv_rate>(31)), -1);
  EXPECT_EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
  EXPECT_EQ(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

TEST(KeysOfWindows, ChangeInTheirLowestByteAlone) {
  EXPECT_EQ(ibv_inc_rkey(0x12345600), 0x12345601u);
  EXPECT_EQ(ibv_inc_rkey(0x123456ff), 0x12345600u);
}

TEST(UdpSourcePorts, OfFlowLabelsAreInTheDynamicRange) {
  for (const std::uint32_t label : {0u, 1u, 0x3fffu, 0xfffffu}) {
    const std::uint16_t port = ibv_flow_label_to_udp_sport(label);
    EXPECT_GE(port, 0xC000);
  }
}

TEST(Fork, IsInitialisedWhenAskedAndSaysSo) {
  const int error = ibv_fork_init();
  const ibv_fork_status status = ibv_is_fork_initialized();
  EXPECT_EQ(error, 0);
  EXPECT_TRUE(status == IBV_FORK_ENABLED || status == IBV_FORK_UNNEEDED) << status;
}

}  // namespace
}  // namespace verbatim::harness
