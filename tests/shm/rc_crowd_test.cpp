// SPDX-License-Identifier: BSD-2-Clause
//
// Crowds: far more processes than cores, and far more queue pairs than a doorbell block has bits.
#include <algorithm>

#include "tests/shm/all_to_all.hpp"
#include "tests/shm/rc_expect.hpp"

namespace verbatim::harness {
namespace {

TEST(RcCrowd, SixtyFourProcessesTalkToEachOther) { all_to_all(64, 2); }

TEST(RcCrowd, TenThousandQueuePairsBetweenTwoProcessesEachDeliver) {
  constexpr std::uint32_t kQps = 10'000;
  constexpr std::uint32_t kBatch = 1000;  // completions that the queues hold
  Pair pair({Placement::kTwoProcesses, MemoryKind::kMapped});
  QpWish wish;
  wish.send_depth = wish.receive_depth = 4;
  wish.max_sge = 1;
  wish.send_cq = wish.receive_cq = pair.a.call<&Endpoint::create_cq>(2 * kBatch, 0);
  const std::int32_t cq = pair.b.call<&Endpoint::create_cq>(2 * kBatch, 0);
  QpWish wish_b = wish;
  wish_b.send_cq = wish_b.receive_cq = cq;
  std::vector<std::pair<QpInfo, QpInfo>> qps;
  for (std::uint32_t i = 0; i < kQps; ++i) qps.push_back(pair.add_qps(wish, wish_b));
  const RegionInfo local = pair.a.allocate(MemoryKind::kMapped, 8 * kQps);
  const RegionInfo remote = pair.b.allocate(MemoryKind::kMapped, 8 * kQps);
  pair.a.fill(local, 0, 8 * kQps, 3);
  for (std::uint32_t first = 0; first < kQps; first += kBatch) {
    for (std::uint32_t i = first; i < first + kBatch; ++i)
      expect_posted(pair.b.post_receive(qps[i].second, receive(i, slice(remote, 8 * i, 8))));
    for (std::uint32_t i = first; i < first + kBatch; ++i)
      expect_posted(pair.a.post_send(qps[i].first, send(i, slice(local, 8 * i, 8))));
    for (const ibv_wc& wc : pair.a.call<&Endpoint::poll>(wish.send_cq, kBatch, kDefaultWaitMs))
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
    for (const ibv_wc& wc : pair.b.call<&Endpoint::poll>(cq, kBatch, kDefaultWaitMs)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
      ASSERT_EQ(wc.qp_num, qps.at(wc.wr_id).second.qpn);
    }
  }
  EXPECT_EQ(pair.b.mismatch(remote, 0, 8 * kQps, 3), -1);
}

}  // namespace
}  // namespace verbatim::harness
