// SPDX-License-Identifier: BSD-2-Clause
//
// A pair of queue pairs of which `a`, in this process, is made for ibv_wr_*.
#pragma once

#include "tests/support/expect.hpp"

namespace verbatim::harness {

/// All that an RC queue pair can be asked for.
inline constexpr std::uint64_t kAllCalls =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;

inline PairWish with_calls(std::uint64_t calls = kAllCalls, std::uint32_t send_depth = 128) {
  PairWish wish;
  wish.a.send_ops = calls;
  wish.a.send_depth = send_depth;
  return wish;
}

struct WorkPair {
  Pair pair;
  ibv_qp_ex* work;
  RegionInfo at_a;
  RegionInfo at_b;

  explicit WorkPair(Setting setting, const PairWish& wish = with_calls())
      : pair(setting, wish),
        work(ibv_qp_to_qp_ex(pair.a.here().qp(pair.qa.id))),
        at_a(pair.a.allocate(setting.memory, 64_KiB)),
        at_b(pair.b.allocate(setting.memory, 64_KiB)) {}

  /// What the next operation is called, and how it completes.
  void next(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    work->wr_id = wr_id;
    work->wr_flags = flags;
  }
  void set_sge(std::uint64_t offset, std::uint32_t length) {
    ibv_wr_set_sge(work, at_a.lkey, at_a.address + offset, length);
  }
  std::vector<ibv_wc> sent(std::uint32_t count) { return pair.a.poll_sends(pair.qa, count); }
  std::vector<ibv_wc> received(std::uint32_t count) { return pair.b.poll_receives(pair.qb, count); }
  void post_receives(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < count; ++i)
      expect_posted(
          pair.b.post_receive(pair.qb, receive(first + i, slice(at_b, i * bytes, bytes))));
  }
};

/// SENDs and WRITEs of 8 bytes, inline and not, with a completion and without, one at a time.
inline void expect_requests_alone(WorkPair& scene) {
  scene.post_receives(0, 40, 64);
  std::uint64_t messages = 0;
  std::vector<std::uint64_t> completions;
  for (std::uint64_t round = 0; round < 32; ++round) {
    const bool is_send = (round & 1) != 0;
    const bool is_signaled = (round & 4) != 0 || round == 31;
    scene.pair.a.store(scene.at_a, round * 8, round);
    ibv_wr_start(scene.work);
    scene.next(round, is_signaled ? unsigned{IBV_SEND_SIGNALED} : 0u);
    if (is_send)
      ibv_wr_send(scene.work);
    else
      ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address + 32'768 + round * 8);
    if ((round & 2) != 0)
      ibv_wr_set_inline_data(scene.work, &round, sizeof(round));
    else
      scene.set_sge(round * 8, 8);
    ASSERT_EQ(ibv_wr_complete(scene.work), 0);
    if (is_signaled) completions.push_back(round);
    if (is_send) {
      expect_receive(scene.received(1)[0], messages, 8, scene.pair.qb);
      EXPECT_EQ(scene.pair.b.load(scene.at_b, messages * 64), round);
      ++messages;
    }
  }
  const auto sent = scene.sent(static_cast<std::uint32_t>(completions.size()));
  for (std::size_t i = 0; i < sent.size(); ++i)
    expect_wc(sent[i], completions[i], (completions[i] & 1) != 0 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE,
              scene.pair.qa);
  EXPECT_TRUE(scene.pair.a.poll_once(scene.pair.qa.send_cq, 1).empty());
  for (std::uint64_t round = 0; round < 32; round += 2)
    EXPECT_EQ(scene.pair.b.load(scene.at_b, 32'768 + round * 8), round);
}

}  // namespace verbatim::harness
