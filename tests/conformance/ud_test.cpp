// SPDX-License-Identifier: BSD-2-Clause
//
// Datagrams (IBTA 9.8.3, 10.2.5, 11.4.1; man ibv_post_send, ibv_poll_cq, ibv_create_ah,
// ibv_create_ah_from_wc): 40 bytes of routing header before the data, Q_Keys, address handles.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/conformance/ud_post.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

class Ud : public BetweenTwo {
 protected:
  /// The payload of the largest datagram.
  std::uint64_t mtu() const {
    const Session asked(device());
    return std::uint64_t{128} << asked.port.active_mtu;
  }
};
RUN_OVER_SETTINGS(Ud, on_every_device(each_way()));

TEST_P(Ud, ArrivesBehindFortyBytesOfRoutingHeader) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  std::uint32_t seed = 0;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8},
                                   std::uint64_t{57}, std::uint64_t{200}, mtu() - 1, mtu()}) {
    SCOPED_TRACE(size);
    ud.pair.a.fill(ud.from, 0, size, ++seed);
    ud.pair.b.set(ud.to, 0, kGrh + size + 8, 0x5A);
    ud.post(seed);
    ud.send_one(ud.letter(seed, size));
    const ibv_wc wc = ud.next();
    expect_wc(wc, seed, IBV_WC_RECV, ud.pair.qb);
    EXPECT_EQ(wc.byte_len, kGrh + size);
    EXPECT_EQ(ud.pair.b.mismatch(ud.to, kGrh, size, seed), -1);
    expect_untouched(ud.pair.b, ud.to, kGrh + size, 8, 0x5A);
  }
}

TEST_P(Ud, TellsASleeperOfEachSendersFirstDatagrams) {
  // IBTA 11.4.2.2, whoever sent before: a sender may leave, and another one come in its place.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  PairWish wish = Post::wish({});
  wish.b.with_channel = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 256);
  const std::int32_t ah = pair.a.call<&Endpoint::create_ah>(pair.qb, 0);
  const auto arm = [&] { ASSERT_EQ(pair.b.call<&Endpoint::arm>(pair.qb.receive_cq, 0), 0); };
  std::uint64_t number = 0;
  for (int senders = 0; senders < 8; ++senders) {
    const auto [sender, other] = pair.add_qps(wish.a, wish.b);
    arm();
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE(++number);
      expect_posted(pair.b.post_receive(pair.qb, receive(number, slice(to, 0, 256))));
      expect_posted(
          pair.a.post_send(sender, datagram(number, slice(from, 0, 8), ah, pair.qb.qpn, kQkey)));
      ASSERT_EQ(pair.b.call<&Endpoint::take_event>(pair.qb.receive_cq, kDefaultWaitMs),
                pair.qb.receive_cq);
      arm();
      expect_wc(pair.b.poll_receives(pair.qb, 1)[0], number, IBV_WC_RECV, pair.qb);
    }
    ASSERT_EQ(pair.a.call<&Endpoint::destroy_qp>(sender.id), 0);
    ASSERT_EQ(pair.b.call<&Endpoint::destroy_qp>(other.id), 0);
  }
}

TEST_P(Ud, TellsWhoSentIt) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.send_one(ud.letter(2, 8));
  const ibv_wc wc = ud.next();
  EXPECT_EQ(wc.src_qp, ud.pair.qa.qpn);
  EXPECT_EQ(wc.slid, ud.pair.qa.lid);
  EXPECT_EQ(wc.sl, 0);
  EXPECT_EQ(wc.pkey_index, 0) << "the queue pair's partition is the first of the port";
}

TEST_P(Ud, SaysWhetherARoutingHeaderCame) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  const std::int32_t global = ud.pair.a.call<&Endpoint::create_ah>(ud.pair.qb, 1);
  ud.post(1);
  Request request = ud.letter(2, 8);
  request.ah = global;
  ud.send_one(request);
  const ibv_wc wc = ud.next();
  EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0);
  const auto header = ud.pair.b.peek(ud.to, 0, kGrh);
  if (is_mapped_ipv4(ud.pair.qa.gid)) {
    // Annex A17: the header of IPv4, which ends where the GRH does.
    EXPECT_EQ(header[20] >> 4, 4);
    EXPECT_TRUE(std::equal(header.begin() + 32, header.begin() + 36, ud.pair.qa.gid.raw + 12));
    EXPECT_TRUE(std::equal(header.begin() + 36, header.end(), ud.pair.qb.gid.raw + 12));
    return;
  }
  // IBTA 8.3: IP version 6, then both addresses.
  EXPECT_EQ(header[0] >> 4, 6);
  EXPECT_TRUE(std::equal(header.begin() + 8, header.begin() + 24, ud.pair.qa.gid.raw));
  EXPECT_TRUE(std::equal(header.begin() + 24, header.end(), ud.pair.qb.gid.raw));
  const Session asked(device());
  if (asked.port.link_layer != IBV_LINK_LAYER_INFINIBAND) return;
  ud.post(3);
  ud.send_one(ud.letter(4, 8));
  EXPECT_EQ(ud.next().wc_flags & IBV_WC_GRH, 0);
}

TEST_P(Ud, CarriesImmediateData) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.send_one(ud.letter(2, 8).with_imm(0x12345678));
  const ibv_wc wc = ud.next();
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ntohl(wc.imm_data), 0x12345678u);
  EXPECT_EQ(wc.byte_len, kGrh + 8);
}

TEST_P(Ud, TakesInlineDataBeforeThePostReturns) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.pair.a.fill(ud.from, 0, 50, 6);
  ud.post(1);
  expect_posted(ud.pair.a.post_send(ud.pair.qa, ud.letter(2, 50).with(IBV_SEND_INLINE)));
  ud.pair.a.set(ud.from, 0, 50, 0);
  EXPECT_EQ(ud.next().byte_len, kGrh + 50);
  EXPECT_EQ(ud.pair.b.mismatch(ud.to, kGrh, 50, 6), -1);
}

TEST_P(Ud, GathersAndScattersWithTheHeaderInAPieceOfItsOwn) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.pair.a.fill(ud.from, 0, 100, 8);
  const SliceList pieces{slice(ud.to, 4096, kGrh), slice(ud.to, 0, 30), slice(ud.to, 30, 100)};
  expect_posted(ud.pair.b.post_receive(ud.pair.qb, receive(1, pieces)));
  Request request = ud.letter(2, 0);
  request.from = SliceList{slice(ud.from, 0, 10), slice(ud.from, 10, 0), slice(ud.from, 10, 90)};
  ud.send_one(request);
  EXPECT_EQ(ud.next().byte_len, kGrh + 100);
  EXPECT_EQ(ud.pair.b.mismatch(ud.to, 0, 100, 8), -1);
}

TEST_P(Ud, OfAnotherQkeyIsDropped) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.send_one(ud.letter(2, 8, kQkey ^ 1));
  ud.expect_only(1);
}

TEST_P(Ud, WithTheHighestBitInItsQkeyUsesThatOfTheSender) {
  // IBTA 10.2.5: "the Q_Key in the QP context is used".
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.send_one(ud.letter(2, 8, 0x80000000u | 77));
  EXPECT_EQ(ud.next().byte_len, kGrh + 8);
}

TEST_P(Ud, FollowsAChangedQkey) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ibv_qp_attr attr{};
  attr.qkey = 0x42;
  ASSERT_EQ(ud.pair.b.call<&Endpoint::modify_qp>(ud.pair.qb.id, attr, int{IBV_QP_QKEY}), 0);
  EXPECT_EQ(ud.pair.b.call<&Endpoint::query_qp>(ud.pair.qb.id).qkey, 0x42u);
  ud.post(1);
  ud.send_one(ud.letter(2, 8));  // the old one
  ud.send_one(ud.letter(3, 9, 0x42));
  EXPECT_EQ(ud.next().byte_len, kGrh + 9);
}

TEST_P(Ud, ThatFindsNoReceiveIsDropped) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.send_one(ud.letter(1, 8));
  ud.post(2);
  ud.expect_only(2);
}

TEST_P(Ud, ToANumberThatNobodyHasIsASuccess) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  Request request = ud.letter(1, 8);
  request.remote_qpn = ud.pair.qb.qpn ^ 0x400;
  ud.send_one(request);
  EXPECT_EQ(ud.pair.a.state(ud.pair.qa), IBV_QPS_RTS);
}

TEST_P(Ud, ToOneInErrorOrDestroyedIsASuccess) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ASSERT_EQ(ud.pair.b.to_state(ud.pair.qb, IBV_QPS_ERR), 0);
  ud.send_one(ud.letter(1, 8));
  ASSERT_EQ(ud.pair.b.call<&Endpoint::destroy_qp>(ud.pair.qb.id), 0);
  ud.send_one(ud.letter(2, 8));
}

TEST_P(Ud, LongerThanTheMtuIsRefused) {
  // IBTA 9.8.3.1: a datagram is one packet. At the post, or by a completion in error; nothing
  // arrives.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  const Posted posted = ud.pair.a.post_send(ud.pair.qa, ud.letter(2, mtu() + 1));
  if (posted.error != 0) {
    EXPECT_TRUE(posted.error == EINVAL || posted.error == EMSGSIZE) << posted.error;
    EXPECT_EQ(posted.bad, 0);
    ud.expect_only(1);
  } else {
    EXPECT_EQ(ud.pair.a.poll_sends(ud.pair.qa, 1)[0].status, IBV_WC_LOC_LEN_ERR);
    EXPECT_TRUE(ud.pair.b.poll_once(ud.pair.qb.receive_cq, 1).empty());
  }
}

TEST_P(Ud, NeverWritesBeyondAReceiveThatIsTooShort) {
  // IBTA 9.8.3.2.4 drops it; some devices end the receive in LOC_LEN_ERR.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1, kGrh + 32);
  ud.send_one(ud.letter(2, 33));
  ud.send_one(ud.letter(3, 13));
  const ibv_wc wc = ud.next();
  if (wc.status != IBV_WC_SUCCESS) expect_error(wc, 1, IBV_WC_LOC_LEN_ERR, ud.pair.qb);
  if (wc.status == IBV_WC_SUCCESS) {
    EXPECT_EQ(wc.byte_len, kGrh + 13);
  }
  expect_untouched(ud.pair.b, ud.to, kGrh + 32, 64, 0);
}

TEST_P(Ud, RefusesWhatIsNotASend) {
  // IBTA table 46.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_RDMA_WRITE_WITH_IMM}) {
    Request request = ud.letter(1, 8);
    request.opcode = opcode;
    const Posted posted = ud.pair.a.post_send(ud.pair.qa, request);
    EXPECT_EQ(posted.error, EINVAL) << opcode;
    EXPECT_EQ(posted.bad, 0);
  }
  ud.post(1);
  ud.expect_only(1);
}

TEST_P(Ud, WithoutAnAddressHandleIsRefused) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  Request request = ud.letter(1, 8);
  request.ah = -1;
  EXPECT_EQ(ud.pair.a.post_send(ud.pair.qa, request).error, EINVAL);
}

TEST_P(Ud, IsAnsweredByTheAddressThatItsCompletionTells) {
  // man ibv_create_ah_from_wc.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.send_one(ud.letter(2, 8));
  const ibv_wc wc = ud.next();
  const std::int32_t back =
      ud.pair.b.call<&Endpoint::create_ah_from_wc>(wc, ud.to.id, std::uint64_t{0});
  const RegionInfo at_a = ud.pair.a.allocate(memory(), 256);
  expect_posted(ud.pair.a.post_receive(ud.pair.qa, receive(3, slice(at_a, 0, 256))));
  expect_posted(
      ud.pair.b.post_send(ud.pair.qb, datagram(4, slice(ud.to, 0, 21), back, wc.src_qp, kQkey)));
  const ibv_wc answer = ud.pair.a.poll_receives(ud.pair.qa, 1)[0];
  EXPECT_EQ(answer.byte_len, kGrh + 21);
  EXPECT_EQ(answer.src_qp, ud.pair.qb.qpn);
}

TEST_P(Ud, OfManySendersAreToldApart) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  std::vector<QpInfo> senders{ud.pair.qa};
  QpWish wish;
  wish.type = IBV_QPT_UD;
  for (int i = 0; i < 3; ++i) {
    senders.push_back(ud.pair.a.create_qp(wish));
    ud.pair.a.connect(senders.back(), ud.pair.qb);
  }
  for (std::uint64_t i = 0; i < 32; ++i) ud.post(i, 128, i * 128);
  for (std::uint64_t i = 0; i < 32; ++i) {
    const QpInfo& by = senders[i % senders.size()];
    expect_posted(ud.pair.a.post_send(by, ud.letter(i, i + 1)));
    ud.pair.a.poll_sends(by, 1);
  }
  std::vector<std::uint64_t> last(senders.size());
  for (const ibv_wc& wc : ud.pair.b.poll_receives(ud.pair.qb, 32)) {
    const std::uint64_t i = wc.byte_len - kGrh - 1;
    ASSERT_LT(i, 32u);
    EXPECT_EQ(wc.src_qp, senders[i % senders.size()].qpn);
    EXPECT_GE(i + 1, last[i % senders.size()]);
    last[i % senders.size()] = i + 1;
  }
}

TEST_P(Ud, SendsToItself) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  const std::int32_t self = ud.pair.a.call<&Endpoint::create_ah>(ud.pair.qa, 0);
  expect_posted(ud.pair.a.post_receive(ud.pair.qa, receive(1, slice(ud.from, 4096, 128))));
  expect_posted(ud.pair.a.post_send(
      ud.pair.qa, datagram(2, slice(ud.from, 0, 8), self, ud.pair.qa.qpn, kQkey)));
  EXPECT_EQ(ud.pair.a.poll_receives(ud.pair.qa, 1)[0].src_qp, ud.pair.qa.qpn);
}

TEST_P(Ud, ALocalErrorStopsItsSendQueueAlone) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  Request wrong = ud.letter(1, 8);
  wrong.from.at[0].lkey = ud.from.lkey ^ 0x80000000u;
  expect_posted(ud.pair.a.post_send(ud.pair.qa, {wrong, ud.letter(2, 8)}));
  const auto sent = ud.pair.a.poll_sends(ud.pair.qa, 2);
  expect_error(sent[0], 1, IBV_WC_LOC_PROT_ERR, ud.pair.qa);
  expect_error(sent[1], 2, IBV_WC_WR_FLUSH_ERR, ud.pair.qa);
  const ibv_qp_state then = ud.pair.a.state(ud.pair.qa);
  if (then == IBV_QPS_ERR) SKIP_IF(quirk_of(ud.pair.qa.vendor, kNoSendQueueError));
  ASSERT_EQ(then, IBV_QPS_SQE);
  expect_posted(ud.pair.a.post_send(ud.pair.qa, ud.letter(3, 8)));
  expect_error(ud.pair.a.poll_sends(ud.pair.qa, 1)[0], 3, IBV_WC_WR_FLUSH_ERR, ud.pair.qa);
  ASSERT_EQ(ud.pair.a.to_state(ud.pair.qa, IBV_QPS_RTS), 0);
  ud.post(4);
  ud.expect_only(4);
}

TEST_P(Ud, TheErrorStateFlushesBothQueues) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ud.post(1);
  ud.post(2);
  ASSERT_EQ(ud.pair.b.to_state(ud.pair.qb, IBV_QPS_ERR), 0);
  const auto got = ud.pair.b.poll_receives(ud.pair.qb, 2);
  expect_error(got[0], 1, IBV_WC_WR_FLUSH_ERR, ud.pair.qb);
  expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, ud.pair.qb);
}

TEST_P(Ud, TheErrorStateFlushesInTheOrderOfThePosts) {
  // IBTA 10.3.1.7: what was there when it failed, and behind it what is posted later.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  constexpr std::uint64_t kEach = 10;
  Post ud(GetParam());
  std::vector<Receive> receives;
  std::vector<Request> sends;
  for (std::uint64_t i = 0; i < 2 * kEach; ++i) {
    receives.push_back(receive(100 + i, slice(ud.from, 8192, 64)));
    // Flushed ones complete whether signaled or not.
    sends.push_back(i % 2 == 0 ? ud.letter(i, 8) : ud.letter(i, 8).unsignaled());
  }
  const auto half = [](const auto& all, std::uint64_t which) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(which * kEach);
    return std::vector(begin, begin + kEach);
  };
  drain(ud.pair.a, ud.pair.qa);
  for (const std::uint64_t which : {0u, 1u}) {
    expect_posted(ud.pair.a.post_receive(ud.pair.qa, half(receives, which)));
    expect_posted(ud.pair.a.post_send(ud.pair.qa, half(sends, which)));
    ASSERT_EQ(ud.pair.a.to_state(ud.pair.qa, IBV_QPS_ERR), 0);
  }
  const auto sent = ud.pair.a.poll_sends(ud.pair.qa, 2 * kEach);
  const auto got = ud.pair.a.poll_receives(ud.pair.qa, 2 * kEach);
  for (std::uint64_t i = 0; i < 2 * kEach; ++i) {
    expect_error(sent[i], i, IBV_WC_WR_FLUSH_ERR, ud.pair.qa);
    expect_error(got[i], 100 + i, IBV_WC_WR_FLUSH_ERR, ud.pair.qa);
  }
}

TEST_P(Ud, ServesAgainAfterReset) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  for (std::uint64_t round = 0; round < 5; ++round) {
    ud.post(round);
    ud.expect_only(round);
    ud.post(99);
    ud.pair.reconnect();
    EXPECT_TRUE(ud.pair.b.poll_once(ud.pair.qb.receive_cq, 1).empty());
  }
}

TEST_P(Ud, ReceivesIntoASharedQueue) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  SKIP_IF(lacks_srq(device()));
  Post ud(GetParam());
  const SrqInfo srq = ud.pair.b.create_srq();
  QpWish wish;
  wish.type = IBV_QPT_UD;
  wish.srq = srq.id;
  const QpInfo qp = ud.pair.b.create_qp(wish);
  ud.pair.b.connect(qp, ud.pair.qa);
  expect_posted(ud.pair.b.post_srq_receive(srq, {receive(1, slice(ud.to, 0, 256))}));
  Request request = ud.letter(2, 30);
  request.remote_qpn = qp.qpn;
  ud.send_one(request);
  const ibv_wc wc = ud.pair.b.poll_receives(qp, 1)[0];
  EXPECT_EQ(wc.byte_len, kGrh + 30);
  EXPECT_EQ(wc.src_qp, ud.pair.qa.qpn);
}

class Ah : public OnDevice {
 protected:
  std::string lacks_ah() { return lacks_type(context(), IBV_QPT_UD); }
};
RUN_ON_EVERY_DEVICE(Ah);

TEST_P(Ah, IsMadeOfAPathAndKnowsItsDomain) {
  SKIP_IF(lacks_ah());
  ibv_ah* const made = ah_to_self();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->pd, pd());
  EXPECT_EQ(made->context, context());
}

TEST_P(Ah, OfABadPathIsRefused) {
  SKIP_IF(lacks_ah());
  expect_complaints();
  ibv_ah_attr path = path_to_self(session());
  path.port_num = 0;
  EXPECT_EQ(AhHandle(ibv_create_ah(pd(), &path)), nullptr);
  path.port_num = static_cast<std::uint8_t>(attr().phys_port_cnt + 1);
  EXPECT_EQ(AhHandle(ibv_create_ah(pd(), &path)), nullptr);
  path = path_to_self(session());
  path.is_global = 1;
  path.grh.sgid_index = 255;
  EXPECT_EQ(AhHandle(ibv_create_ah(pd(), &path)), nullptr);
}

// Linux, drivers/infiniband/core/verbs.c (rdma_check_ah_attr): of RoCE a path is a GID.
TEST_P(Ah, NeedsAGidWhereTheLinkIsEthernet) {
  SKIP_IF(lacks_ah());
  ibv_ah_attr path = path_to_self(session());
  path.is_global = 0;
  const bool ethernet = port().link_layer == IBV_LINK_LAYER_ETHERNET;
  if (ethernet) expect_complaints();
  errno = 0;
  const AhHandle made(ibv_create_ah(pd(), &path));
  EXPECT_EQ(made == nullptr, ethernet);
  if (ethernet) {
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(Ah, KeepsItsDomainAlive) {
  SKIP_IF(lacks_ah());
  ASSERT_NE(ah_to_self(), nullptr);
  expect_complaints();
  EXPECT_EQ(ibv_dealloc_pd(pd()), EBUSY);
}

TEST_P(Ah, AttributesAreDerivedFromACompletion) {
  // man ibv_init_ah_from_wc: without a routing header, the LID and the service level.
  ibv_wc wc{};
  wc.slid = 7;
  wc.sl = 3;
  wc.dlid_path_bits = 2;
  wc.src_qp = 99;
  ibv_ah_attr path{};
  if (port().link_layer == IBV_LINK_LAYER_ETHERNET) {
    // Nothing but addresses leads anywhere there.
    expect_complaints();
    EXPECT_NE(ibv_init_ah_from_wc(context(), 1, &wc, nullptr, &path), 0);
    return;
  }
  ASSERT_EQ(ibv_init_ah_from_wc(context(), 1, &wc, nullptr, &path), 0);
  EXPECT_EQ(path.dlid, 7);
  EXPECT_EQ(path.sl, 3);
  EXPECT_EQ(path.src_path_bits, 2);
  EXPECT_EQ(path.port_num, 1);
  EXPECT_EQ(path.is_global, 0);
}

TEST_P(Ah, AttributesAreDerivedFromAnIpv4Header) {
  // Annex A17: RoCE v2 between addresses of IPv4 has its header, which ends where the GRH does.
  const ibv_gid& own = session().gid;
  if (!is_mapped_ipv4(own)) GTEST_SKIP() << "the port's address is none of IPv4";
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  unsigned char bytes[sizeof(ibv_grh)] = {};
  unsigned char* const ipv4 = bytes + 20;
  ipv4[0] = 0x45;
  ipv4[1] = 0x15;
  ipv4[8] = 63;
  ipv4[9] = 17;
  constexpr unsigned char kSender[] = {10, 2, 0, 77};
  std::memcpy(ipv4 + 12, kSender, 4);
  std::memcpy(ipv4 + 16, own.raw + 12, 4);
  ibv_grh header;
  std::memcpy(&header, bytes, sizeof header);
  ibv_ah_attr path{};
  ASSERT_EQ(ibv_init_ah_from_wc(context(), 1, &wc, &header, &path), 0);
  EXPECT_EQ(path.is_global, 1);
  EXPECT_TRUE(is_mapped_ipv4(path.grh.dgid));
  EXPECT_EQ(std::memcmp(path.grh.dgid.raw + 12, kSender, 4), 0);
  EXPECT_EQ(path.grh.sgid_index, session().gid_index);
  EXPECT_EQ(path.grh.hop_limit, 63);
  EXPECT_EQ(path.grh.traffic_class, 0x15);
}

TEST_P(Ah, AttributesAreDerivedFromARoutingHeader) {
  if (is_mapped_ipv4(session().gid)) GTEST_SKIP() << "the port's address is one of IPv4";
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh header{};
  header.next_hdr = port().link_layer == IBV_LINK_LAYER_ETHERNET ? 17 : 27;
  header.version_tclass_flow = htonl(0x60000000 | 0x15 << 20 | 0x12345);
  header.hop_limit = 63;
  header.sgid.global.interface_id = 77;
  header.dgid = session().gid;
  ibv_ah_attr path{};
  ASSERT_EQ(ibv_init_ah_from_wc(context(), 1, &wc, &header, &path), 0);
  EXPECT_EQ(path.is_global, 1);
  EXPECT_EQ(path.grh.dgid.global.interface_id, 77u);
  EXPECT_EQ(path.grh.sgid_index, session().gid_index);
  EXPECT_EQ(path.grh.flow_label, 0x12345u);
  EXPECT_EQ(path.grh.traffic_class, 0x15);
}

TEST_P(Ah, ARoutingHeaderToSomebodyElseIsRefused) {
  expect_complaints();
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh header{};
  header.dgid.global.interface_id = 0x1234567812345678;
  ibv_ah_attr path{};
  EXPECT_NE(ibv_init_ah_from_wc(context(), 1, &wc, &header, &path), 0);
}

}  // namespace
}  // namespace verbatim::harness
