// SPDX-License-Identifier: BSD-2-Clause
//
// A message that meets a receive which cannot take it (IBTA 9.7.4.1.6, 9.9.3): too short, or with
// memory that is not what it says. Each end is told in its own words, and both end.
#include "tests/support/rc_fault.hpp"

namespace verbatim::harness {
namespace {

class RcReceiveFault : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcReceiveFault, on_every_device(each_way()));

/// Three receives, the first of them into `first`.
std::vector<Receive> receives_with(FaultScene& scene, const SliceList& first) {
  const Slice all = slice(scene.remote, 0, FaultScene::kSize);
  return {receive(20, first), receive(21, all), receive(22, all)};
}

void too_long(FaultScene& scene, std::uint64_t message, const SliceList& first) {
  const auto receives = receives_with(scene, first);
  const Request request = send(0, slice(scene.local, 0, message));
  const Responder told = in_receive(IBV_WC_LOC_LEN_ERR);
  scene.expect("send", request, IBV_WC_REM_INV_REQ_ERR, told, receives);
  scene.expect("send with immediate", request.with_imm(1), IBV_WC_REM_INV_REQ_ERR, told, receives);
  if (message > 220) return;
  scene.expect("inline send", request.with(IBV_SEND_INLINE), IBV_WC_REM_INV_REQ_ERR, told,
               receives);
}

/// A message of each size that does not fit into the `sound` bytes of receives whose first one is
/// faulty behind them. What fits arrives (receive_part_test.cpp).
void bad_receive(FaultScene& scene, const SliceList& first, std::uint64_t sound = 0) {
  const auto receives = receives_with(scene, first);
  const Responder told = in_receive(IBV_WC_LOC_PROT_ERR);
  for (const std::uint64_t size : kFaultSizes) {
    if (size > first.bytes()) continue;
    if (size <= sound) continue;
    const Request request = send(0, slice(scene.local, 0, size));
    scene.expect("send", request, IBV_WC_REM_OP_ERR, told, receives);
    if (size > 220) continue;
    scene.expect("inline send", request.with(IBV_SEND_INLINE).with_imm(1), IBV_WC_REM_OP_ERR, told,
                 receives);
  }
}

TEST_P(RcReceiveFault, AMessageLongerThanItsReceiveEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  for (const std::uint64_t size : kFaultSizes) {
    too_long(scene, size, slice(scene.remote, 0, size - 1));
  }
  too_long(scene, 8, SliceList{});
  scene.expect_memory_untouched({0, 1_MiB - 1});
}

TEST_P(RcReceiveFault, ItsPiecesTogetherAreWhatAReceiveHolds) {
  FaultScene scene(GetParam());
  for (const std::uint64_t size : kFaultSizes) {
    const SliceList pieces{slice(scene.remote, 0, size / 2), slice(scene.remote, 0, 0),
                           slice(scene.remote, size / 2, size - size / 2)};
    too_long(scene, size + 1, pieces);
  }
  scene.expect_memory_untouched({0, 1_MiB});
}

TEST_P(RcReceiveFault, AReceiveWithAKeyThatMeansNothingEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  Slice wrong = slice(scene.remote, 0, FaultScene::kSize);
  wrong.lkey = scene.remote.lkey ^ 0x80000000u;
  bad_receive(scene, wrong);
  wrong.lkey = scene.remote.lkey ^ 1;
  bad_receive(scene, wrong);
  scene.expect_memory_untouched();
}

TEST_P(RcReceiveFault, AReceiveOutsideItsRegionEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  bad_receive(scene, slice(scene.remote, 1, FaultScene::kSize), FaultScene::kSize - 1);
  bad_receive(scene, slice(scene.remote, FaultScene::kSize, 8));
  bad_receive(scene, slice(scene.remote, ~std::uint64_t{0}, 64));
  scene.expect_memory_untouched();
}

TEST_P(RcReceiveFault, AReceiveInMemoryWithoutLocalWriteEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  const RegionInfo constant =
      scene.pair.b.register_part(scene.remote, 0, FaultScene::kSize, IBV_ACCESS_REMOTE_READ);
  bad_receive(scene, slice(constant, 0, FaultScene::kSize));
  scene.expect_memory_untouched();
}

TEST_P(RcReceiveFault, AReceiveInAnotherProtectionDomainEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  const RegionInfo foreign = scene.pair.b.register_foreign(scene.remote);
  bad_receive(scene, slice(foreign, 0, FaultScene::kSize));
  scene.expect_memory_untouched();
}

TEST_P(RcReceiveFault, OneBadPieceAmongGoodOnesEndsBothQueuePairs) {
  FaultScene scene(GetParam());
  Slice wrong = slice(scene.remote, 64, 64);
  wrong.lkey = scene.remote.lkey ^ 0x80000000u;
  const Slice good = slice(scene.remote, 0, 64);
  const Slice rest = slice(scene.remote, 128, FaultScene::kSize - 128);
  bad_receive(scene, SliceList{wrong, good, rest});
  bad_receive(scene, SliceList{good, wrong, rest}, good.length);
  bad_receive(scene, SliceList{good, rest, wrong}, good.length + rest.length);
  scene.expect_memory_untouched({0, good.length});
}

/// The verdict on a receive's keys falls when it is posted. A small message to one whose region was
/// deregistered since has left, and completed, when the receiver finds out.
TEST_P(RcReceiveFault, AReceiveWhoseRegionWasDeregisteredSinceIsNeverWritten) {
  FaultScene scene(GetParam());
  Pair& pair = scene.pair;
  for (const std::uint64_t size : kFaultSizes) {
    SCOPED_TRACE(size);
    const auto [qa, qb] = pair.add_qps({}, {});
    const RegionInfo once = pair.b.register_part(scene.remote, 0, FaultScene::kSize);
    expect_posted(
        pair.b.post_receive(qb, std::vector{receive(1, slice(once, 0, FaultScene::kSize)),
                                            receive(2, slice(once, 0, FaultScene::kSize))}));
    ASSERT_EQ(pair.b.deregister(once), 0);
    expect_posted(pair.a.post_send(qa, {send(3, slice(scene.local, 0, size)), send(4, {})}));
    const auto got = pair.b.poll_receives(qb, 2);
    expect_error(got[0], 1, IBV_WC_LOC_PROT_ERR, qb);
    expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, qb);
    EXPECT_TRUE(wait_until([&, qp = qb] { return pair.b.state(qp) == IBV_QPS_ERR; }));
    const auto sent = pair.a.poll_sends(qa, 2);
    if (size >= 512) {
      expect_error(sent[0], 3, IBV_WC_REM_OP_ERR, qa);
      expect_error(sent[1], 4, IBV_WC_WR_FLUSH_ERR, qa);
    }
  }
  scene.expect_memory_untouched();
}

TEST_P(RcReceiveFault, AWriteWithImmediateLooksAtNoByteOfTheReceiveThatItUses) {
  FaultScene scene(GetParam());
  Pair& pair = scene.pair;
  Slice wrong = slice(scene.remote, 0, 64);
  wrong.lkey = scene.remote.lkey ^ 0x80000000u;
  expect_posted(pair.b.post_receive(
      pair.qb, std::vector{receive(1, wrong), receive(2, slice(scene.remote, 0, 1))}));
  const RegionInfo to = pair.b.allocate(GetParam().memory, 100'000);
  expect_posted(
      pair.a.post_send(pair.qa, {write(3, slice(scene.local, 0, 8), to).with_imm(1),
                                 write(4, slice(scene.local, 0, 100'000), to).with_imm(2)}));
  const auto sent = pair.a.poll_sends(pair.qa, 2);
  expect_wc(sent[0], 3, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[1], 4, IBV_WC_RDMA_WRITE, pair.qa);
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_wc(got[0], 1, IBV_WC_RECV_RDMA_WITH_IMM, pair.qb);
  expect_wc(got[1], 2, IBV_WC_RECV_RDMA_WITH_IMM, pair.qb);
  scene.expect_memory_untouched();
}

}  // namespace
}  // namespace verbatim::harness
