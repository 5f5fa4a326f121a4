// SPDX-License-Identifier: BSD-2-Clause
//
// Threads that build requests by calls on one queue pair (man ibv_wr_post: from start to complete
// it is the caller's) while others walk one extended completion queue (man ibv_create_cq_ex: from
// start to end it is the caller's, unless it was made for one thread).
#include "tests/conformance/crew.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kBatch = 3;
/// Batches of each poster: as many requests as where they are posted by the verb.
const std::uint32_t kBatches = kEach / kBatch;

class RcThreadsOfCalls : public BetweenTwo {};
RUN_OVER_SETTINGS(RcThreadsOfCalls, on_every_device(within_a_process()));

/// A walk over as many completions as are there, some at most.
void walk(ibv_cq_ex* cq, std::uint32_t qpn, Tally& tally) {
  ibv_poll_cq_attr attr{};
  int answer = ibv_start_poll(cq, &attr);
  if (answer == ENOENT) return;
  ASSERT_EQ(answer, 0);
  for (int i = 0; i < 4 && answer == 0; ++i) {
    if (i != 0 && (answer = ibv_next_poll(cq)) != 0) break;
    ibv_wc wc{};
    wc.wr_id = cq->wr_id;
    wc.status = cq->status;
    EXPECT_EQ(ibv_wc_read_qp_num(cq), qpn);
    tally.count(wc);
  }
  ibv_end_poll(cq);
}

TEST_P(RcThreadsOfCalls, ManyBuildOnOneQueuePairAndManyWalkOneQueue) {
  Pair pair(GetParam());
  Endpoint& a = pair.a.here();
  ibv_cq_init_attr_ex init{};
  init.cqe = 512;
  init.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* const queue = ibv_create_cq_ex(a.context(), &init);
  if (queue == nullptr) SKIP_IF(unless_unsupported("ibv_create_cq_ex", errno));
  QpWish wish;
  wish.send_cq = a.adopt_cq(ibv_cq_ex_to_cq(queue));
  wish.send_depth = 64;
  wish.send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  const QpInfo qa = pair.add_qps(wish, {}).first;
  ibv_qp_ex* const work = ibv_qp_to_qp_ex(a.qp(qa.id));
  const RegionInfo local = pair.a.allocate(memory(), kPosters * kBatches * kBatch * 8);
  const RegionInfo remote = pair.b.allocate(memory(), (2 * kPosters + 1) * 8);
  Tally tally(kPosters * kBatches * kBatch);
  PatientPoster poster(tally);
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < kBatches; ++i) {
          const std::uint64_t id = (p * kBatches + i) * kBatch;
          std::uint64_t round = i + 1;
          a.store(local.id, id * 8, round);
          const auto next = [&](std::uint64_t k) {
            work->wr_id = id + k;
            work->wr_flags = IBV_SEND_SIGNALED;
          };
          const auto set_sge = [&](std::uint64_t k) {
            ibv_wr_set_sge(work, local.lkey, local.address + (id + k) * 8, 8);
          };
          poster.post(kBatch, [&] {
            ibv_wr_start(work);
            next(0);
            ibv_wr_rdma_write(work, remote.rkey, remote.address + p * 8);
            set_sge(0);
            next(1);
            ibv_wr_rdma_write(work, remote.rkey, remote.address + (kPosters + p) * 8);
            ibv_wr_set_inline_data(work, &round, sizeof round);
            next(2);
            ibv_wr_atomic_fetch_add(work, remote.rkey, remote.address + 2 * kPosters * 8, 1);
            set_sge(2);
            return ibv_wr_complete(work);
          });
        }
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p) {
      crew.add([&] {
        ASSERT_TRUE(wait_until([&] {
          walk(queue, qa.qpn, tally);
          return tally.complete();
        }));
      });
    }
  }
  tally.expect_each_once();
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(queue, &attr), ENOENT);
  EXPECT_EQ(pair.b.load(remote, 2 * kPosters * 8), kPosters * kBatches);
  // Each thread's own writes stayed in order: its last one stays.
  for (std::uint32_t p = 0; p < 2 * kPosters; ++p) EXPECT_EQ(pair.b.load(remote, p * 8), kBatches);
}

}  // namespace
}  // namespace verbatim::harness
