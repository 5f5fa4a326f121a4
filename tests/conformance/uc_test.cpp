// SPDX-License-Identifier: BSD-2-Clause
//
// Unreliable connections (IBTA 9.8.2): what arrives is whole and in order; what cannot be taken is
// dropped without a word to the sender, whose request has succeeded when it has left.
#include <cerrno>

#include "tests/support/quirks.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

struct Connection {
  Pair pair;
  RegionInfo from, to;
  explicit Connection(const Setting& setting)
      : pair(setting, wish()),
        from(pair.a.allocate(setting.memory, 128_KiB)),
        to(pair.b.allocate(setting.memory, 128_KiB)) {}
  static PairWish wish() {
    PairWish wish;
    wish.a.type = wish.b.type = IBV_QPT_UC;
    return wish;
  }
  void post(std::uint64_t id, std::uint64_t size) {
    expect_posted(pair.b.post_receive(pair.qb, receive(id, slice(to, 0, size))));
  }
  void send_one(std::uint64_t id, std::uint64_t size) {
    expect_posted(pair.a.post_send(pair.qa, send(id, slice(from, 0, size))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], id, IBV_WC_SEND, pair.qa);
  }
  ibv_wc next() { return pair.b.poll_receives(pair.qb, 1)[0]; }
};

class Uc : public BetweenTwo {};
RUN_OVER_SETTINGS(Uc, on_every_device(each_way()));

TEST_P(Uc, CarriesMessagesOfEverySizeWhole) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  std::uint32_t seed = 0;
  for (const std::uint64_t size : {0u, 1u, 8u, 56u, 57u, 220u, 4096u, 4097u, 100'000u}) {
    SCOPED_TRACE(size);
    uc.pair.a.fill(uc.from, 0, size, ++seed);
    uc.post(seed, 128_KiB);
    uc.send_one(seed, size);
    expect_receive(uc.next(), seed, size, uc.pair.qb);
    EXPECT_EQ(uc.pair.b.mismatch(uc.to, 0, size, seed), -1);
  }
}

TEST_P(Uc, KeepsTheOrderOfMessages) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  std::vector<Receive> receives;
  for (std::uint64_t i = 0; i < 64; ++i) {
    receives.push_back(receive(i, slice(uc.to, i * 64, 64)));
  }
  expect_posted(uc.pair.b.post_receive(uc.pair.qb, receives));
  for (std::uint64_t i = 0; i < 64; ++i) uc.send_one(i, 1 + i % 60);
  const auto got = uc.pair.b.poll_receives(uc.pair.qb, 64);
  for (std::uint64_t i = 0; i < 64; ++i) expect_receive(got[i], i, 1 + i % 60, uc.pair.qb);
}

TEST_P(Uc, CarriesImmediateData) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.post(1, 64);
  expect_posted(uc.pair.a.post_send(uc.pair.qa, send(2, slice(uc.from, 0, 8)).with_imm(0xABCD)));
  expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 2, IBV_WC_SEND, uc.pair.qa);
  const ibv_wc wc = uc.next();
  expect_wc(wc, 1, IBV_WC_RECV, uc.pair.qb);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ntohl(wc.imm_data), 0xABCDu);
}

TEST_P(Uc, TakesInlineDataBeforeThePostReturns) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.pair.a.fill(uc.from, 0, 32, 5);
  uc.post(1, 64);
  expect_posted(
      uc.pair.a.post_send(uc.pair.qa, send(2, slice(uc.from, 0, 32)).with(IBV_SEND_INLINE)));
  uc.pair.a.set(uc.from, 0, 32, 0);
  expect_receive(uc.next(), 1, 32, uc.pair.qb);
  EXPECT_EQ(uc.pair.b.mismatch(uc.to, 0, 32, 5), -1);
}

TEST_P(Uc, WritesRemoteMemory) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  for (const std::uint64_t size : {8u, 300u, 50'000u}) {
    uc.pair.a.fill(uc.from, 0, size, 9);
    uc.pair.b.set(uc.to, 0, size, 0);
    expect_posted(uc.pair.a.post_send(uc.pair.qa, write(1, slice(uc.from, 0, size), uc.to)));
    expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, uc.pair.qa);
    EXPECT_TRUE(wait_until([&] { return uc.pair.b.mismatch(uc.to, 0, size, 9) == -1; }));
  }
}

TEST_P(Uc, AWriteWithImmediateTakesAReceive) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.pair.a.fill(uc.from, 0, 100, 4);
  expect_posted(uc.pair.b.post_receive(uc.pair.qb, receive(6)));
  expect_posted(
      uc.pair.a.post_send(uc.pair.qa, write(1, slice(uc.from, 0, 100), uc.to).with_imm(11)));
  expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, uc.pair.qa);
  const ibv_wc wc = uc.next();
  expect_wc(wc, 6, IBV_WC_RECV_RDMA_WITH_IMM, uc.pair.qb);
  EXPECT_EQ(ntohl(wc.imm_data), 11u);
  EXPECT_EQ(uc.pair.b.mismatch(uc.to, 0, 100, 4), -1);
}

TEST_P(Uc, AWriteIsThereWhenTheFollowingSendArrives) {
  // IBTA 9.5, 10.8.3.3: as with reliable connections.
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  std::uint32_t round = 0;
  for (const std::uint64_t size : {8, 60, 4000, 70'000}) {
    for (int repeat = 0; repeat < 3; ++repeat, ++round) {
      SCOPED_TRACE(size);
      uc.pair.a.fill(uc.from, 0, size, round);
      expect_posted(uc.pair.b.post_receive(uc.pair.qb, receive(round)));
      expect_posted(uc.pair.a.post_send(
          uc.pair.qa, {write(1, slice(uc.from, 0, size), uc.to).unsignaled(), send(2, {})}));
      expect_receive(uc.next(), round, 0, uc.pair.qb);
      EXPECT_EQ(uc.pair.b.mismatch(uc.to, 0, size, round), -1);
      expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 2, IBV_WC_SEND, uc.pair.qa);
    }
  }
}

TEST_P(Uc, DropsAMessageThatFindsNoReceive) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.send_one(1, 8);  // dropped, and a success all the same
  uc.post(2, 64);
  uc.send_one(3, 24);
  expect_receive(uc.next(), 2, 24, uc.pair.qb);
  EXPECT_TRUE(uc.pair.b.poll_once(uc.pair.qb.receive_cq, 1).empty());
  EXPECT_EQ(uc.pair.a.state(uc.pair.qa), IBV_QPS_RTS);
}

TEST_P(Uc, SucceedsWhateverBecameOfThePeer) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  ASSERT_EQ(uc.pair.b.to_state(uc.pair.qb, IBV_QPS_ERR), 0);
  uc.send_one(1, 8);
  ASSERT_EQ(uc.pair.b.call<&Endpoint::destroy_qp>(uc.pair.qb.id), 0);
  uc.send_one(2, 8);
  expect_posted(uc.pair.a.post_send(uc.pair.qa, write(3, slice(uc.from, 0, 8), uc.to)));
  expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 3, IBV_WC_RDMA_WRITE, uc.pair.qa);
  EXPECT_EQ(uc.pair.a.state(uc.pair.qa), IBV_QPS_RTS);
}

TEST_P(Uc, DropsAWriteThatMayNotBe) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  RegionInfo wrong = uc.to;
  wrong.rkey ^= 0x80000000u;
  expect_posted(uc.pair.a.post_send(uc.pair.qa, write(1, slice(uc.from, 0, 8), wrong)));
  expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, uc.pair.qa);
  expect_untouched(uc.pair.b, uc.to, 0, 64, 0);
  // IBTA 9.9.3.1: dropped, or the responder's error state with its event.
  const ibv_qp_state then = uc.pair.b.state(uc.pair.qb);
  EXPECT_TRUE(then == IBV_QPS_RTS || then == IBV_QPS_ERR) << then;
  EXPECT_EQ(uc.pair.a.state(uc.pair.qa), IBV_QPS_RTS);
  const int told = uc.pair.b.take_async_event(0).type;
  EXPECT_TRUE(told == -1 || told == IBV_EVENT_QP_ACCESS_ERR || told == IBV_EVENT_QP_REQ_ERR);
}

TEST_P(Uc, NeverWritesBeyondAReceiveThatIsTooShort) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.pair.a.fill(uc.from, 0, 128, 3);
  uc.post(1, 64);
  uc.send_one(2, 65);
  // IBTA 9.9.3.1: the receive ends in LOC_LEN_ERR, or the message is dropped and the next one takes
  // its place.
  uc.send_one(3, 16);
  const ibv_wc wc = uc.next();
  if (wc.status != IBV_WC_SUCCESS) expect_error(wc, 1, IBV_WC_LOC_LEN_ERR, uc.pair.qb);
  if (wc.status == IBV_WC_SUCCESS) {
    EXPECT_EQ(wc.byte_len, 16u);
  }
  expect_untouched(uc.pair.b, uc.to, 64, 64, 0);
}

TEST_P(Uc, RefusesWhatNeedsAnAnswer) {
  // IBTA table 46: no READ, no atomic.
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  const Slice eight = slice(uc.from, 0, 8);
  for (const Request& request : {read(1, eight, uc.to), fetch_add(1, eight, uc.to, 0, 1),
                                 compare_swap(1, eight, uc.to, 0, 0, 1)}) {
    const Posted posted = uc.pair.a.post_send(uc.pair.qa, request);
    EXPECT_EQ(posted.error, EINVAL) << request.opcode;
    EXPECT_EQ(posted.bad, 0);
  }
  uc.post(1, 64);
  uc.send_one(2, 8);
  expect_receive(uc.next(), 1, 8, uc.pair.qb);
}

TEST_P(Uc, ALocalErrorStopsItsSendQueueAlone) {
  // IBTA 10.3.1.6: SQE; the receive queue goes on, and RTS is reached again.
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  Slice wrong = slice(uc.from, 0, 8);
  wrong.lkey = uc.from.lkey ^ 0x80000000u;
  expect_posted(uc.pair.a.post_send(uc.pair.qa, {send(1, wrong), send(2, slice(uc.from, 0, 8))}));
  const auto sent = uc.pair.a.poll_sends(uc.pair.qa, 2);
  expect_error(sent[0], 1, IBV_WC_LOC_PROT_ERR, uc.pair.qa);
  expect_error(sent[1], 2, IBV_WC_WR_FLUSH_ERR, uc.pair.qa);
  const ibv_qp_state then = uc.pair.a.state(uc.pair.qa);
  if (then == IBV_QPS_ERR) SKIP_IF(quirk_of(uc.pair.qa.vendor, kNoSendQueueError));
  ASSERT_EQ(then, IBV_QPS_SQE);
  const RegionInfo at_a = uc.pair.a.allocate(memory(), 64);
  expect_posted(uc.pair.a.post_receive(uc.pair.qa, receive(3, slice(at_a, 0, 64))));
  const RegionInfo at_b = uc.pair.b.allocate(memory(), 64);
  expect_posted(uc.pair.b.post_send(uc.pair.qb, send(4, slice(at_b, 0, 8))));
  expect_receive(uc.pair.a.poll_receives(uc.pair.qa, 1)[0], 3, 8, uc.pair.qa);
  ASSERT_EQ(uc.pair.a.to_state(uc.pair.qa, IBV_QPS_RTS), 0);
  uc.post(5, 64);
  uc.send_one(6, 8);
  expect_receive(uc.next(), 5, 8, uc.pair.qb);
}

TEST_P(Uc, TheErrorStateFlushesBothQueues) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  uc.post(1, 64);
  uc.post(2, 64);
  ASSERT_EQ(uc.pair.b.to_state(uc.pair.qb, IBV_QPS_ERR), 0);
  const auto got = uc.pair.b.poll_receives(uc.pair.qb, 2);
  expect_error(got[0], 1, IBV_WC_WR_FLUSH_ERR, uc.pair.qb);
  expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, uc.pair.qb);
  expect_posted(uc.pair.b.post_send(uc.pair.qb, send(3, {})));
  expect_error(uc.pair.b.poll_sends(uc.pair.qb, 1)[0], 3, IBV_WC_WR_FLUSH_ERR, uc.pair.qb);
}

TEST_P(Uc, ConnectsAgainAfterReset) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Connection uc(GetParam());
  for (std::uint64_t round = 0; round < 5; ++round) {
    uc.post(round, 64);
    uc.send_one(round, 8);
    expect_receive(uc.next(), round, 8, uc.pair.qb);
    uc.post(99, 64);
    uc.pair.reconnect();
    EXPECT_TRUE(uc.pair.b.poll_once(uc.pair.qb.receive_cq, 1).empty());
  }
}

}  // namespace
}  // namespace verbatim::harness
