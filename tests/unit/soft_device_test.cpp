// SPDX-License-Identifier: BSD-2-Clause
// What a device in software and its port say of themselves.
#include "runtime/verbs/software/soft_device.hpp"

#include <endian.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace verbatim {
namespace {

TEST(SoftDevice, SaysTheLimitsByWhichItsQueuesAreRefused) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.max_qp_wr, 64);
  EXPECT_EQ(attr.orig_attr.max_srq_wr, 64);
  EXPECT_EQ(attr.orig_attr.max_sge, 4);
  EXPECT_EQ(attr.orig_attr.max_sge_rd, 4);
  EXPECT_EQ(attr.orig_attr.max_srq_sge, 4);
  EXPECT_EQ(attr.orig_attr.max_cqe, 128);
}

TEST(SoftDevice, HasRegionsOfAnyLengthAndAllPagesThatThereAre) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.max_mr_size, ~std::uint64_t{0});
  EXPECT_EQ(attr.orig_attr.page_size_cap, ~std::uint64_t{4095}) << "of 4096 bytes and more";
  EXPECT_EQ(attr.orig_attr.max_pd, 1 << 24);
  EXPECT_EQ(attr.orig_attr.max_ah, 1 << 24);
}

TEST(SoftDevice, TellsSendersThatNoReceiveIsPosted) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.device_cap_flags, unsigned{IBV_DEVICE_RC_RNR_NAK_GEN});
}

TEST(SoftDevice, HasOnePortAndTheAtomicsThatProgramsAskAdaptersFor) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.phys_port_cnt_ex, 1u);
  EXPECT_EQ(attr.orig_attr.max_pkeys, 1);
  EXPECT_EQ(attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
}

ibv_port_attr port(bool is_up, bool is_ethernet) {
  ibv_port_attr attr{};
  describe_port(is_up, is_ethernet, attr);
  return attr;
}

TEST(SoftPort, IsActiveWhileOthersAreReachedThroughIt) {
  EXPECT_EQ(port(true, false).state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port(true, false).phys_state, 5) << "LinkUp";
  EXPECT_EQ(port(false, false).state, IBV_PORT_DOWN);
  EXPECT_EQ(port(false, false).phys_state, 2) << "Polling";
  EXPECT_EQ(port(false, true).phys_state, 3) << "Disabled";
}

TEST(SoftPort, HasASubnetManagerOnInfiniBandAlone) {
  EXPECT_EQ(port(true, false).link_layer, IBV_LINK_LAYER_INFINIBAND);
  EXPECT_EQ(port(true, false).sm_lid, 1);
  EXPECT_EQ(port(true, true).link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port(true, true).sm_lid, 0);
}

TEST(SoftPort, IsAsFastAsAdaptersWithTheLongestPackets) {
  EXPECT_EQ(port(true, false).max_mtu, IBV_MTU_4096);
  EXPECT_EQ(port(true, false).active_mtu, IBV_MTU_4096);
  EXPECT_EQ(port(true, false).active_width, 2) << "4X";
  EXPECT_EQ(port(true, false).active_speed, 32) << "EDR";
}

TEST(SoftPort, HasAsManyPKeysAsItSays) {
  Device device;
  Context context(device);
  ASSERT_EQ(port(true, false).pkey_tbl_len, 1);
  EXPECT_EQ(port(true, false).gid_tbl_len, 1);
  __be16 pkey = 0;
  EXPECT_EQ(SoftPortVerbs::query_pkey(context, 1, 0, pkey), 0);
  EXPECT_EQ(pkey, htobe16(0xffff)) << "the default partition, as a full member";
  EXPECT_EQ(SoftPortVerbs::query_pkey(context, 1, 1, pkey), EINVAL);
}

}  // namespace
}  // namespace verbatim
