// SPDX-License-Identifier: BSD-2-Clause
//
// Regions on demand (man ibv_reg_mr, IBV_ACCESS_ON_DEMAND; ibv_query_device_ex, odp_caps), of
// which a part is not there when a request names it. Whose memory it is says what happens: the
// requester's or a receive's is its own protection error (IBTA 11.6.2), of which the sender hears as
// of an operation that failed there; a target's is the requester's remote access error (IBTA 9.9.2,
// 9.9.3). No process ends by it.
#include <vector>

#include "tests/conformance/ud_post.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kThere = 1_MiB;  // and as much that is not
constexpr std::uint64_t kSizes[] = {32, 300, 5000, 64_KiB, 1_MiB};
constexpr Loss kLosses[] = {Loss::kForbidden, Loss::kTruncated};
constexpr int kAccess = kAllAccess | IBV_ACCESS_ON_DEMAND;

class OnDemand : public BetweenTwo {
 protected:
  std::string open() {
    const Session session(device());
    ibv_device_attr_ex attr{};
    EXPECT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &attr), 0);
    return (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 ? "" : "the device has no ON_DEMAND";
  }
  /// Two connected queue pairs; `lost` of `loser`, of which kThere bytes are left, and memory of the
  /// other one.
  struct Scene {
    explicit Scene(const Setting& setting) : pair(setting) {}
    RegionInfo lose(Side& loser, Loss how) {
      return loser.allocate_losing(2 * kThere, kAccess, kThere, how);
    }
    /// All of a request's bytes are missing, or the last 32.
    static std::vector<std::uint64_t> places(std::uint64_t size) {
      return {kThere, kThere + 32 - size};
    }
    ibv_wc_status ask(const Request& request) {
      const Posted posted = pair.a.post_send(pair.qa, request);
      EXPECT_EQ(posted.error, 0);
      return pair.a.poll_sends(pair.qa, 1)[0].status;
    }
    Pair pair;
  };
};
RUN_OVER_SETTINGS(OnDemand, on_every_device(each_way()));

TEST_P(OnDemand, WhatARequestsOwnMemoryLacksIsItsProtectionError) {
  SKIP_IF(open());
  Scene scene(GetParam());
  Side& a = scene.pair.a;
  const RegionInfo good = scene.pair.b.allocate(memory(), kThere);
  for (const Loss how : kLosses) {
    const RegionInfo lost = scene.lose(a, how);
    for (const std::uint64_t size : kSizes) {
      for (const std::uint64_t place : Scene::places(size)) {
        SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(place));
        const Slice piece = slice(lost, place, size);
        expect_posted(scene.pair.b.post_receive(scene.pair.qb, receive(1, slice(good, 0, kThere))));
        EXPECT_EQ(scene.ask(send(2, piece)), IBV_WC_LOC_PROT_ERR);
        scene.pair.reconnect();
        EXPECT_EQ(scene.ask(write(3, piece, good)), IBV_WC_LOC_PROT_ERR);
        scene.pair.reconnect();
        EXPECT_EQ(scene.ask(read(4, piece, good)), IBV_WC_LOC_PROT_ERR);
        scene.pair.reconnect();
      }
    }
    const Slice word = slice(lost, kThere, 8);
    EXPECT_EQ(scene.ask(fetch_add(5, word, good, 0, 1)), IBV_WC_LOC_PROT_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(compare_swap(6, word, good, 0, 0, 1)), IBV_WC_LOC_PROT_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(write(7, slice(lost, kThere - 64_KiB, 64_KiB), good)), IBV_WC_SUCCESS);
  }
}

TEST_P(OnDemand, WhatAReceiveLacksIsItsProtectionErrorAndTheSendersOperationFails) {
  SKIP_IF(open());
  Scene scene(GetParam());
  Side& b = scene.pair.b;
  const RegionInfo good = scene.pair.a.allocate(memory(), kThere);
  for (const Loss how : kLosses) {
    const RegionInfo lost = scene.lose(b, how);
    for (const std::uint64_t size : kSizes) {
      for (const std::uint64_t place : Scene::places(size)) {
        SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(place));
        expect_posted(b.post_receive(scene.pair.qb, receive(1, slice(lost, place, size))));
        expect_posted(scene.pair.a.post_send(scene.pair.qa, send(2, slice(good, 0, size))));
        EXPECT_EQ(b.poll_receives(scene.pair.qb, 1)[0].status, IBV_WC_LOC_PROT_ERR);
        const ibv_wc sent = scene.pair.a.poll_sends(scene.pair.qa, 1)[0];
        // A short message has been taken over when its receive is looked at: that of a device that
        // holds messages for its receiver (shm, up to 1 KiB) is sent by then.
        if (size <= 1024)
          expect_status(sent, 2, {IBV_WC_REM_OP_ERR, IBV_WC_SUCCESS});
        else
          expect_status(sent, 2, {IBV_WC_REM_OP_ERR});
        scene.pair.reconnect();
      }
    }
    // What a message does not need may be missing.
    expect_posted(b.post_receive(scene.pair.qb, receive(3, slice(lost, kThere - 5000, 9000))));
    EXPECT_EQ(scene.ask(send(4, slice(good, 0, 5000))), IBV_WC_SUCCESS);
    EXPECT_EQ(b.poll_receives(scene.pair.qb, 1)[0].status, IBV_WC_SUCCESS);
  }
}

TEST_P(OnDemand, WhatATargetLacksIsARemoteAccessError) {
  SKIP_IF(open());
  Scene scene(GetParam());
  const RegionInfo good = scene.pair.a.allocate(memory(), kThere);
  for (const Loss how : kLosses) {
    const RegionInfo lost = scene.lose(scene.pair.b, how);
    for (const std::uint64_t size : kSizes) {
      for (const std::uint64_t place : Scene::places(size)) {
        SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(place));
        const Slice piece = slice(good, 0, size);
        EXPECT_EQ(scene.ask(write(2, piece, lost, place)), IBV_WC_REM_ACCESS_ERR);
        scene.pair.reconnect();
        EXPECT_EQ(scene.ask(read(3, piece, lost, place)), IBV_WC_REM_ACCESS_ERR);
        scene.pair.reconnect();
      }
    }
    EXPECT_EQ(scene.ask(fetch_add(4, slice(good, 0, 8), lost, kThere, 1)), IBV_WC_REM_ACCESS_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(fetch_add(5, slice(good, 0, 8), lost, 64, 1)), IBV_WC_SUCCESS);
    EXPECT_EQ(scene.pair.b.load(lost, 64), 1u);
  }
}

TEST_P(OnDemand, AWholeAddressSpaceHasAddressesWithNothingBehindThem) {
  SKIP_IF(open());
  Scene scene(GetParam());
  const RegionWish wish{.size = SIZE_MAX, .access = kAccess};
  const RegionInfo ours = scene.pair.a.register_as(wish);
  const RegionInfo theirs = scene.pair.b.register_as(wish);
  const RegionInfo good = scene.pair.a.allocate(memory(), kThere);
  const RegionInfo target = scene.pair.b.allocate(memory(), kThere);
  constexpr std::uint64_t kNothing = 4096;  // up to 4 MiB no program has anything
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const Slice piece = slice(ours, kNothing, size);
    EXPECT_EQ(scene.ask(write(1, piece, target)), IBV_WC_LOC_PROT_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(read(2, piece, target)), IBV_WC_LOC_PROT_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(write(3, slice(good, 0, size), theirs, kNothing)), IBV_WC_REM_ACCESS_ERR);
    scene.pair.reconnect();
    EXPECT_EQ(scene.ask(read(4, slice(good, 0, size), theirs, kNothing)), IBV_WC_REM_ACCESS_ERR);
    scene.pair.reconnect();
  }
}

TEST_P(OnDemand, AReceiveThatIsSharedLacksWhatItLacks) {
  SKIP_IF(open());
  SKIP_IF(lacks_srq(device()));
  PairWish unconnected;
  unconnected.connected = false;
  Pair pair(GetParam(), unconnected);
  const SrqInfo srq = pair.b.create_srq();
  const RegionInfo good = pair.a.allocate(memory(), kThere);
  const RegionInfo lost = pair.b.allocate_losing(2 * kThere, kAccess, kThere, Loss::kTruncated);
  QpWish wish;
  wish.srq = srq.id;
  wish.receive_depth = 0;
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const QpInfo from = pair.a.create_qp();
    const QpInfo to = pair.b.create_qp(wish);
    pair.a.connect(from, to);
    pair.b.connect(to, from);
    const Slice half = slice(lost, kThere - size / 2, size);
    expect_posted(pair.b.post_srq_receive(srq, {receive(1, half)}));
    expect_posted(pair.a.post_send(from, send(2, slice(good, 0, size))));
    expect_status(pair.b.poll_receives(to, 1)[0], 1, {IBV_WC_LOC_PROT_ERR});
    // Which receive it is, a sender may not know before the message is gone.
    expect_status(pair.a.poll_sends(from, 1)[0], 2, {IBV_WC_REM_OP_ERR, IBV_WC_SUCCESS});
  }
}

TEST_P(OnDemand, ADatagramLacksWhatItsSenderOrItsReceiveLacks) {
  SKIP_IF(open());
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  for (const std::uint64_t size : {32, 300, 1000}) {
    SCOPED_TRACE(size);
    Post ud(GetParam());
    const RegionInfo lost =
        ud.pair.b.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
    const Slice header = slice(lost, kThere - kGrh, kGrh + size);  // but for the bytes behind it
    expect_posted(ud.pair.b.post_receive(ud.pair.qb, receive(1, header)));
    ud.send_one(ud.letter(2, size));
    expect_status(ud.next(), 1, {IBV_WC_LOC_PROT_ERR});
  }
  for (const std::uint64_t size : {32, 300, 1000}) {
    SCOPED_TRACE(size);
    Post ud(GetParam());
    const RegionInfo lost =
        ud.pair.a.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
    ud.post(1);
    ud.send_one(ud.letter(2, 8));
    expect_status(ud.next(), 1, {IBV_WC_SUCCESS});
    Request letter = ud.letter(3, size);
    letter.from = slice(lost, kThere - size / 2, size);
    expect_posted(ud.pair.a.post_send(ud.pair.qa, letter));
    expect_status(ud.pair.a.poll_sends(ud.pair.qa, 1)[0], 3, {IBV_WC_LOC_PROT_ERR});
  }
}

TEST_P(OnDemand, AnXrcQueuesMemoryLacksWhatItLacks) {
  SKIP_IF(open());
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  PairWish unconnected;
  unconnected.connected = false;
  Pair pair(GetParam(), unconnected);
  SrqWish shared;
  shared.xrc = 1;
  const SrqInfo queue = pair.b.create_srq(shared);
  const RegionInfo good = pair.a.allocate(memory(), kThere);
  const RegionInfo ours = pair.a.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
  const RegionInfo theirs = pair.b.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
  const auto post = [&](Request request) {
    QpWish wish;
    wish.type = IBV_QPT_XRC_SEND;
    const QpInfo from = pair.a.create_qp(wish);
    wish.type = IBV_QPT_XRC_RECV;
    const QpInfo to = pair.b.create_qp(wish);
    pair.a.connect(from, to);
    pair.b.connect(to, from);
    request.remote_srqn = queue.srqn;
    expect_posted(pair.a.post_send(from, request));
    return from;
  };
  const auto ask = [&](const Request& request) {
    return pair.a.poll_sends(post(request), 1)[0].status;
  };
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const Slice piece = slice(good, 0, size);
    const Slice half = slice(ours, kThere - size / 2, size);
    EXPECT_EQ(ask(write(1, piece, theirs, kThere)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ask(read(2, piece, theirs, kThere)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ask(write(3, half, theirs)), IBV_WC_LOC_PROT_ERR);
    expect_posted(pair.b.post_srq_receive(queue, {receive(4, slice(theirs, kThere, size))}));
    const QpInfo from = post(send(5, piece));
    expect_status(pair.b.call<&Endpoint::poll>(queue.cq, 1u, kDefaultWaitMs)[0], 4,
                  {IBV_WC_LOC_PROT_ERR});
    expect_status(pair.a.poll_sends(from, 1)[0], 5, {IBV_WC_REM_OP_ERR, IBV_WC_SUCCESS});
  }
}

TEST_P(OnDemand, MovesWhatIsThere) {
  SKIP_IF(open());
  Scene scene(GetParam());
  Side& a = scene.pair.a;
  Side& b = scene.pair.b;
  const RegionInfo from = scene.lose(a, Loss::kForbidden);
  const RegionInfo to = scene.lose(b, Loss::kForbidden);
  std::uint32_t seed = 1;
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::uint64_t place = kThere - size;
    a.fill(from, place, size, ++seed);
    expect_posted(b.post_receive(scene.pair.qb, receive(1, slice(to, place, size))));
    EXPECT_EQ(scene.ask(send(2, slice(from, place, size))), IBV_WC_SUCCESS);
    EXPECT_EQ(b.poll_receives(scene.pair.qb, 1)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(b.mismatch(to, place, size, seed), -1);
    a.fill(from, place, size, ++seed);
    EXPECT_EQ(scene.ask(write(3, slice(from, place, size), to, place)), IBV_WC_SUCCESS);
    EXPECT_EQ(b.mismatch(to, place, size, seed), -1);
    b.fill(to, place, size, ++seed);
    EXPECT_EQ(scene.ask(read(4, slice(from, place, size), to, place)), IBV_WC_SUCCESS);
    EXPECT_EQ(a.mismatch(from, place, size, seed), -1);
  }
}

}  // namespace
}  // namespace verbatim::harness
