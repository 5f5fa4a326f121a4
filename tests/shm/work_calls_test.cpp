// SPDX-License-Identifier: BSD-2-Clause
//
// Requests built by ibv_wr_* do what posted ones do: man ibv_wr_post.
#include "tests/shm/work_calls.hpp"

#include <cstring>
#include <thread>

#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class WorkCalls : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(WorkCalls, each_way());

TEST_P(WorkCalls, MessagesOfAnySizeArrive) {
  WorkPair scene(GetParam());
  for (const std::uint64_t size : {0u, 1u, 8u, 56u, 57u, 4096u, 40'000u}) {
    SCOPED_TRACE(size);
    scene.pair.a.fill(scene.at_a, 0, size, 7);
    scene.post_receives(1, 1, 64_KiB);
    ibv_wr_start(scene.work);
    scene.next(2);
    ibv_wr_send(scene.work);
    scene.set_sge(0, static_cast<std::uint32_t>(size));
    ASSERT_EQ(ibv_wr_complete(scene.work), 0);
    expect_wc(scene.sent(1)[0], 2, IBV_WC_SEND, scene.pair.qa);
    expect_receive(scene.received(1)[0], 1, size, scene.pair.qb);
    EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 0, size, 7), -1);
  }
}

TEST_P(WorkCalls, ImmediateDataArrivesWithAMessageAndWithAWrite) {
  WorkPair scene(GetParam());
  scene.post_receives(1, 2, 64);
  ibv_wr_start(scene.work);
  scene.next(3);
  ibv_wr_send_imm(scene.work, htonl(0x11223344));
  scene.set_sge(0, 8);
  scene.next(4);
  ibv_wr_rdma_write_imm(scene.work, scene.at_b.rkey, scene.at_b.address + 4096, htonl(0x55667788));
  scene.set_sge(0, 16);
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  const auto got = scene.received(2);
  expect_wc(got[0], 1, IBV_WC_RECV, scene.pair.qb);
  EXPECT_EQ(ntohl(got[0].imm_data), 0x11223344u);
  EXPECT_EQ(got[0].wc_flags, unsigned{IBV_WC_WITH_IMM});
  expect_wc(got[1], 2, IBV_WC_RECV_RDMA_WITH_IMM, scene.pair.qb);
  EXPECT_EQ(ntohl(got[1].imm_data), 0x55667788u);
  const auto sent = scene.sent(2);
  expect_wc(sent[0], 3, IBV_WC_SEND, scene.pair.qa);
  expect_wc(sent[1], 4, IBV_WC_RDMA_WRITE, scene.pair.qa);
}

TEST_P(WorkCalls, WritesAndReadsMoveTheirBytes) {
  WorkPair scene(GetParam());
  for (const std::uint32_t size : {1u, 8u, 64u, 65u, 4096u, 20'000u}) {
    SCOPED_TRACE(size);
    scene.pair.a.fill(scene.at_a, 0, size, size);
    ibv_wr_start(scene.work);
    scene.next(1);
    ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address + 8);
    scene.set_sge(0, size);
    scene.next(2);
    ibv_wr_rdma_read(scene.work, scene.at_b.rkey, scene.at_b.address + 8);
    scene.set_sge(32'768, size);
    ASSERT_EQ(ibv_wr_complete(scene.work), 0);
    const auto done = scene.sent(2);
    expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, scene.pair.qa);
    expect_wc(done[1], 2, IBV_WC_RDMA_READ, scene.pair.qa);
    EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 8, size, size), -1);
    EXPECT_EQ(scene.pair.a.mismatch(scene.at_a, 32'768, size, size), -1);
  }
}

TEST_P(WorkCalls, AtomicsGiveTheOldValue) {
  WorkPair scene(GetParam());
  scene.pair.b.store(scene.at_b, 0, 40);
  ibv_wr_start(scene.work);
  scene.next(1);
  ibv_wr_atomic_fetch_add(scene.work, scene.at_b.rkey, scene.at_b.address, 2);
  scene.set_sge(0, 8);
  scene.next(2);
  ibv_wr_atomic_cmp_swp(scene.work, scene.at_b.rkey, scene.at_b.address, 42, 99);
  scene.set_sge(8, 8);
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  const auto done = scene.sent(2);
  expect_wc(done[0], 1, IBV_WC_FETCH_ADD, scene.pair.qa);
  expect_wc(done[1], 2, IBV_WC_COMP_SWAP, scene.pair.qa);
  EXPECT_EQ(scene.pair.a.load(scene.at_a, 0), 40u);
  EXPECT_EQ(scene.pair.a.load(scene.at_a, 8), 42u);
  EXPECT_EQ(scene.pair.b.load(scene.at_b, 0), 99u);
}

TEST_P(WorkCalls, InlineDataIsCopiedByTheCall) {
  WorkPair scene(GetParam());
  scene.post_receives(1, 1, 64);
  char bytes[220];
  ibv_wr_start(scene.work);
  for (int i = 0; i < 3; ++i) {
    std::memset(bytes, 'a' + i, sizeof(bytes));
    scene.next(static_cast<std::uint64_t>(i));
    if (i == 0)
      ibv_wr_send(scene.work);
    else
      ibv_wr_rdma_write(scene.work, scene.at_b.rkey,
                        scene.at_b.address + static_cast<unsigned>(i) * 1024);
    ibv_wr_set_inline_data(scene.work, bytes, i == 2 ? sizeof(bytes) : 16);
  }
  std::memset(bytes, 'x', sizeof(bytes));
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  EXPECT_EQ(scene.sent(3).size(), 3u);
  expect_receive(scene.received(1)[0], 1, 16, scene.pair.qb);
  expect_untouched(scene.pair.b, scene.at_b, 0, 16, 'a');
  expect_untouched(scene.pair.b, scene.at_b, 1024, 16, 'b');
  expect_untouched(scene.pair.b, scene.at_b, 1024 + 16, 16, 0);
  expect_untouched(scene.pair.b, scene.at_b, 2048, 220, 'c');
}

TEST_P(WorkCalls, ListsOfPiecesAreGathered) {
  WorkPair scene(GetParam());
  scene.post_receives(1, 2, 256);
  scene.pair.a.fill(scene.at_a, 0, 96, 3);
  char bytes[96];
  std::memcpy(bytes, scene.pair.a.here().bytes(scene.at_a.id), sizeof(bytes));
  const ibv_sge pieces[3] = {{scene.at_a.address, 1, scene.at_a.lkey},
                             {scene.at_a.address + 1, 63, scene.at_a.lkey},
                             {scene.at_a.address + 64, 32, scene.at_a.lkey}};
  const ibv_data_buf buffers[3] = {{bytes, 1}, {bytes + 1, 63}, {bytes + 64, 32}};
  ibv_wr_start(scene.work);
  scene.next(1);
  ibv_wr_send(scene.work);
  ibv_wr_set_sge_list(scene.work, 3, pieces);
  scene.next(2);
  ibv_wr_send(scene.work);
  ibv_wr_set_inline_data_list(scene.work, 3, buffers);
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  EXPECT_EQ(scene.sent(2).size(), 2u);
  for (const ibv_wc& wc : scene.received(2)) EXPECT_EQ(wc.byte_len, 96u);
  EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 0, 96, 3), -1);
  EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 256, 96, 3), -1);
}

TEST_P(WorkCalls, ABatchIsPerformedInOrderAndOnlySignaledRequestsComplete) {
  constexpr std::uint64_t kCount = 100;
  WorkPair scene(GetParam());
  scene.post_receives(0, kCount, 8);
  ibv_wr_start(scene.work);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    scene.next(i, i % 10 == 9 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    ibv_wr_send(scene.work);
    ibv_wr_set_inline_data(scene.work, &i, sizeof(i));
  }
  EXPECT_TRUE(scene.pair.b.poll_once(scene.pair.qb.receive_cq, 1).empty())
      << "nothing is performed before it is complete";
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  const auto got = scene.received(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    expect_receive(got[i], i, 8, scene.pair.qb);
    EXPECT_EQ(scene.pair.b.load(scene.at_b, i * 8), i);
  }
  const auto sent = scene.sent(kCount / 10);
  for (std::uint64_t i = 0; i < kCount / 10; ++i) EXPECT_EQ(sent[i].wr_id, 10 * i + 9);
}

TEST_P(WorkCalls, ARequestAloneCompletesOnlyIfItIsSignaled) {
  WorkPair scene(GetParam());
  expect_requests_alone(scene);
}

TEST_P(WorkCalls, ABatchMixesOperationsKeysAndSizes) {
  constexpr std::uint64_t kCount = 60;
  WorkPair scene(GetParam());
  const RegionInfo other = scene.pair.b.allocate(GetParam().memory, 64_KiB);
  scene.post_receives(0, kCount / 3, 512);
  scene.pair.a.fill(scene.at_a, 0, 512, 5);
  const unsigned char* bytes = scene.pair.a.here().bytes(scene.at_a.id);
  const auto size_of = [](std::uint64_t i) { return static_cast<std::uint32_t>(i * 7 % 300); };
  for (int again = 0; again < 3; ++again) {
    SCOPED_TRACE(again);
    if (again != 0) scene.post_receives(0, kCount / 3, 512);
    ibv_wr_start(scene.work);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      scene.next(i, i % 4 == 3 ? unsigned{IBV_SEND_SIGNALED} : 0u);
      const RegionInfo& to = i % 3 == 1 ? scene.at_b : other;
      if (i % 3 == 0)
        ibv_wr_send_imm(scene.work, htonl(static_cast<std::uint32_t>(i)));
      else
        ibv_wr_rdma_write(scene.work, to.rkey, to.address + 16'384 + i * 512);
      const std::uint32_t size = size_of(i);
      if (i % 2 == 0 && size <= scene.pair.qa.cap.max_inline_data)
        ibv_wr_set_inline_data(scene.work, const_cast<unsigned char*>(bytes), size);
      else if (size != 0)  // without a setter it has no bytes
        scene.set_sge(0, size);
    }
    ASSERT_EQ(ibv_wr_complete(scene.work), 0);
    const auto got = scene.received(kCount / 3);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      SCOPED_TRACE(i);
      if (i % 3 == 0) {
        expect_wc(got[i / 3], i / 3, IBV_WC_RECV, scene.pair.qb);
        EXPECT_EQ(got[i / 3].byte_len, size_of(i));
        EXPECT_EQ(ntohl(got[i / 3].imm_data), i);
        EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, i / 3 * 512, size_of(i), 5), -1);
      } else {
        EXPECT_EQ(
            scene.pair.b.mismatch(i % 3 == 1 ? scene.at_b : other, 16'384 + i * 512, size_of(i), 5),
            -1);
      }
    }
    const auto sent = scene.sent(kCount / 4);
    for (std::uint64_t i = 0; i < kCount / 4; ++i)
      expect_wc(sent[i], 4 * i + 3, (4 * i + 3) % 3 == 0 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE,
                scene.pair.qa);
  }
}

TEST_P(WorkCalls, ABatchWaitsForReceivesLikePostedRequests) {
  WorkPair scene(GetParam());
  scene.post_receives(0, 2, 8);
  ibv_wr_start(scene.work);
  for (std::uint64_t i = 0; i < 6; ++i) {
    scene.next(i);
    ibv_wr_send(scene.work);
    ibv_wr_set_inline_data(scene.work, &i, sizeof(i));
  }
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  EXPECT_EQ(scene.received(2).size(), 2u);
  for (std::uint64_t i = 2; i < 6; ++i)
    expect_posted(
        scene.pair.b.post_receive(scene.pair.qb, receive(i, slice(scene.at_b, i * 8, 8))));
  const auto rest = scene.received(4);
  for (std::uint64_t i = 2; i < 6; ++i) {
    expect_receive(rest[i - 2], i, 8, scene.pair.qb);
    EXPECT_EQ(scene.pair.b.load(scene.at_b, i * 8), i);
  }
  EXPECT_EQ(scene.sent(6).size(), 6u);
}

TEST_P(WorkCalls, AnAbortedBatchLeavesNoTrace) {
  WorkPair scene(GetParam());
  scene.post_receives(1, 1, 64);
  ibv_wr_start(scene.work);
  scene.next(1);
  ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address + 128);
  char bytes[8];
  std::memset(bytes, 'z', sizeof(bytes));
  ibv_wr_set_inline_data(scene.work, bytes, sizeof(bytes));
  scene.next(2);
  ibv_wr_send(scene.work);
  ibv_wr_set_inline_data(scene.work, bytes, sizeof(bytes));
  ibv_wr_abort(scene.work);
  expect_posted(scene.pair.a.post_send(scene.pair.qa, send(3, slice(scene.at_a, 0, 4))));
  expect_wc(scene.sent(1)[0], 3, IBV_WC_SEND, scene.pair.qa);
  expect_receive(scene.received(1)[0], 1, 4, scene.pair.qb);
  expect_untouched(scene.pair.b, scene.at_b, 128, 8, 0);
}

TEST_P(WorkCalls, ThreadsThatShareTheQueuePairDoNotMixTheirBatches) {
  constexpr std::uint64_t kBatches = 300;
  constexpr std::uint64_t kEach = 4;
  WorkPair scene(GetParam());
  const auto build = [&](std::uint64_t thread) {
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
      ibv_wr_start(scene.work);
      for (std::uint64_t i = 0; i < kEach; ++i) {
        scene.next(thread << 32 | (batch * kEach + i),
                   i + 1 == kEach ? unsigned{IBV_SEND_SIGNALED} : 0u);
        ibv_wr_rdma_write(scene.work, scene.at_b.rkey,
                          scene.at_b.address + (thread * kEach + i) * 8);
        ibv_wr_set_inline_data(scene.work, &batch, sizeof(batch));
      }
      const int error = ibv_wr_complete(scene.work);
      if (error == ENOMEM) {  // full: what the other has posted is polled by nobody yet
        --batch;
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(error, 0);
    }
  };
  std::thread one(build, 0);
  std::thread two(build, 1);
  std::uint64_t expected[2] = {kEach - 1, kEach - 1};
  for (std::uint64_t seen = 0; seen < 2 * kBatches; ++seen) {
    const ibv_wc wc = scene.sent(1)[0];
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    const std::uint64_t thread = wc.wr_id >> 32;
    ASSERT_LT(thread, 2u);
    ASSERT_EQ(wc.wr_id & 0xffffffff, expected[thread]);
    expected[thread] += kEach;
  }
  one.join();
  two.join();
  for (std::uint64_t i = 0; i < 2 * kEach; ++i)
    EXPECT_EQ(scene.pair.b.load(scene.at_b, i * 8), kBatches - 1);
}

}  // namespace
}  // namespace verbatim::harness
