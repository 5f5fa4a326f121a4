// SPDX-License-Identifier: BSD-2-Clause
//
// A pair of queue pairs of which `a`, in this process, is made for ibv_wr_*.
#pragma once

#include "tests/shm/rc_expect.hpp"

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

}  // namespace verbatim::harness
