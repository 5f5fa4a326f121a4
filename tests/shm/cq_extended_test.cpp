// SPDX-License-Identifier: BSD-2-Clause
//
// The cursor of an extended completion queue: man ibv_create_cq_ex, ibv_start_poll.
#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>

#include "tests/shm/cq_extended.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class CqExtended : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(CqExtended, each_way());

TEST_P(CqExtended, AnEmptyQueueStartsNothingAndHoldsNothing) {
  ExtendedPair scene(GetParam());
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(scene.sends, &attr), ENOENT);
  EXPECT_EQ(ibv_start_poll(scene.sends, &attr), ENOENT);
  std::thread([&] { EXPECT_EQ(ibv_start_poll(scene.sends, &attr), ENOENT); }).join();
}

TEST_P(CqExtended, UnknownBitsInTheMaskAreRefused) {
  ExtendedPair scene(GetParam());
  scene.write_from_a(1);
  ibv_poll_cq_attr attr{1};
  EXPECT_EQ(ibv_start_poll(scene.sends, &attr), EINVAL);
  ASSERT_EQ(start(scene.sends), 0);
  ibv_end_poll(scene.sends);
}

TEST_P(CqExtended, AReceivedMessageIsReadFieldByField) {
  ExtendedPair scene(GetParam());
  scene.send_to_a(7, send(1, slice(scene.at_b, 0, 24)).with_imm(0xabcd1234));
  ibv_cq_ex* const cq = scene.receives;
  ASSERT_EQ(start(cq), 0);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  EXPECT_EQ(cq->wr_id, 7u);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0u);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 24u);
  EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq)), 0xabcd1234u);
  EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq), ibv_wc_read_imm_data(cq));
  EXPECT_EQ(ibv_wc_read_qp_num(cq), scene.qa.qpn);
  EXPECT_EQ(ibv_wc_read_src_qp(cq), scene.qb.qpn);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq), unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ibv_wc_read_slid(cq), 0u);
  EXPECT_EQ(ibv_wc_read_sl(cq), 0u);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0u);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
}

TEST_P(CqExtended, FieldsThatNobodyAskedForReadAsNothing) {
  ExtendedPair scene(GetParam());
  scene.write_from_a(1);
  ibv_cq_ex* const cq = scene.sends;
  ASSERT_EQ(start(cq), 0);
  EXPECT_EQ(ibv_wc_read_completion_ts(cq), 0u);
  EXPECT_EQ(ibv_wc_read_completion_wallclock_ns(cq), 0u);
  EXPECT_EQ(ibv_wc_read_cvlan(cq), 0u);
  EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0u);
  ibv_wc_tm_info tags{1, 1};
  ibv_wc_read_tm_info(cq, &tags);
  EXPECT_EQ(tags.tag, 0u);
  ibv_end_poll(cq);
}

TEST_P(CqExtended, TheCursorGoesThroughAllThatCameInOrder) {
  constexpr std::uint64_t kCount = 40;
  ExtendedPair scene(GetParam());
  for (std::uint64_t i = 0; i < kCount; ++i)
    scene.send_to_a(100 + i, send(i, slice(scene.at_b, 0, 1 + i)));
  std::uint64_t seen = 0;
  while (seen < kCount) {
    ASSERT_EQ(start(scene.receives), 0);
    int more = 0;
    for (; more == 0; more = ibv_next_poll(scene.receives), ++seen) {
      EXPECT_EQ(scene.receives->wr_id, 100 + seen);
      EXPECT_EQ(ibv_wc_read_byte_len(scene.receives), 1 + seen);
    }
    EXPECT_EQ(more, ENOENT);
    ibv_end_poll(scene.receives);
  }
  EXPECT_EQ(seen, kCount);
}

TEST_P(CqExtended, TheClassicPollTakesWhatTheCursorLeft) {
  ExtendedPair scene(GetParam());
  // Met and mapped: from here on a write is done when it has been posted.
  scene.write_from_a(99);
  expect_wc(scene.pair.a.poll_sends(scene.qa, 1)[0], 99, IBV_WC_RDMA_WRITE, scene.qa);
  for (std::uint64_t i = 0; i < 6; ++i) scene.write_from_a(i);
  ASSERT_EQ(start(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 0u);
  ASSERT_EQ(ibv_next_poll(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 1u);
  ibv_end_poll(scene.sends);
  const auto rest = scene.pair.a.poll_sends(scene.qa, 3);
  for (std::uint64_t i = 0; i < 3; ++i) expect_wc(rest[i], 2 + i, IBV_WC_RDMA_WRITE, scene.qa);
  ASSERT_EQ(start(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 5u);
  EXPECT_EQ(ibv_wc_read_opcode(scene.sends), IBV_WC_RDMA_WRITE);
  ibv_end_poll(scene.sends);
}

TEST_P(CqExtended, WhatWasLeftOfAQueuePairThatIsResetIsForgotten) {
  ExtendedPair scene(GetParam());
  const auto [other, its_peer] = scene.pair.add_qps(scene.wish, {});
  // Met and mapped: from here on a write is done when it has been posted.
  for (const QpInfo& qp : {scene.qa, other}) {
    expect_posted(scene.pair.a.post_send(qp, write(99, slice(scene.at_a, 0, 8), scene.at_b)));
    expect_wc(scene.pair.a.poll_sends(scene.qa, 1)[0], 99, IBV_WC_RDMA_WRITE, qp);
  }
  for (std::uint64_t i = 0; i < 3; ++i) scene.write_from_a(i);
  expect_posted(scene.pair.a.post_send(other, write(10, slice(scene.at_a, 0, 8), scene.at_b)));
  scene.write_from_a(3);
  ASSERT_EQ(start(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 0u);
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_RESET), 0);
  ASSERT_EQ(ibv_next_poll(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 10u);
  EXPECT_EQ(ibv_wc_read_qp_num(scene.sends), other.qpn);
  ibv_end_poll(scene.sends);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(scene.sends), 1, &wc), 0);
  // Those behind them are found, also when everything before was forgotten.
  for (std::uint64_t i = 11; i < 14; ++i)
    expect_posted(scene.pair.a.post_send(other, write(i, slice(scene.at_a, 0, 8), scene.at_b)));
  ASSERT_EQ(start(scene.sends), 0);
  ibv_end_poll(scene.sends);
  expect_posted(scene.pair.a.post_send(other, write(14, slice(scene.at_a, 0, 8), scene.at_b)));
  ASSERT_EQ(scene.pair.a.to_state(other, IBV_QPS_RESET), 0);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(scene.sends, &attr), ENOENT);
  EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(scene.sends), 1, &wc), 0);
}

TEST_P(CqExtended, RequestsMayBePostedWhileTheCursorIsHeld) {
  ExtendedPair scene(GetParam());
  scene.write_from_a(1);
  ASSERT_EQ(start(scene.sends), 0);
  scene.write_from_a(2);
  ASSERT_EQ(ibv_next_poll(scene.sends), 0);
  EXPECT_EQ(scene.sends->wr_id, 2u);
  ibv_end_poll(scene.sends);
}

TEST_P(CqExtended, AFailedRequestIsReadLikeAnyOther) {
  ExtendedPair scene(GetParam());
  expect_posted(scene.pair.a.post_receive(scene.qa, receive(9)));
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_ERR), 0);
  ASSERT_EQ(start(scene.receives), 0);
  EXPECT_EQ(scene.receives->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(scene.receives->wr_id, 9u);
  EXPECT_EQ(ibv_wc_read_qp_num(scene.receives), scene.qa.qpn);
  ibv_end_poll(scene.receives);
}

TEST_P(CqExtended, AFailureBehindSuccessesIsReadAsOne) {
  ExtendedPair scene(GetParam());
  for (std::uint64_t i = 0; i < 3; ++i) scene.write_from_a(i);
  RegionInfo nobodys = scene.at_b;
  nobodys.rkey ^= 1;
  expect_posted(scene.pair.a.post_send(scene.qa, write(3, slice(scene.at_a, 0, 8), nobodys)));
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (i == 0) {
      ASSERT_EQ(start(scene.sends), 0);
    } else {
      ASSERT_TRUE(wait_until([&] { return ibv_next_poll(scene.sends) == 0; }));
    }
    EXPECT_EQ(scene.sends->wr_id, i);
    EXPECT_EQ(scene.sends->status, i < 3 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
  }
  ibv_end_poll(scene.sends);
}

TEST_P(CqExtended, ThreadsThatShareTheQueueSeeEachCompletionOnce) {
  constexpr std::uint64_t kCount = 20'000;
  constexpr std::uint32_t kInFlight = 100;
  ExtendedPair scene(GetParam());
  std::vector<std::atomic<int>> seen(kCount);
  std::atomic<std::uint64_t> total{0};
  const auto take = [&](std::uint64_t most) {
    ibv_poll_cq_attr attr{};
    while (total.load() < kCount) {
      if (ibv_start_poll(scene.sends, &attr) != 0) {
        std::this_thread::yield();
        continue;
      }
      std::uint64_t taken = 0;
      do {
        const std::uint64_t wr_id = scene.sends->wr_id;
        ++seen.at(wr_id);
        // The cursor is this thread's: nobody has moved it meanwhile.
        EXPECT_EQ(scene.sends->wr_id, wr_id);
        ++total;
      } while (++taken < most && ibv_next_poll(scene.sends) == 0);
      ibv_end_poll(scene.sends);
    }
  };
  // The second leaves some behind, and the third looks for them by the other call.
  std::thread one(take, kCount);
  std::thread two(take, 3);
  std::thread three([&] {
    ibv_wc wc;
    while (total.load() < kCount) {
      if (ibv_poll_cq(ibv_cq_ex_to_cq(scene.sends), 1, &wc) == 1) {
        ++seen.at(wc.wr_id);
        ++total;
      }
      std::this_thread::yield();
    }
  });
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(wait_until([&] { return i - total.load() < kInFlight; }));
    scene.write_from_a(i);
  }
  one.join();
  two.join();
  three.join();
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
}

std::uint64_t raw_clock(ibv_context* context) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  EXPECT_EQ(ibv_query_rt_values_ex(context, &values), 0);
  EXPECT_EQ(values.comp_mask, std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
  EXPECT_EQ(values.raw_clock.tv_sec, 0);
  return static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
}

std::uint64_t wallclock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

TEST(CqTime, ARequestIsStampedWhenItCompletes) {
  ExtendedPair scene(kHere, kClockFields);
  ibv_context* const context = scene.pair.a.here().context();
  const std::uint64_t before = raw_clock(context);
  const std::uint64_t before_by_wall = wallclock();
  scene.write_from_a(1);
  const std::uint64_t after = raw_clock(context);
  const std::uint64_t after_by_wall = wallclock();
  ASSERT_EQ(start(scene.sends), 0);
  EXPECT_GE(ibv_wc_read_completion_ts(scene.sends), before);
  EXPECT_LE(ibv_wc_read_completion_ts(scene.sends), after);
  EXPECT_GE(ibv_wc_read_completion_wallclock_ns(scene.sends), before_by_wall);
  EXPECT_LE(ibv_wc_read_completion_wallclock_ns(scene.sends), after_by_wall);
  ibv_end_poll(scene.sends);
}

TEST_P(CqExtended, AMessageIsStampedWhenItIsTaken) {
  ExtendedPair scene(GetParam(), kClockFields);
  ibv_context* const context = scene.pair.a.here().context();
  const std::uint64_t before = raw_clock(context);
  scene.send_to_a(1, send(1, slice(scene.at_b, 0, 8)));
  ASSERT_EQ(start(scene.receives), 0);
  const std::uint64_t stamp = ibv_wc_read_completion_ts(scene.receives);
  ibv_end_poll(scene.receives);
  EXPECT_GE(stamp, before);
  EXPECT_LE(stamp, raw_clock(context));
}

TEST(CqTime, StampsStayWithTheirCompletionsWhenTheQueueIsResized) {
  ExtendedPair scene(kHere, kClockFields, 16);
  for (std::uint64_t i = 0; i < 10; ++i) scene.write_from_a(i);
  const std::uint64_t after = raw_clock(scene.pair.a.here().context());
  ASSERT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(scene.sends), 64), 0);
  std::uint64_t last = 0;
  ASSERT_EQ(start(scene.sends), 0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(scene.sends->wr_id, i);
    EXPECT_GE(ibv_wc_read_completion_ts(scene.sends), last);
    last = ibv_wc_read_completion_ts(scene.sends);
    EXPECT_EQ(ibv_next_poll(scene.sends), i == 9 ? ENOENT : 0);
  }
  ibv_end_poll(scene.sends);
  EXPECT_NE(last, 0u);
  EXPECT_LE(last, after);
}

}  // namespace
}  // namespace verbatim::harness
