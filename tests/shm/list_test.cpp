// SPDX-License-Identifier: BSD-2-Clause
//
// Lists of small SENDs. Those of one length travel together, several in a slot, and each arrives as
// if it had come alone: in its own receive, in its order, whatever the receiver takes at a time and
// whatever happens in between.
#include <arpa/inet.h>

#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcList : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcList, each_way());

class RcListOfProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcListOfProcesses, between_processes());

constexpr std::uint64_t kStride = 64;
constexpr std::uint8_t kUnwritten = 0xEE;

PairWish of_depth(std::uint32_t receives) {
  PairWish wish;
  wish.b.receive_depth = receives;
  return wish;
}

/// Message number i comes from byte i of the source and goes to receive i, at i * kStride.
struct Scene {
  explicit Scene(Setting setting, std::uint32_t receives = 128)
      : pair(setting, of_depth(receives)),
        from(pair.a.allocate(setting.memory, 8_KiB)),
        to(pair.b.allocate(setting.memory, 128 * kStride)) {
    pair.a.fill(from, 0, 8_KiB, 7);
    pair.b.set(to, 0, 128 * kStride, kUnwritten);
  }
  void post_receives(std::uint64_t first, std::uint64_t count, std::uint64_t room = kStride) {
    std::vector<Receive> list;
    for (std::uint64_t i = first; i < first + count; ++i)
      list.push_back(receive(i, slice(to, i % 128 * kStride, room)));
    expect_posted(pair.b.post_receive(pair.qb, list));
  }
  Request message(std::uint64_t i, std::uint64_t bytes) {
    return send(i, slice(from, i % 4096, bytes));
  }
  void post_sends(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) {
    std::vector<Request> list;
    for (std::uint64_t i = first; i < first + count; ++i) list.push_back(message(i, bytes));
    expect_posted(pair.a.post_send(pair.qa, list));
  }
  void expect_sent(std::uint64_t first, std::uint64_t count) {
    const auto done = pair.a.poll_sends(pair.qa, static_cast<std::uint32_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) expect_wc(done[i], first + i, IBV_WC_SEND, pair.qa);
  }
  void expect_bytes(std::uint64_t i, std::uint64_t bytes) {
    SCOPED_TRACE(::testing::Message() << "message " << i << " of " << bytes << " bytes");
    EXPECT_EQ(pair.b.peek(to, i % 128 * kStride, bytes), pair.a.peek(from, i % 4096, bytes));
  }
  void expect_arrived(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) {
    const auto got = pair.b.poll_receives(pair.qb, static_cast<std::uint32_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) expect_receive(got[i], first + i, bytes, pair.qb);
    for (std::uint64_t i = first; i < first + count; ++i) expect_bytes(i, bytes);
  }

  Pair pair;
  RegionInfo from;
  RegionInfo to;
};

TEST_P(RcList, EachMessageArrivesInItsReceiveWhateverTheirLength) {
  Scene scene(GetParam());
  for (const std::uint64_t bytes : {0, 1, 2, 7, 8, 9, 14, 18, 19, 28, 29, 56, 57}) {
    scene.pair.b.set(scene.to, 0, 128 * kStride, kUnwritten);
    scene.post_receives(0, 32);
    scene.post_sends(0, 32, bytes);
    scene.expect_sent(0, 32);
    scene.expect_arrived(0, 32, bytes);
    for (std::uint64_t i = 0; i < 32; ++i)
      expect_untouched(scene.pair.b, scene.to, i * kStride + bytes, kStride - bytes, kUnwritten);
  }
}

TEST_P(RcList, TakenAFewAtATimeWhileOthersFollowTheyAreStillThoseThatWereSent) {
  constexpr std::uint64_t kDepth = 8, kEnd = 600;
  Scene scene(GetParam(), kDepth);
  scene.post_receives(0, kDepth);
  scene.post_sends(0, kDepth, 8);
  std::uint64_t taken = 0;
  for (std::uint64_t some = 1; taken < kEnd; some = some % 7 + 1) {
    scene.expect_arrived(taken, some, 8);
    // The places of those taken are used again before the rest of their slot is.
    scene.post_receives(taken + kDepth, some);
    scene.expect_sent(taken, some);
    scene.post_sends(taken + kDepth, some, 8);
    taken += some;
  }
  scene.expect_arrived(taken, kDepth, 8);
}

TEST_P(RcList, MessagesOfOtherKindsStandBetweenThem) {
  Scene scene(GetParam());
  for (std::uint64_t round = 0; round < 3; ++round) {
    scene.post_receives(0, 40);
    std::vector<Request> list;
    for (std::uint64_t i = 0; i < 40; ++i) {
      Request each = scene.message(i, i % 11 == 0 ? 9 : 8);
      if (i % 7 == round) each = each.with_imm(static_cast<std::uint32_t>(i));
      if (i % 5 == round) each = each.with(IBV_SEND_SOLICITED);
      if (i % 3 == 0) each = each.with(IBV_SEND_INLINE);
      if (i % 13 == 12) each = scene.message(i, 60);
      if (i % 17 == 16) each = scene.message(i, 0);
      list.push_back(each);
    }
    expect_posted(scene.pair.a.post_send(scene.pair.qa, list));
    scene.expect_sent(0, 40);
    const auto got = scene.pair.b.poll_receives(scene.pair.qb, 40);
    for (std::uint64_t i = 0; i < 40; ++i) {
      expect_wc(got[i], i, IBV_WC_RECV, scene.pair.qb);
      EXPECT_EQ(got[i].byte_len, list[i].from.bytes());
      const bool has_imm = list[i].opcode == IBV_WR_SEND_WITH_IMM;
      ASSERT_EQ((got[i].wc_flags & IBV_WC_WITH_IMM) != 0, has_imm) << "message " << i;
      if (has_imm) {
        EXPECT_EQ(ntohl(got[i].imm_data), i);
      }
      scene.expect_bytes(i, list[i].from.bytes());
    }
  }
}

TEST_P(RcList, ThoseThatWaitedForReceivesArriveInTheirs) {
  Scene scene(GetParam());
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Request> list;
    for (std::uint64_t i = 0; i < 40; ++i) {
      Request each = scene.message(i, i / 5 % 2 == 0 ? 8 : 16);
      if (i % 9 == round) each = each.with_imm(7);
      list.push_back(each);
    }
    expect_posted(scene.pair.a.post_send(scene.pair.qa, list));
    scene.post_receives(0, 40);
    scene.expect_sent(0, 40);
    const auto got = scene.pair.b.poll_receives(scene.pair.qb, 40);
    for (std::uint64_t i = 0; i < 40; ++i) {
      expect_wc(got[i], i, IBV_WC_RECV, scene.pair.qb);
      EXPECT_EQ(got[i].byte_len, list[i].from.bytes());
      EXPECT_EQ((got[i].wc_flags & IBV_WC_WITH_IMM) != 0, i % 9 == round) << "message " << i;
      scene.expect_bytes(i, list[i].from.bytes());
    }
  }
}

TEST_P(RcList, AReceiveThatIsTooShortFailsAloneOfThoseBeforeIt) {
  Scene scene(GetParam());
  scene.post_receives(0, 3);
  scene.post_receives(3, 1, 7);
  scene.post_receives(4, 4);
  scene.post_sends(0, 8, 8);
  const auto got = scene.pair.b.poll_receives(scene.pair.qb, 8);
  for (std::uint64_t i = 0; i < 3; ++i) expect_receive(got[i], i, 8, scene.pair.qb);
  expect_error(got[3], 3, IBV_WC_LOC_LEN_ERR, scene.pair.qb);
  for (std::uint64_t i = 4; i < 8; ++i) expect_error(got[i], i, IBV_WC_WR_FLUSH_ERR, scene.pair.qb);
  for (std::uint64_t i = 0; i < 3; ++i) scene.expect_bytes(i, 8);
}

TEST_P(RcList, MemoryThatGoesBeforeTheyAreTakenFailsTheOneThatWantedIt) {
  Scene scene(GetParam());
  const RegionInfo part = scene.pair.b.register_part(scene.to, 3 * kStride, kStride);
  scene.post_receives(0, 3);
  expect_posted(scene.pair.b.post_receive(scene.pair.qb, receive(3, slice(part, 0, kStride))));
  scene.post_receives(4, 4);
  scene.post_sends(0, 8, 8);
  scene.expect_sent(0, 8);
  ASSERT_EQ(scene.pair.b.deregister(part), 0);
  const auto got = scene.pair.b.poll_receives(scene.pair.qb, 8);
  for (std::uint64_t i = 0; i < 3; ++i) expect_receive(got[i], i, 8, scene.pair.qb);
  expect_error(got[3], 3, IBV_WC_LOC_PROT_ERR, scene.pair.qb);
  for (std::uint64_t i = 4; i < 8; ++i) expect_error(got[i], i, IBV_WC_WR_FLUSH_ERR, scene.pair.qb);
  expect_untouched(scene.pair.b, scene.to, 3 * kStride, 5 * kStride, kUnwritten);
}

TEST_P(RcList, AKeyThatMayNotBeWrittenFailsItsReceiveAmongOthersForTheSameMemory) {
  Scene scene(GetParam());
  const RegionInfo shown = scene.pair.b.register_part(scene.to, 0, 128 * kStride, 0);
  // By now the queue looks at the ring by itself, and takes what it finds there in one go.
  for (std::uint64_t round = 0; round < 8; ++round) {
    scene.post_receives(16, 32);
    scene.post_sends(16, 32, 8);
    scene.expect_sent(16, 32);
    scene.expect_arrived(16, 32, 8);
  }
  std::vector<Receive> receives;
  for (std::uint64_t i = 0; i < 8; ++i)
    receives.push_back(receive(i, slice(i == 3 ? shown : scene.to, i * kStride, kStride)));
  expect_posted(scene.pair.b.post_receive(scene.pair.qb, receives));
  scene.post_sends(0, 8, 8);
  const auto got = scene.pair.b.poll_receives(scene.pair.qb, 8);
  for (std::uint64_t i = 0; i < 3; ++i) expect_receive(got[i], i, 8, scene.pair.qb);
  expect_error(got[3], 3, IBV_WC_LOC_PROT_ERR, scene.pair.qb);
  for (std::uint64_t i = 4; i < 8; ++i) expect_error(got[i], i, IBV_WC_WR_FLUSH_ERR, scene.pair.qb);
  expect_untouched(scene.pair.b, scene.to, 3 * kStride, 5 * kStride, kUnwritten);
}

TEST_P(RcList, WhatWasNotTakenIsForgottenByAReset) {
  Scene scene(GetParam());
  for (std::uint64_t round = 0; round < 3; ++round) {
    scene.post_receives(0, 14);
    scene.post_sends(0, 14, 8);
    scene.expect_sent(0, 14);
    scene.expect_arrived(0, 2 + round, 8);
    scene.pair.reconnect();
    scene.post_receives(20, 7);
    scene.post_sends(20, 7, 16);
    scene.expect_sent(20, 7);
    scene.expect_arrived(20, 7, 16);
    scene.pair.reconnect();
  }
}

TEST_P(RcListOfProcesses, WhatIsTooMuchForTheStreamRingBehindThemReachesAReceiverThatSleeps) {
  constexpr std::uint64_t kLong = 100;
  Scene scene(GetParam());
  const RegionInfo to = scene.pair.b.allocate(GetParam().memory, kLong * 1_KiB);
  // They have met.
  scene.post_receives(0, 10);
  scene.post_sends(0, 2, 8);
  scene.expect_sent(0, 2);
  scene.expect_arrived(0, 2, 8);
  std::vector<Receive> receives;
  std::vector<Request> list;
  for (std::uint64_t i = 2; i < 10; ++i) list.push_back(scene.message(i, 8));
  for (std::uint64_t i = 0; i < kLong; ++i) {
    receives.push_back(receive(10 + i, slice(to, i * 1_KiB, 1_KiB)));
    list.push_back(send(10 + i, slice(scene.from, 0, 1_KiB)));
  }
  expect_posted(scene.pair.b.post_receive(scene.pair.qb, receives));
  scene.pair.b.fall_asleep();
  expect_posted(scene.pair.a.post_send(scene.pair.qa, list));
  scene.expect_sent(2, 8 + kLong);
  scene.pair.b.wake_up();
  scene.expect_arrived(2, 8, 8);
  const auto got = scene.pair.b.poll_receives(scene.pair.qb, kLong);
  for (std::uint64_t i = 0; i < kLong; ++i) {
    expect_receive(got[i], 10 + i, 1_KiB, scene.pair.qb);
    EXPECT_EQ(scene.pair.b.mismatch(to, i * 1_KiB, 1_KiB, 7), -1);
  }
}

/// A slot that others were packed before, lap after lap, keeps what it said of old; laps are
/// compared by 16 bits. By the slot at which the packs begin.
class RcListLaps : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(From, RcListLaps, ::testing::Values(0u, 5u));

TEST_P(RcListLaps, SlotsThatWerePassedOverForAnAgeSayNothing) {
  constexpr std::uint32_t kDepth = 8, kLaps = 1u << 16;
  Pair pair(Setting{Placement::kOneContext, MemoryKind::kMapped}, of_depth(kDepth));
  const RegionInfo from = pair.a.allocate(MemoryKind::kMapped, 64);
  const RegionInfo to = pair.b.allocate(MemoryKind::kMapped, 64);
  ibv_qp* const sender = pair.a.here().qp(pair.qa.id);
  ibv_qp* const receiver = pair.b.here().qp(pair.qb.id);
  ibv_sge out{from.address, 8, from.lkey}, in{to.address, 64, to.lkey};
  ibv_send_wr sends[kDepth]{};
  ibv_recv_wr receives[kDepth]{};
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    sends[i].wr_id = receives[i].wr_id = i;
    sends[i].sg_list = &out;
    receives[i].sg_list = &in;
    sends[i].num_sge = receives[i].num_sge = 1;
    sends[i].opcode = IBV_WR_SEND;
    if (i + 1 < kDepth) {
      sends[i].next = &sends[i + 1];
      receives[i].next = &receives[i + 1];
    }
  }
  sends[kDepth - 1].send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send;
  ibv_recv_wr* bad_receive;
  ibv_wc wc[kDepth];
  const auto poll = [&](ibv_cq* cq, int count) {
    int got = 0;
    ASSERT_TRUE(wait_until([&] {
      const int n = ibv_poll_cq(cq, count - got, wc + got);
      if (n > 0) got += n;
      return n < 0 || got == count;
    })) << got;
    ASSERT_EQ(got, count);
    for (int i = 0; i < count; ++i) ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
  };
  ASSERT_EQ(ibv_post_recv(receiver, receives, &bad_receive), 0);
  const auto alone = [&](std::uint32_t i) {
    ibv_send_wr one = sends[i];
    one.next = nullptr;
    one.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(ibv_post_send(sender, &one, &bad_send), 0);
    ASSERT_NO_FATAL_FAILURE(poll(sender->send_cq, 1));
    ASSERT_NO_FATAL_FAILURE(poll(receiver->recv_cq, 1));
    ibv_recv_wr again = receives[i];
    again.next = nullptr;
    ASSERT_EQ(ibv_post_recv(receiver, &again, &bad_receive), 0);
  };
  // In the first laps each slot is written.
  for (std::uint32_t i = 0; i < kDepth + GetParam(); ++i)
    ASSERT_NO_FATAL_FAILURE(alone(i % kDepth));
  for (std::uint32_t lap = 1; lap < kLaps; ++lap) {
    ASSERT_EQ(ibv_post_send(sender, sends, &bad_send), 0);
    ASSERT_NO_FATAL_FAILURE(poll(sender->send_cq, 1));
    ASSERT_NO_FATAL_FAILURE(poll(receiver->recv_cq, kDepth));
    ASSERT_EQ(ibv_post_recv(receiver, receives, &bad_receive), 0);
  }
  // The first laps' numbers again.
  for (std::uint32_t i = 0; i < 2 * kDepth; ++i) {
    ASSERT_NO_FATAL_FAILURE(alone(i % kDepth));
    ASSERT_EQ(ibv_poll_cq(receiver->recv_cq, 1, wc), 0) << "a message that nobody sent";
  }
}

}  // namespace
}  // namespace verbatim::harness
