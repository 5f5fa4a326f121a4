// SPDX-License-Identifier: BSD-2-Clause
#include "tests/shm/many_qps.hpp"

#include "tests/support/expect.hpp"

namespace verbatim::harness {

void many_qps_each_deliver(std::uint32_t count, std::uint32_t batch) {
  Pair pair({Placement::kTwoProcesses, MemoryKind::kMapped});
  QpWish wish;
  wish.send_depth = wish.receive_depth = 4;
  wish.max_sge = 1;
  const auto cq_depth = static_cast<std::int32_t>(2 * batch);
  wish.send_cq = wish.receive_cq = pair.a.call<&Endpoint::create_cq>(cq_depth, 0);
  const std::int32_t cq = pair.b.call<&Endpoint::create_cq>(cq_depth, 0);
  QpWish wish_b = wish;
  wish_b.send_cq = wish_b.receive_cq = cq;
  std::vector<std::pair<QpInfo, QpInfo>> qps;
  for (std::uint32_t i = 0; i < count; ++i) qps.push_back(pair.add_qps(wish, wish_b));
  const std::uint64_t bytes = std::uint64_t{8} * count;
  const RegionInfo local = pair.a.allocate(MemoryKind::kMapped, bytes);
  const RegionInfo remote = pair.b.allocate(MemoryKind::kMapped, bytes);
  pair.a.fill(local, 0, bytes, 3);
  for (std::uint32_t first = 0; first < count; first += batch) {
    for (std::uint32_t i = first; i < first + batch; ++i)
      expect_posted(pair.b.post_receive(qps[i].second, receive(i, slice(remote, 8 * i, 8))));
    for (std::uint32_t i = first; i < first + batch; ++i)
      expect_posted(pair.a.post_send(qps[i].first, send(i, slice(local, 8 * i, 8))));
    for (const ibv_wc& wc : pair.a.call<&Endpoint::poll>(wish.send_cq, batch, kDefaultWaitMs))
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
    for (const ibv_wc& wc : pair.b.call<&Endpoint::poll>(cq, batch, kDefaultWaitMs)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
      ASSERT_EQ(wc.qp_num, qps.at(wc.wr_id).second.qpn);
    }
  }
  EXPECT_EQ(pair.b.mismatch(remote, 0, bytes, 3), -1);
}

}  // namespace verbatim::harness
