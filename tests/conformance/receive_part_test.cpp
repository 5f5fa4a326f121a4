// SPDX-License-Identifier: BSD-2-Clause
//
// Only memory that a request really touches is asked of its key (IBTA 9.7.4.1.6 judges packets as
// they come, 10.6.3 each access; mlx4, mlx5, and the kernel's rxe_mr.c and siw_qp_rx.c look at what
// they copy). So a receive may run past its region, as those that perftest posts to shared queues
// do, and lists may have places that no byte goes to.
#include <memory>

#include "tests/conformance/ud_post.hpp"
#include "tests/support/quirks.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint8_t kUntouched = 0x5A;
/// How far the receives run past what is registered.
constexpr std::uint64_t kBeyond = 1500;

enum class Kind : std::uint8_t { kOwn, kShared, kDatagram, kXrc };

/// A connection of one kind from `a` to `b`, and memory at both ends.
class Line {
 public:
  Line(const Setting& setting, ibv_qp_type type, Kind kind)
      : pair(setting, wish(type, kind)),
        kind_(kind),
        header(kind == Kind::kDatagram ? kGrh : 0),
        from(pair.a.allocate(setting.memory, 256_KiB)),
        to(pair.b.allocate(setting.memory, 256_KiB)),
        sender(pair.qa),
        receiver(pair.qb) {
    if (kind == Kind::kDatagram) ah_ = pair.a.call<&Endpoint::create_ah>(receiver, 0);
    if (kind != Kind::kShared && kind != Kind::kXrc) return;
    SrqWish shared;
    shared.xrc = kind == Kind::kXrc ? 1 : 0;
    srq_ = pair.b.create_srq(shared);
    QpWish own, others;
    own.type = kind == Kind::kXrc ? IBV_QPT_XRC_SEND : type;
    others.type = kind == Kind::kXrc ? IBV_QPT_XRC_RECV : type;
    if (kind == Kind::kShared) {
      others.srq = srq_.id;
      others.receive_depth = 0;
    }
    sender = pair.a.create_qp(own);
    receiver = pair.b.create_qp(others);
    pair.a.connect(sender, receiver);
    pair.b.connect(receiver, sender);
  }

  void post(const std::vector<Receive>& receives) {
    expect_posted(srq_.id >= 0 ? pair.b.post_srq_receive(srq_, receives)
                               : pair.b.post_receive(receiver, receives));
  }
  void send_one(std::uint64_t id, std::uint64_t size) {
    Request request = kind_ == Kind::kDatagram
                          ? datagram(id, slice(from, 0, size), ah_, receiver.qpn, kQkey)
                          : send(id, slice(from, 0, size));
    request.remote_srqn = srq_.srqn;
    expect_posted(pair.a.post_send(sender, request));
  }
  ibv_wc sent() { return pair.a.poll_sends(sender, 1)[0]; }
  ibv_wc received() {
    return pair.b.call<&Endpoint::poll>(kind_ == Kind::kXrc ? srq_.cq : receiver.receive_cq, 1u,
                                        kDefaultWaitMs)[0];
  }

  Pair pair;

 private:
  static PairWish wish(ibv_qp_type type, Kind kind) {
    PairWish wish;
    const bool is_used = kind == Kind::kOwn || kind == Kind::kDatagram;
    wish.connected = is_used;
    if (is_used) wish.a.type = wish.b.type = type;
    return wish;
  }

  Kind kind_;
  std::int32_t ah_ = -1;
  SrqInfo srq_;

 public:
  const std::uint64_t header;
  const RegionInfo from, to;
  QpInfo sender, receiver;
};

/// Around the ways that a message can take, as far as the transport carries it.
std::vector<std::uint64_t> sizes_of(const Line& line) {
  if (line.header != 0) return {0, 1, 16, 57, 200, 900};
  return {0, 1, 56, 57, 511, 2000, 40'000, 100'000};
}

void expect_arrived(Line& line, std::uint64_t id, std::uint64_t size, std::uint32_t seed) {
  const ibv_wc sent = line.sent();
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS) << ibv_wc_status_str(sent.status);
  const ibv_wc wc = line.received();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.wr_id, id);
  EXPECT_EQ(wc.byte_len, line.header + size);
  EXPECT_EQ(line.pair.b.mismatch(line.to, line.header, size, seed), -1);
  expect_untouched(line.pair.b, line.to, line.header + size, kBeyond, kUntouched);
}

/// The region holds a message exactly; the receive is longer.
void takes_what_fits(Line& line) {
  std::uint32_t seed = 0;
  for (const std::uint64_t size : sizes_of(line)) {
    SCOPED_TRACE(size);
    const std::uint64_t held = line.header + size;
    const RegionInfo part = line.pair.b.register_part(line.to, 0, held == 0 ? 1 : held);
    // One by one, and in a list.
    for (const std::uint64_t count : {1u, 2u}) {
      std::vector<Receive> receives;
      for (std::uint64_t i = 0; i < count; ++i)
        receives.push_back(receive(100 + i, slice(part, 0, held + kBeyond)));
      line.post(receives);
      for (std::uint64_t i = 0; i < count; ++i) {
        line.pair.b.set(line.to, 0, held + kBeyond, kUntouched);
        line.pair.a.fill(line.from, 0, size, ++seed);
        line.send_one(seed, size);
        expect_arrived(line, 100 + i, size, seed);
      }
    }
    ASSERT_EQ(line.pair.b.deregister(part), 0);
  }
}

/// Behind the last byte that is written, a list may hold anything.
void looks_at_no_further_piece(Line& line) {
  const std::uint64_t size = line.header != 0 ? 200 : 40'000;
  const RegionInfo part = line.pair.b.register_part(line.to, 0, line.header + size);
  Slice wrong = slice(line.to, 0, kBeyond);
  wrong.lkey = line.to.lkey ^ 0x80000000u;
  const SliceList pieces{
      slice(part, 0, line.header + 20),
      slice(part, line.header + 20, size - 20 + kBeyond),
      wrong,
  };
  line.post({receive(7, pieces)});
  line.pair.b.set(line.to, 0, line.header + size + kBeyond, kUntouched);
  line.pair.a.fill(line.from, 0, size, 3);
  line.send_one(8, size);
  expect_arrived(line, 7, size, 3);
}

/// One byte more than what lies in the region.
void never_writes_beyond(Line& line) {
  const std::uint64_t size = line.header != 0 ? 200 : 40'000;
  const RegionInfo part = line.pair.b.register_part(line.to, 0, line.header + size - 1);
  line.post({receive(7, slice(part, 0, line.header + size + kBeyond))});
  line.pair.b.set(line.to, 0, line.header + size + kBeyond, kUntouched);
  line.send_one(8, size);
  const ibv_wc wc = line.received();
  EXPECT_TRUE(is_status(line.receiver.vendor, wc.status, IBV_WC_LOC_PROT_ERR))
      << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.wr_id, 7u);
  expect_untouched(line.pair.b, line.to, line.header + size - 1, kBeyond, kUntouched);
}

/// Of RC; conformance_without_cma plays these, too.
class RcReceivePart : public BetweenTwo {};
RUN_OVER_SETTINGS(RcReceivePart, on_every_device(each_way()));
class ReceivePart : public BetweenTwo {};
RUN_OVER_SETTINGS(ReceivePart, on_every_device(each_way()));

TEST_P(RcReceivePart, AMessageThatFitsInWhatAReceiveHasOfItsRegionArrives) {
  Line line(GetParam(), IBV_QPT_RC, Kind::kOwn);
  takes_what_fits(line);
  looks_at_no_further_piece(line);
  never_writes_beyond(line);
}

TEST_P(RcReceivePart, AMessageThatFitsInWhatASharedReceiveHasOfItsRegionArrives) {
  SKIP_IF(lacks_srq(device()));
  Line line(GetParam(), IBV_QPT_RC, Kind::kShared);
  takes_what_fits(line);
  looks_at_no_further_piece(line);
  never_writes_beyond(line);
}

TEST_P(ReceivePart, AMessageOfAnUnreliableConnectionThatFitsInIt) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Line line(GetParam(), IBV_QPT_UC, Kind::kOwn);
  takes_what_fits(line);
  looks_at_no_further_piece(line);
  never_writes_beyond(line);
}

TEST_P(ReceivePart, ADatagramThatFitsInItWithItsHeader) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Line line(GetParam(), IBV_QPT_UD, Kind::kDatagram);
  takes_what_fits(line);
  looks_at_no_further_piece(line);
  never_writes_beyond(line);
}

TEST_P(ReceivePart, AMessageToAQueueOfXrcThatFitsInIt) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Line line(GetParam(), IBV_QPT_XRC_SEND, Kind::kXrc);
  takes_what_fits(line);
  looks_at_no_further_piece(line);
  never_writes_beyond(line);
}

// IBTA 10.6.3.1 ff. speak of accesses; a place without length has none.
TEST_P(RcReceivePart, APlaceWithoutLengthNeedsNoKey) {
  Line line(GetParam(), IBV_QPT_RC, Kind::kOwn);
  Side& a = line.pair.a;
  Side& b = line.pair.b;
  Slice nothing = slice(line.from, 256_KiB, 0);
  nothing.lkey = line.from.lkey ^ 0x80000000u;
  Slice nowhere = slice(line.to, 256_KiB, 64);
  nowhere.lkey = line.to.lkey ^ 0x80000000u;

  line.post({receive(1, nowhere), receive(2, slice(line.to, 0, 64))});
  expect_posted(a.post_send(line.sender, send(3, nothing)));
  expect_wc(line.sent(), 3, IBV_WC_SEND, line.sender);
  expect_receive(line.received(), 1, 0, line.receiver);
  a.fill(line.from, 0, 32, 5);
  expect_posted(
      a.post_send(line.sender, send(4, SliceList{nothing, slice(line.from, 0, 32), nothing})));
  expect_wc(line.sent(), 4, IBV_WC_SEND, line.sender);
  expect_receive(line.received(), 2, 32, line.receiver);
  EXPECT_EQ(b.mismatch(line.to, 0, 32, 5), -1);

  expect_posted(a.post_send(line.sender, read(5, nothing, line.to)));
  expect_wc(line.sent(), 5, IBV_WC_RDMA_READ, line.sender);
  expect_posted(a.post_send(
      line.sender, read(6, SliceList{nothing, slice(line.from, 1024, 32), nothing}, line.to)));
  expect_wc(line.sent(), 6, IBV_WC_RDMA_READ, line.sender);
  EXPECT_EQ(a.mismatch(line.from, 1024, 32, 5), -1);
}

// IBTA 9.4.5: an atomic's answer has eight bytes.
TEST_P(RcReceivePart, AnAtomicNeedsNoMoreThanEightBytesOfItsList) {
  Line line(GetParam(), IBV_QPT_RC, Kind::kOwn);
  Side& a = line.pair.a;
  const RegionInfo part = a.register_part(line.from, 0, 8);
  a.set(line.from, 0, 72, kUntouched);
  line.pair.b.store(line.to, 0, 41);
  expect_posted(a.post_send(line.sender, fetch_add(1, slice(part, 0, 64), line.to, 0, 1)));
  expect_wc(line.sent(), 1, IBV_WC_FETCH_ADD, line.sender);
  EXPECT_EQ(a.load(line.from, 0), 41u);
  EXPECT_EQ(line.pair.b.load(line.to, 0), 42u);
  expect_untouched(a, line.from, 8, 64, kUntouched);
}

}  // namespace
}  // namespace verbatim::harness
