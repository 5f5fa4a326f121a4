// SPDX-License-Identifier: BSD-2-Clause
//
// A cursor that finds small messages of one queue pair, many at a time, keeps of each what differs
// alone. Whoever asks cannot tell: each is read, left, forgotten as if it had come by itself.
#include <arpa/inet.h>

#include <vector>

#include "tests/shm/cq_extended.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kStride = 64;
constexpr std::uint64_t kPlaces = 64;

struct Message {
  std::uint64_t bytes;
  std::uint32_t imm = 0;  ///< not 0: it is sent with it
};

/// Messages come from `b` to `a`, whose queue is looked at through a cursor.
class CqBatch : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    scene.pair.b.fill(from, 0, kPlaces * kStride, 7);
    // Until the queue looks at the ring itself, and found several the last time.
    for (int i = 0; i < 8; ++i) {
      deliver(std::vector<Message>(8, {8}));
      expect_read(8);
      ibv_end_poll(cq);
    }
  }

  void post_receives(std::uint64_t count, const RegionInfo& region) {
    std::vector<Receive> receives;
    for (std::uint64_t i = posted; i < posted + count; ++i)
      receives.push_back(receive(i, slice(region, i % kPlaces * kStride, kStride)));
    posted += count;
    expect_posted(scene.pair.a.post_receive(scene.qa, receives));
  }
  void post_sends(const std::vector<Message>& messages) {
    std::vector<Request> requests;
    for (const Message& message : messages) {
      Request each = send(sent.size(), slice(from, sent.size() % kPlaces * kStride, message.bytes));
      requests.push_back(message.imm != 0 ? each.with_imm(message.imm) : each);
      sent.push_back(message);
    }
    expect_posted(scene.pair.b.post_send(scene.qb, requests));
  }
  /// They have come when it returns.
  void send_all(const std::vector<Message>& messages) {
    post_sends(messages);
    for (const ibv_wc& wc :
         scene.pair.b.poll_sends(scene.qb, static_cast<std::uint32_t>(messages.size())))
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  void deliver(const std::vector<Message>& messages) {
    post_receives(messages.size(), to);
    send_all(messages);
  }

  void expect_bytes(std::uint64_t i, const RegionInfo& region) {
    EXPECT_EQ(scene.pair.a.peek(region, i % kPlaces * kStride, sent[i].bytes),
              scene.pair.b.peek(from, i % kPlaces * kStride, sent[i].bytes));
  }
  /// What the cursor stands on is message number `i`.
  void expect_seen(std::uint64_t i) {
    SCOPED_TRACE(::testing::Message() << "message " << i << " of " << sent[i].bytes << " bytes");
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(cq->wr_id, i);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0u);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), sent[i].bytes);
    EXPECT_EQ(ibv_wc_read_wc_flags(cq), sent[i].imm != 0 ? unsigned{IBV_WC_WITH_IMM} : 0u);
    EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq)), sent[i].imm);
    EXPECT_EQ(ibv_wc_read_qp_num(cq), scene.qa.qpn);
    EXPECT_EQ(ibv_wc_read_src_qp(cq), scene.qb.qpn);
    EXPECT_EQ(ibv_wc_read_slid(cq), 0u);
    EXPECT_EQ(ibv_wc_read_sl(cq), 0u);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0u);
  }
  /// The next `count` messages, in one walk that goes on.
  void expect_read(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++read) {
      ASSERT_EQ(i == 0 ? start(cq) : ibv_next_poll(cq), 0);
      expect_seen(read);
      expect_bytes(read, to);
    }
  }

  ExtendedPair scene{GetParam()};
  ibv_cq_ex* const cq = scene.receives;
  const RegionInfo from = scene.pair.b.allocate(GetParam().memory, kPlaces* kStride);
  const RegionInfo to = scene.pair.a.allocate(GetParam().memory, kPlaces* kStride);
  std::vector<Message> sent;
  std::uint64_t posted = 0;
  std::uint64_t read = 0;
};
RUN_OVER_SETTINGS(CqBatch, each_way());

TEST_P(CqBatch, IsReadAsEachMessageWouldBeAlone) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<Message> messages;
    for (std::uint64_t i = 0; i < 40; ++i)
      messages.push_back({i % 13 < 9 ? 8 : (i * 7 + round) % (kStride + 1)});
    deliver(messages);
    expect_read(messages.size());
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
  }
}

TEST_P(CqBatch, EndsBeforeAMessageThatSaysMore) {
  for (std::uint32_t at = 1; at < 12; ++at) {
    std::vector<Message> messages(12, {8});
    messages[at].imm = 0xab00 + at;
    deliver(messages);
    expect_read(messages.size());
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
  }
}

TEST_P(CqBatch, OfReceivesInSeveralRegionsPutsEachWhereItBelongs) {
  const RegionInfo other = scene.pair.a.allocate(GetParam().memory, kPlaces * kStride);
  for (std::uint64_t round = 0; round < 8; ++round) {
    const std::uint64_t first = posted;
    for (std::uint64_t i = 0; i < 5; ++i) post_receives(1 + (i + round) % 5, i % 2 ? to : other);
    send_all(std::vector<Message>(15, {8}));
    ASSERT_EQ(start(cq), 0);
    std::uint64_t i = first;
    for (std::uint64_t part = 0; part < 5; ++part) {
      for (std::uint64_t in_part = 0; in_part < 1 + (part + round) % 5; ++in_part, ++i) {
        expect_seen(i);
        expect_bytes(i, part % 2 ? to : other);
        EXPECT_EQ(ibv_next_poll(cq), i + 1 == posted ? ENOENT : 0);
      }
    }
    ibv_end_poll(cq);
  }
}

TEST_P(CqBatch, EndsBeforeAReceiveWhoseRegionIsGone) {
  const RegionInfo again = scene.pair.a.register_part(to, 0, to.size);
  post_receives(2, to);
  post_receives(1, again);
  post_receives(1, to);
  ASSERT_EQ(scene.pair.a.deregister(again), 0);
  post_sends(std::vector<Message>(4, {8}));
  expect_read(2);
  ASSERT_TRUE(wait_until([&] { return ibv_next_poll(cq) == 0; }));
  EXPECT_EQ(cq->status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(cq->wr_id, read);
  ASSERT_TRUE(wait_until([&] { return ibv_next_poll(cq) == 0; }));
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  ibv_end_poll(cq);
}

TEST_P(CqBatch, GivesTheClassicPollWhatWasLeft) {
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < 20; ++i) messages.push_back({8 + i / 8});
  deliver(messages);
  expect_read(5);
  ibv_end_poll(cq);
  const auto rest = scene.pair.a.poll_receives(scene.qa, 15);
  for (std::uint64_t i = 0; i < 15; ++i)
    expect_receive(rest[i], read + i, sent[read + i].bytes, scene.qa);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
}

TEST_P(CqBatch, GivesTheNextWalkWhatWasLeft) {
  deliver(std::vector<Message>(20, {8}));
  for (const std::uint64_t some : {1, 7, 12}) {
    expect_read(some);
    ibv_end_poll(cq);
  }
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
}

TEST_P(CqBatch, OfAQueuePairThatIsResetIsForgotten) {
  deliver(std::vector<Message>(20, {8}));
  expect_read(5);
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_RESET), 0);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 0);
}

TEST_P(CqBatch, IsFollowedByAFailureThatIsToldAsOne) {
  deliver(std::vector<Message>(20, {8}));
  post_receives(2, to);
  expect_read(20);
  ASSERT_EQ(scene.pair.a.to_state(scene.qa, IBV_QPS_ERR), 0);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(wait_until([&] { return ibv_next_poll(cq) == 0; }));
    EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(cq->wr_id, read + i);
  }
  ibv_end_poll(cq);
}

}  // namespace
}  // namespace verbatim::harness
