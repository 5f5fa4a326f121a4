// SPDX-License-Identifier: BSD-2-Clause
//
// Of link layer Ethernet, the port's GID table is that of an adapter with one IPv4 address: rows 0
// and 1 link-local, 2 and 3 that address mapped, the even ones of RoCE v1, the odd ones of v2
// (Linux, drivers/infiniband/core/roce_gid_mgmt.c; IBTA annexes A16 and A17). Programs and guides
// name any of them.
#include <arpa/inet.h>
#include <verbatim/gid.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/support/device.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

/// Says what kind of link devices have that are opened meanwhile.
struct EthernetLink {
  EthernetLink() { ::setenv("VERBATIM_SHM_LINK", "ethernet", 1); }
  ~EthernetLink() { ::unsetenv("VERBATIM_SHM_LINK"); }
};

constexpr int kRows = 4;
constexpr std::size_t kHeader = sizeof(ibv_grh);

bool is_version_2(int row) { return row % 2 == 1; }
bool is_mapped(int row) { return row >= 2; }

ibv_gid gid_of(const Session& session, int row) {
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(session.context.get(), 1, row, &gid), 0);
  return gid;
}

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// The one's complement sum of a header with its checksum (RFC 791).
std::uint32_t sum_of(const unsigned char* at, std::size_t bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += 2)
    sum += static_cast<std::uint32_t>(at[i] << 8 | at[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

TEST(GidTable, OfEthernetHasFourRowsAsAnAdapterHasThem) {
  const EthernetLink link;
  Session session;
  ASSERT_EQ(session.port.link_layer, IBV_LINK_LAYER_ETHERNET);
  ASSERT_EQ(session.port.gid_tbl_len, kRows);
  ibv_gid_entry rows[kRows + 1] = {};
  ASSERT_EQ(ibv_query_gid_table(session.context.get(), rows, kRows + 1, 0), kRows);
  for (int row = 0; row < kRows; ++row) {
    SCOPED_TRACE(row);
    EXPECT_EQ(rows[row].gid_index, static_cast<std::uint32_t>(row));
    EXPECT_EQ(rows[row].gid_type,
              std::uint32_t{is_version_2(row) ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1});
    EXPECT_EQ(is_mapped_ipv4(rows[row].gid), is_mapped(row));
    if (!is_mapped(row)) {
      EXPECT_EQ(be64toh(rows[row].gid.global.subnet_prefix), 0xfe80000000000000);
    }
    EXPECT_TRUE(same(rows[row].gid, rows[row ^ 1].gid)) << "an address has a row for each version";
  }
  ibv_gid_entry picked{};
  ASSERT_EQ(vbt_pick_gid(session.context.get(), 1, nullptr, &picked, sizeof picked), 0);
  EXPECT_EQ(picked.gid_index, 3u) << "version 2, and routable";
  // Both of an address lead to one port.
  std::uint8_t of_link[6] = {}, of_address[6] = {};
  std::uint16_t vlan = 0;
  ibv_ah_attr path{};
  path.port_num = 1;
  path.is_global = 1;
  path.grh.dgid = rows[1].gid;
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(session.context.get(), &path, of_link, &vlan), 0);
  EXPECT_EQ(vlan, 0xffff) << "none";
  path.grh.dgid = rows[3].gid;
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(session.context.get(), &path, of_address, &vlan), 0);
  EXPECT_EQ(std::memcmp(of_link, of_address, sizeof of_link), 0);
}

TEST(GidTable, OfInfiniBandHasOneRowAndARefusalSaysSo) {
  Session session;
  ASSERT_EQ(session.port.gid_tbl_len, 1);
  const AllowedLog says_why("no such GID index: sgid_index is 1, those of port 1 are 0 to 0");
  ibv_ah_attr path{};
  path.port_num = 1;
  path.is_global = 1;
  path.grh.dgid = session.gid;
  path.grh.sgid_index = 1;
  EXPECT_EQ(ibv_create_ah(session.pd.get(), &path), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(LogWatch::instance()->complaints().size(), 1u);
}

/// Two UD queue pairs of one device of link layer Ethernet.
struct Letters {
  EthernetLink link;
  Session session;
  unsigned char memory[512] = {};
  MrHandle mr{ibv_reg_mr(session.pd.get(), memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE)};
  CqHandle cq{ibv_create_cq(session.context.get(), 16, nullptr, nullptr, 0)};
  QpHandle from = make(), to = make();

  QpHandle make() {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_UD;
    init.cap = {64, 8, 1, 1, 0};
    QpHandle qp(ibv_create_qp(session.pd.get(), &init));
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    EXPECT_EQ(ibv_modify_qp(qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return qp;
  }
  ibv_ah_attr path(int row, const ibv_gid& to_gid) const {
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.dgid = to_gid;
    attr.grh.sgid_index = static_cast<std::uint8_t>(row);
    attr.grh.hop_limit = 17;
    attr.grh.traffic_class = 0x24;
    return attr;
  }
  /// `bytes` of 0x33 from `sender` to number `qpn` at `ah`, whose receiver is `receiver`.
  ibv_wc carry(ibv_qp* sender, ibv_ah* ah, std::uint32_t qpn, ibv_qp* receiver,
               std::uint32_t bytes) {
    std::memset(memory, 0x33, 128);
    std::memset(memory + 128, 0xEE, sizeof memory - 128);
    ibv_sge into{reinterpret_cast<std::uint64_t>(memory + 128), 300, mr->lkey};
    ibv_recv_wr receive{7, nullptr, &into, 1};
    ibv_recv_wr* bad_receive;
    EXPECT_EQ(ibv_post_recv(receiver, &receive, &bad_receive), 0);
    ibv_sge out{reinterpret_cast<std::uint64_t>(memory), bytes, mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &out;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud = {ah, qpn, kQkey};
    ibv_send_wr* bad;
    EXPECT_EQ(ibv_post_send(sender, &wr, &bad), 0);
    ibv_wc wc{};
    EXPECT_TRUE(wait_until([&] { return ibv_poll_cq(cq.get(), 1, &wc) == 1; }));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, 7u);
    EXPECT_EQ(wc.byte_len, kHeader + bytes);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
    EXPECT_EQ(memory[128 + kHeader], 0x33);
    EXPECT_EQ(memory[128 + kHeader + bytes - 1], 0x33);
    EXPECT_EQ(memory[128 + kHeader + bytes], 0xEE);
    return wc;
  }
  ibv_grh* header() { return reinterpret_cast<ibv_grh*>(memory + 128); }
};

// IBTA A17.4.5: version 2 has a header of IPv4 in the last 20 bytes, or of IPv6 whose next is UDP;
// version 1 a routing header.
TEST(GidTable, ADatagramByEachRowShowsItAndIsAnsweredByIt) {
  Letters letters;
  for (int row = 0; row < kRows; ++row) {
    const ibv_gid own = gid_of(letters.session, row);
    for (const std::uint32_t bytes : {8u, 30u, 50u, 100u}) {
      SCOPED_TRACE(testing::Message() << "row " << row << ", " << bytes << " bytes");
      ibv_ah_attr there = letters.path(row, own);
      const AhHandle ah(ibv_create_ah(letters.session.pd.get(), &there));
      ASSERT_NE(ah, nullptr);
      const ibv_wc wc =
          letters.carry(letters.from.get(), ah.get(), letters.to->qp_num, letters.to.get(), bytes);
      const unsigned char* const seen = letters.memory + 128;
      if (row == 3) {
        EXPECT_EQ(seen[0] >> 4, 0) << "nothing stands before it";
        EXPECT_EQ(seen[20], 0x45);
        EXPECT_EQ(seen[21], 0x24);
        EXPECT_EQ(seen[28], 17) << "hop limit";
        EXPECT_EQ(seen[29], IPPROTO_UDP);
        EXPECT_EQ(sum_of(seen + 20, 20), 0xffffu) << "its checksum";
        EXPECT_EQ(std::memcmp(seen + 32, own.raw + 12, 4), 0);
        EXPECT_EQ(std::memcmp(seen + 36, own.raw + 12, 4), 0);
      } else {
        EXPECT_EQ(letters.header()->next_hdr, is_version_2(row) ? IPPROTO_UDP : 0x1b);
        EXPECT_EQ(letters.header()->hop_limit, 17);
        EXPECT_TRUE(same(letters.header()->sgid, own));
        EXPECT_TRUE(same(letters.header()->dgid, own));
      }
      ibv_ah_attr back{};
      ibv_wc copy = wc;
      ASSERT_EQ(
          ibv_init_ah_from_wc(letters.session.context.get(), 1, &copy, letters.header(), &back), 0);
      EXPECT_EQ(back.is_global, 1);
      EXPECT_EQ(back.grh.sgid_index, row);
      EXPECT_TRUE(same(back.grh.dgid, own));
      const AhHandle home(
          ibv_create_ah_from_wc(letters.session.pd.get(), &copy, letters.header(), 1));
      ASSERT_NE(home, nullptr);
      letters.carry(letters.to.get(), home.get(), letters.from->qp_num, letters.from.get(), bytes);
    }
  }
}

TEST(GidTable, AGroupIsReachedByEachRow) {
  Letters letters;
  for (int row = 0; row < kRows; ++row) {
    SCOPED_TRACE(row);
    ibv_gid group{};
    ASSERT_EQ(inet_pton(AF_INET6, is_mapped(row) ? "::ffff:239.1.2.3" : "ff0e::1234", group.raw),
              1);
    ASSERT_EQ(ibv_attach_mcast(letters.to.get(), &group, 0), 0);
    ibv_ah_attr there = letters.path(row, group);
    const AhHandle ah(ibv_create_ah(letters.session.pd.get(), &there));
    ASSERT_NE(ah, nullptr);
    letters.carry(letters.from.get(), ah.get(), 0xffffff, letters.to.get(), 20);
    const unsigned char* const at = letters.memory + 128;
    if (row == 3)
      EXPECT_EQ(std::memcmp(at + 36, group.raw + 12, 4), 0);
    else
      EXPECT_TRUE(same(letters.header()->dgid, group));
    ASSERT_EQ(ibv_detach_mcast(letters.to.get(), &group, 0), 0);
  }
}

TEST(GidTable, AConnectionIsMadeByEachRow) {
  Letters letters;
  for (int row = 0; row < kRows; ++row) {
    SCOPED_TRACE(row);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = letters.cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {64, 8, 1, 1, 0};
    const QpHandle qp(ibv_create_qp(letters.session.pd.get(), &init));
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.ah_attr = letters.path(row, gid_of(letters.session, row));
    ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
    ibv_qp_attr told{};
    ASSERT_EQ(ibv_query_qp(qp.get(), &told, IBV_QP_AV, &init), 0);
    EXPECT_EQ(told.ah_attr.grh.sgid_index, row);
  }
}

}  // namespace
}  // namespace verbatim::harness
