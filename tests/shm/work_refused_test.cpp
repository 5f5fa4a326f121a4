// SPDX-License-Identifier: BSD-2-Clause
//
// What ibv_wr_* and ibv_create_qp_ex refuse: the first error of a batch is its answer, and then
// nothing of it is performed (man ibv_wr_post).
#include <cerrno>

#include "tests/shm/work_calls.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

/// A batch of a good write, whatever `spoil` builds, and another good write: `error`, and neither
/// write performed. The queue pair is as good as before.
template <class Spoil>
void expect_refused(WorkPair& scene, int error, Spoil&& spoil) {
  const std::uint64_t value = ~std::uint64_t{0};
  const auto build_good = [&] {
    scene.next(1);
    ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address);
    ibv_wr_set_inline_data(scene.work, const_cast<std::uint64_t*>(&value), sizeof(value));
  };
  ibv_wr_start(scene.work);
  build_good();
  scene.next(2);
  spoil();
  build_good();
  EXPECT_EQ(ibv_wr_complete(scene.work), error);
  EXPECT_EQ(scene.pair.b.load(scene.at_b, 0), 0u);
  EXPECT_TRUE(scene.pair.a.poll_once(scene.pair.qa.send_cq, 1).empty());
}

/// `scene`, after its first WRITE has found its way.
void warm(WorkPair& scene) {
  expect_posted(
      scene.pair.a.post_send(scene.pair.qa, write(0, slice(scene.at_a, 0, 8), scene.at_b, 1024)));
  expect_wc(scene.sent(1)[0], 0, IBV_WC_RDMA_WRITE, scene.pair.qa);
}

TEST(WorkRefused, TooManyPieces) {
  WorkPair scene(kHere);
  warm(scene);
  std::vector<ibv_sge> pieces(17, {scene.at_a.address, 1, scene.at_a.lkey});
  expect_refused(scene, EINVAL, [&] {
    ibv_wr_send(scene.work);
    ibv_wr_set_sge_list(scene.work, pieces.size(), pieces.data());
  });
}

TEST(WorkRefused, InlineDataBeyondTheLimit) {
  WorkPair scene(kHere);
  warm(scene);
  std::vector<char> bytes(scene.pair.qa.cap.max_inline_data + 1);
  expect_refused(scene, EINVAL, [&] {
    ibv_wr_send(scene.work);
    ibv_wr_set_inline_data(scene.work, bytes.data(), bytes.size());
  });
  const ibv_data_buf buffers[2] = {{bytes.data(), bytes.size() - 1}, {bytes.data(), 1}};
  expect_refused(scene, EINVAL, [&] {
    ibv_wr_send(scene.work);
    ibv_wr_set_inline_data_list(scene.work, 2, buffers);
  });
}

TEST(WorkRefused, MoreThanTheSendQueueHolds) {
  WorkPair scene(kHere, with_calls(kAllCalls, 8));
  warm(scene);
  expect_refused(scene, ENOMEM, [&] {
    for (int i = 0; i < 7; ++i) {
      ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address);
      scene.set_sge(0, 8);
    }
  });
}

TEST(WorkRefused, MoreThanTheSendQueueHasRoomForNow) {
  WorkPair scene(kHere, with_calls(kAllCalls, 8));
  for (std::uint64_t i = 0; i < 6; ++i)
    expect_posted(
        scene.pair.a.post_send(scene.pair.qa, write(i, slice(scene.at_a, 0, 8), scene.at_b, 64)));
  ibv_wr_start(scene.work);
  for (int i = 0; i < 3; ++i) {
    scene.next(10);
    ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address);
    scene.set_sge(0, 8);
  }
  EXPECT_EQ(ibv_wr_complete(scene.work), ENOMEM);
  const auto done = scene.sent(6);
  EXPECT_EQ(done.back().wr_id, 5u);
  EXPECT_TRUE(scene.pair.a.poll_once(scene.pair.qa.send_cq, 1).empty());
}

TEST(WorkRefused, AnOperationThatWasNotAskedFor) {
  WorkPair scene(kHere, with_calls(IBV_QP_EX_WITH_RDMA_WRITE));
  warm(scene);
  expect_refused(scene, EOPNOTSUPP, [&] {
    ibv_wr_send(scene.work);
    scene.set_sge(0, 8);
  });
}

TEST(WorkRefused, TheFirstOfSeveralErrorsIsTheAnswer) {
  WorkPair scene(kHere, with_calls(IBV_QP_EX_WITH_RDMA_WRITE));
  std::vector<char> bytes(scene.pair.qa.cap.max_inline_data + 1);
  expect_refused(scene, EINVAL, [&] {
    ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address);
    ibv_wr_set_inline_data(scene.work, bytes.data(), bytes.size());
    ibv_wr_send(scene.work);
  });
}

TEST(WorkRefused, AQueuePairThatMayNotSendYet) {
  PairWish wish = with_calls();
  wish.connected = false;
  WorkPair scene(kHere, wish);
  expect_refused(scene, EINVAL, [&] {
    ibv_wr_send(scene.work);
    scene.set_sge(0, 8);
  });
}

TEST(WorkRefused, AWriteOfForbiddenMemoryFailsTheQueuePairAndFlushesTheRest) {
  WorkPair scene(kHere);
  warm(scene);
  ibv_wr_start(scene.work);
  for (std::uint64_t i = 0; i < 3; ++i) {
    scene.next(i);
    ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address + (i == 1 ? 64_KiB : 0));
    scene.set_sge(0, 8);
  }
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  const auto done = scene.sent(3);
  expect_wc(done[0], 0, IBV_WC_RDMA_WRITE, scene.pair.qa);
  expect_error(done[1], 1, IBV_WC_REM_ACCESS_ERR, scene.pair.qa);
  expect_error(done[2], 2, IBV_WC_WR_FLUSH_ERR, scene.pair.qa);
  ibv_wr_start(scene.work);
  scene.next(3);
  ibv_wr_send(scene.work);
  scene.set_sge(0, 8);
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  expect_error(scene.sent(1)[0], 3, IBV_WC_WR_FLUSH_ERR, scene.pair.qa);
  EXPECT_EQ(scene.pair.b.call<&Endpoint::take_async_event>(kDefaultWaitMs).type,
            IBV_EVENT_QP_ACCESS_ERR);
}

int creation(Endpoint& end, ibv_qp_type type, std::uint64_t calls) {
  CqHandle cq(ibv_create_cq(end.context(), 16, nullptr, nullptr, 0));
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = type;
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {4, 4, 1, 1, 0};
  attr.pd = end.pd();
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = calls;
  errno = 0;
  QpHandle qp(ibv_create_qp_ex(end.context(), &attr));
  if (!qp) return errno;
  EXPECT_NE(ibv_qp_to_qp_ex(qp.get()), nullptr);
  return 0;
}

TEST(WorkRefused, OperationsThatTheTransportLacksAreRefusedAtCreate) {
  AllowedLog why("has no such operation");
  Endpoint end(std::make_shared<Session>());
  EXPECT_EQ(creation(end, IBV_QPT_RC, kAllCalls), 0);
  EXPECT_EQ(creation(end, IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
  EXPECT_EQ(creation(end, IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE), 0);
  EXPECT_EQ(creation(end, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
  EXPECT_EQ(creation(end, IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP), EOPNOTSUPP);
  EXPECT_EQ(LogWatch::instance()->complaints().size(), 3u);
}

TEST(WorkRefused, AQueuePairMadeWithoutTheFlagsHasNoCalls) {
  const Pair pair(kHere);
  EXPECT_EQ(ibv_qp_to_qp_ex(pair.a.here().qp(pair.qa.id)), nullptr);
}

}  // namespace
}  // namespace verbatim::harness
