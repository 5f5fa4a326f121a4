// SPDX-License-Identifier: BSD-2-Clause
// Texts, rates, sysfs and the kernel's structs: small functions with long lives, pinned as programs
// and log parsers know them.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

struct ibv_sa_path_rec;
extern "C" {
const char* ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char* folder, const char* file, char* text, size_t size);
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from);
void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* to, ib_user_path_rec* from);
void ibv_copy_path_rec_to_kern(ib_user_path_rec* to, ibv_sa_path_rec* from);
}

namespace {

TEST(Words, StatusesAreTheClassicOnes) {
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR), "RNR retry counter exceeded");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR), "remote access error");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE), "TM software rendezvous");
}

TEST(Words, OthersToo) {
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_RNIC), "iWARP NIC");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_UNSPECIFIED), "unspecified");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_NOP), "no state change (NOP)");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE_DEFER), "active defer");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED), "last WQE reached");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_WQ_FATAL), "WQ fatal");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_DEVICE_SPEED_CHANGE), "device speed change");
  EXPECT_STREQ(ibv_wr_opcode_str(IBV_WR_RDMA_READ), "RDMA read");
}

TEST(Words, WhatHasNoneIsUnknown) {
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
  EXPECT_STREQ(ibv_node_type_str(static_cast<ibv_node_type>(0)), "unknown");
  EXPECT_STREQ(ibv_port_state_str(static_cast<ibv_port_state>(6)), "unknown");
  EXPECT_STREQ(ibv_event_type_str(static_cast<ibv_event_type>(21)), "unknown");
  EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(24)), "unknown");
  EXPECT_STREQ(ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(12)), "unknown");
}

TEST(Rates, ConvertBothWays) {
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_2_5_GBPS), 1);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_120_GBPS), 48);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_400_GBPS), 160);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1) << "not a multiple that old programs know";
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_MAX), -1);
  EXPECT_EQ(mult_to_ibv_rate(48), IBV_RATE_120_GBPS);
  EXPECT_EQ(mult_to_ibv_rate(-1), IBV_RATE_MAX);
  EXPECT_EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_5_GBPS), 5000);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
  EXPECT_EQ(mbps_to_ibv_rate(-1), IBV_RATE_MAX);
  for (int code = IBV_RATE_2_5_GBPS; code <= IBV_RATE_1200_GBPS; ++code) {
    const auto rate = static_cast<ibv_rate>(code);
    EXPECT_EQ(mbps_to_ibv_rate(ibv_rate_to_mbps(rate)), rate) << code;
  }
}

TEST(Fork, NeedsNothingWhereNothingIsPinned) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

TEST(Sysfs, FilesAreReadWithoutTheirNewline) {
  char folder[] = "/tmp/verbatim_sysfs_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/node_type";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("1: CA\n", file);
  std::fclose(file);
  char text[32];
  EXPECT_EQ(ibv_read_sysfs_file(folder, "node_type", text, sizeof text), 5);
  EXPECT_STREQ(text, "1: CA");
  std::memset(text, 'x', sizeof text);
  EXPECT_EQ(ibv_read_sysfs_file(folder, "node_type", text, 3), 3);
  EXPECT_EQ(text[3], 'x');
  errno = 0;
  EXPECT_EQ(ibv_read_sysfs_file(folder, "absent", text, sizeof text), -1);
  EXPECT_EQ(errno, ENOENT);
  ::unlink(path.c_str());
  ::rmdir(folder);
  EXPECT_STREQ(ibv_get_sysfs_path(), "/sys");
}

TEST(KernelStructs, QpAttributesComeAcross) {
  ib_uverbs_qp_attr from;
  std::memset(&from, 0, sizeof from);
  from.qp_state = IBV_QPS_RTR;
  from.path_mtu = IBV_MTU_2048;
  from.dest_qp_num = 0x123456;
  from.max_send_wr = 3;
  from.ah_attr.dlid = 9;
  from.ah_attr.grh.dgid[15] = 0x42;
  from.ah_attr.grh.hop_limit = 64;
  from.alt_ah_attr.port_num = 2;
  from.rnr_retry = 6;
  ibv_qp_attr to{};
  ibv_copy_qp_attr_from_kern(&to, &from);
  EXPECT_EQ(to.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(to.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(to.dest_qp_num, 0x123456u);
  EXPECT_EQ(to.cap.max_send_wr, 3u);
  EXPECT_EQ(to.ah_attr.dlid, 9);
  EXPECT_EQ(to.ah_attr.grh.dgid.raw[15], 0x42);
  EXPECT_EQ(to.ah_attr.grh.hop_limit, 64);
  EXPECT_EQ(to.alt_ah_attr.port_num, 2);
  EXPECT_EQ(to.rnr_retry, 6);
}

TEST(KernelStructs, PathRecordsComeAcrossAndBack) {
  ib_user_path_rec from;
  std::memset(&from, 0, sizeof from);
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(&from);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(i);
  from.dlid = 0x1122;
  from.pkey = 0x3344;
  from.mtu = 4;
  from.reversible = 1;
  from.packet_life_time = 17;
  from.preference = 1;
  alignas(8) unsigned char record[64] = {};
  auto* const verbs_record = reinterpret_cast<ibv_sa_path_rec*>(record);
  ibv_copy_path_rec_from_kern(verbs_record, &from);
  ib_user_path_rec back;
  std::memset(&back, 0, sizeof back);
  ibv_copy_path_rec_to_kern(&back, verbs_record);
  EXPECT_EQ(std::memcmp(&from, &back, sizeof from), 0);
}

}  // namespace
