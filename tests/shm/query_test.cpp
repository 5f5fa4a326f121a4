// SPDX-License-Identifier: BSD-2-Clause
//
// The queries of verbatim/query.h: a memory region says what it is, who reaches it and how, and an
// address handle says what it was made with, and over Ethernet needs a GID; and what the device says
// of itself.
#include <unistd.h>
#include <verbatim/query.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class RegionQuery : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RegionQuery, between_processes());

TEST_P(RegionQuery, ItTellsRangeRightsOwnerKeysAndHowEachPeerReachesIt) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 8192);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 8192);
  // Both directions, so that both processes have met and tried the ways between them.
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(at_b, 0, 4096), memory)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(memory, 0, 4096), at_b)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);

  Endpoint& a = pair.a.here();
  ibv_mr* const mr = a.mr(memory.id);
  vbt_mr_peer peers[4] = {};
  vbt_mr_attr attr{};
  attr.peers = peers;
  attr.peer_room = 4;
  ASSERT_EQ(vbt_query_mr(mr, &attr, sizeof attr), 0);
  EXPECT_EQ(attr.address, mr->addr);
  EXPECT_EQ(attr.length, 8192u);
  EXPECT_EQ(attr.iova, memory.address);
  EXPECT_EQ(attr.pd, a.pd());
  EXPECT_EQ(attr.access, static_cast<unsigned>(kAllAccess));
  EXPECT_EQ(attr.lkey, mr->lkey);
  EXPECT_EQ(attr.rkey, mr->rkey);
  EXPECT_EQ(attr.window_count, 0u);
  ASSERT_EQ(attr.peer_count, 1u);
  EXPECT_EQ(peers[0].pid, static_cast<std::int32_t>(pair.b.child().pid()));
  const char* const cma = getenv("VERBATIM_SHM_CMA");
  std::uint32_t wanted = VBT_TIER_KERNEL_COPY;
  if (cma != nullptr && std::strcmp(cma, "off") == 0) wanted = VBT_TIER_SERVICE_THREAD;
  if (GetParam().memory == MemoryKind::kMapped) wanted = VBT_TIER_MAPPED;
  // A sandbox may refuse the kernel's copies.
  EXPECT_TRUE(peers[0].tier == wanted ||
              (wanted == VBT_TIER_KERNEL_COPY && peers[0].tier == VBT_TIER_SERVICE_THREAD))
      << peers[0].tier;
  // A region of another domain is nobody's.
  const RegionInfo foreign = pair.a.register_foreign(memory);
  attr.peers = peers;
  attr.peer_room = 4;
  ASSERT_EQ(vbt_query_mr(a.mr(foreign.id), &attr, sizeof attr), 0);
  EXPECT_EQ(attr.peer_count, 0u);
}

TEST_P(RegionQuery, PeersMapNothingWhereTheUserForbidsIt) {
  ::setenv("VERBATIM_SHM_MAP", "off", 1);
  Pair pair(GetParam());
  ::unsetenv("VERBATIM_SHM_MAP");
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 8192);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 8192);
  pair.b.fill(at_b, 0, 4096, 7);
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(at_b, 0, 4096), memory)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  EXPECT_EQ(pair.a.mismatch(memory, 0, 4096, 7), -1);
  vbt_mr_peer peer = {};
  vbt_mr_attr attr{};
  attr.peers = &peer;
  attr.peer_room = 1;
  ASSERT_EQ(vbt_query_mr(pair.a.here().mr(memory.id), &attr, sizeof attr), 0);
  ASSERT_EQ(attr.peer_count, 1u);
  EXPECT_NE(peer.tier, std::uint32_t{VBT_TIER_MAPPED});
}

TEST_P(RegionQuery, ItCountsTheWindowsThatKeepItBusy) {
  Pair pair(GetParam());
  const RegionInfo memory =
      pair.a.allocate(GetParam().memory, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  const WindowInfo window = pair.a.allocate_window(IBV_MW_TYPE_2);
  WindowBind bind;
  bind.window = window.id;
  bind.region = memory.id;
  bind.rkey = ibv_inc_rkey(window.rkey);
  bind.address = memory.address;
  bind.length = 64;
  bind.access = IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(pair.a.bind_window(pair.qa, bind), 0);
  pair.a.poll_sends(pair.qa, 1);
  vbt_mr_attr attr{};
  ibv_mr* const mr = pair.a.here().mr(memory.id);
  ASSERT_EQ(vbt_query_mr(mr, &attr, sizeof attr), 0);
  EXPECT_EQ(attr.window_count, 1u);
  ASSERT_EQ(pair.a.free_window(window), 0);
  ASSERT_EQ(vbt_query_mr(mr, &attr, sizeof attr), 0);
  EXPECT_EQ(attr.window_count, 0u);
}

TEST(Queries, StructuresOfOtherAgesAreFilledAsFarAsTheyGoAndClearedBeyond) {
  Session session;
  static unsigned char memory[4096];
  const MrHandle mr(ibv_reg_mr(session.pd.get(), memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
  struct {
    vbt_mr_attr known;
    std::uint64_t future;
  } newer{};
  newer.future = 7;
  ASSERT_EQ(vbt_query_mr(mr.get(), &newer.known, sizeof newer), 0);
  EXPECT_EQ(newer.known.lkey, mr->lkey);
  EXPECT_EQ(newer.future, 0u);
  vbt_mr_attr older{};
  older.lkey = 0x1234;
  ASSERT_EQ(vbt_query_mr(mr.get(), &older, offsetof(vbt_mr_attr, iova)), 0);
  EXPECT_EQ(older.length, sizeof memory);
  EXPECT_EQ(older.lkey, 0x1234u);
  EXPECT_EQ(vbt_query_mr(mr.get(), &older, 4), EINVAL);
  EXPECT_EQ(vbt_query_mr(mr.get(), nullptr, sizeof older), EINVAL);
}

TEST(Queries, AnAddressHandleTellsWhatItWasMadeWith) {
  Session session;
  ibv_ah_attr made{};
  made.dlid = 17;
  made.sl = 3;
  made.port_num = 1;
  made.is_global = 1;
  made.grh.dgid = session.gid;
  made.grh.hop_limit = 9;
  ibv_ah* const ah = ibv_create_ah(session.pd.get(), &made);
  ASSERT_NE(ah, nullptr);
  ibv_ah_attr told{};
  ASSERT_EQ(vbt_query_ah(ah, &told, sizeof told), 0);
  EXPECT_EQ(told.dlid, 17);
  EXPECT_EQ(told.sl, 3);
  EXPECT_EQ(told.port_num, 1);
  EXPECT_EQ(told.is_global, 1);
  EXPECT_EQ(told.grh.hop_limit, 9);
  EXPECT_EQ(std::memcmp(&told.grh.dgid, &session.gid, sizeof session.gid), 0);
  EXPECT_EQ(vbt_query_ah(ah, &told, sizeof told - 1), EINVAL);
  EXPECT_EQ(vbt_query_ah(ah, nullptr, sizeof told), EINVAL);
  ASSERT_EQ(ibv_destroy_ah(ah), 0);
}

/// Says what kind of link devices have that are opened meanwhile.
struct EthernetLink {
  EthernetLink() { ::setenv("VERBATIM_SHM_LINK", "ethernet", 1); }
  ~EthernetLink() { ::unsetenv("VERBATIM_SHM_LINK"); }
};

// Linux, drivers/infiniband/core/verbs.c (rdma_check_ah_attr): of RoCE a path is a GID.
TEST(Queries, OverEthernetAnAddressHandleNeedsAGid) {
  const AllowedLog says_why("ibv_create_ah: needs is_global and a GID index on a RoCE port");
  const EthernetLink link;
  Session session;
  ASSERT_EQ(session.port.link_layer, IBV_LINK_LAYER_ETHERNET);
  ibv_ah_attr path{};
  path.dlid = 1;
  path.port_num = 1;
  EXPECT_EQ(ibv_create_ah(session.pd.get(), &path), nullptr);
  EXPECT_EQ(errno, EINVAL);
  path.is_global = 1;
  path.grh.dgid = session.gid;
  const AhHandle made(ibv_create_ah(session.pd.get(), &path));
  EXPECT_NE(made, nullptr);
}

TEST(Queries, TheDeviceSaysWhatItIsAndThatTheProcessorSeesItsAtomics) {
  Session session;
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &attr), 0);
  EXPECT_STREQ(attr.orig_attr.fw_ver, VERBATIM_VERSION);
  EXPECT_NE(attr.orig_attr.vendor_id, 0u);
  EXPECT_NE(attr.orig_attr.vendor_part_id, 0u);
  EXPECT_NE(attr.orig_attr.hw_ver, 0u);
  constexpr unsigned kEightBytes = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  EXPECT_EQ(attr.pci_atomic_caps.fetch_add, kEightBytes);
  EXPECT_EQ(attr.pci_atomic_caps.compare_swap, kEightBytes);
  EXPECT_EQ(attr.pci_atomic_caps.swap, 0u) << "which no request asks for";
}

}  // namespace
}  // namespace verbatim::harness
