// SPDX-License-Identifier: BSD-2-Clause
//
// Memory windows of both types (IBTA 10.6.7; man ibv_alloc_mw, ibv_bind_mw): `a` opens them, `b`
// goes through.
#include <future>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kUnderWindows = 64_KiB;
constexpr std::uint64_t kFrom = 4096;
constexpr std::uint64_t kLength = 8192;
constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr unsigned kAllRights =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class MemoryWindow : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(MemoryWindow, each_way());

struct Scene {
  explicit Scene(Setting setting, std::uint64_t size = kUnderWindows)
      : pair(setting),
        memory(pair.a.allocate(setting.memory, size, kBindable)),
        local(pair.b.allocate(setting.memory, size)) {}

  WindowBind words(const WindowInfo& window, std::uint64_t length = kLength,
                   unsigned access = kAllRights) {
    WindowBind bind;
    bind.wr_id = 77;
    bind.window = window.id;
    bind.region = memory.id;
    bind.rkey = ibv_inc_rkey(pair.a.call<&Endpoint::window_key>(window.id));
    bind.address = memory.address + kFrom;
    bind.length = length;
    bind.access = access;
    return bind;
  }
  /// The status in which `bind` ends on `qp`.
  ibv_wc_status post(const QpInfo& qp, const WindowBind& bind) {
    EXPECT_EQ(pair.a.bind_window(qp, bind), 0);
    const ibv_wc wc = pair.a.poll_sends(qp, 1)[0];
    EXPECT_EQ(wc.wr_id, bind.wr_id);
    EXPECT_TRUE(wc.status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_BIND_MW);
    return wc.status;
  }
  ibv_wc_status post(const WindowBind& bind) { return post(pair.qa, bind); }
  /// What the window shows, for requests of `b`.
  RegionInfo shown(const WindowInfo& window) {
    RegionInfo info;
    info.rkey = pair.a.call<&Endpoint::window_key>(window.id);
    info.address = memory.address + kFrom;
    info.size = kLength;
    return info;
  }
  RegionInfo open(ibv_mw_type type, unsigned access = kAllRights) {
    const WindowInfo window = pair.a.allocate_window(type);
    EXPECT_EQ(post(words(window, kLength, access)), IBV_WC_SUCCESS);
    return shown(window);
  }
  ibv_wc_status try_once(const QpInfo& qp, const Request& request) {
    expect_posted(pair.b.post_send(qp, request));
    return pair.b.poll_sends(qp, 1)[0].status;
  }
  ibv_wc_status try_once(const Request& request) { return try_once(pair.qb, request); }
  void allowed(const Request& request) { EXPECT_EQ(try_once(request), IBV_WC_SUCCESS); }
  void denied(const Request& request) {
    EXPECT_EQ(try_once(request), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
  }
  Request writes(const RegionInfo& to, std::uint64_t offset = 0, std::uint64_t length = 8) {
    return write(1, slice(local, 0, length), to, offset);
  }

  Pair pair;
  RegionInfo memory;
  RegionInfo local;
};

constexpr ibv_mw_type kTypes[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

TEST_P(MemoryWindow, ItOpensExactlyItsRangeOfARegionThatIsClosedToPeers) {
  for (const ibv_mw_type type : kTypes) {
    SCOPED_TRACE(type);
    Scene scene(GetParam());
    scene.denied(scene.writes(scene.memory, kFrom));
    const RegionInfo shown = scene.open(type);
    scene.pair.b.fill(scene.local, 0, kLength, 3);
    scene.allowed(scene.writes(shown, 0, kLength));
    EXPECT_EQ(scene.pair.a.mismatch(scene.memory, kFrom, kLength, 3), -1);
    scene.pair.a.fill(scene.memory, kFrom, kLength, 4);
    scene.allowed(read(2, slice(scene.local, 0, kLength), shown));
    EXPECT_EQ(scene.pair.b.mismatch(scene.local, 0, kLength, 4), -1);
    scene.pair.a.store(scene.memory, kFrom + kLength - 8, 40);
    scene.allowed(fetch_add(3, slice(scene.local, 0, 8), shown, kLength - 8, 2));
    EXPECT_EQ(scene.pair.a.load(scene.memory, kFrom + kLength - 8), 42u);

    scene.pair.a.set(scene.memory, 0, kUnderWindows, 0x11);
    scene.denied(scene.writes(shown, kLength - 7));
    scene.denied(scene.writes(shown, ~std::uint64_t{0}));
    scene.denied(scene.writes(shown, 0, kLength + 1));
    scene.denied(scene.writes(scene.memory, kFrom));
    expect_untouched(scene.pair.a, scene.memory, 0, kUnderWindows, 0x11);
  }
}

TEST_P(MemoryWindow, ItGivesTheRightsThatItWasBoundWithAndNoOthers) {
  for (const ibv_mw_type type : kTypes) {
    for (const unsigned right :
         {unsigned{IBV_ACCESS_REMOTE_WRITE}, unsigned{IBV_ACCESS_REMOTE_READ},
          unsigned{IBV_ACCESS_REMOTE_ATOMIC}}) {
      SCOPED_TRACE(right);
      Scene scene(GetParam());
      const RegionInfo shown = scene.open(type, right);
      const Slice local = slice(scene.local, 0, 8);
      const struct {
        unsigned right;
        Request request;
      } all[] = {{IBV_ACCESS_REMOTE_WRITE, write(1, local, shown)},
                 {IBV_ACCESS_REMOTE_READ, read(2, local, shown)},
                 {IBV_ACCESS_REMOTE_ATOMIC, fetch_add(3, local, shown, 0, 1)}};
      for (const auto& one : all)
        one.right == right ? scene.allowed(one.request) : scene.denied(one.request);
    }
  }
}

TEST_P(MemoryWindow, ItsKeyIsNoLocalKey) {
  for (const ibv_mw_type type : kTypes) {
    Scene scene(GetParam());
    const RegionInfo shown = scene.open(type);
    Slice from = slice(scene.memory, kFrom, 8);
    from.lkey = shown.rkey;
    expect_posted(scene.pair.a.post_send(scene.pair.qa, write(5, from, scene.local)));
    expect_error(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 5, IBV_WC_LOC_PROT_ERR,
                 scene.pair.qa);
  }
}

TEST_P(MemoryWindow, OfType1ItServesEveryQueuePairOfItsDomainOfType2OnlyItsOwn) {
  for (const ibv_mw_type type : kTypes) {
    Scene scene(GetParam());
    const RegionInfo shown = scene.open(type);
    const auto [other_a, other_b] = scene.pair.add_qps({}, {});
    const ibv_wc_status status = scene.try_once(other_b, scene.writes(shown));
    EXPECT_EQ(status, type == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    scene.allowed(scene.writes(shown));
  }
}

TEST_P(MemoryWindow, OfType1BoundAgainItHasAnotherKeyAndOfNoBytesItIsClosed) {
  Scene scene(GetParam());
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_1);
  ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
  const RegionInfo first = scene.shown(window);
  ASSERT_EQ(scene.post(scene.words(window, 4096)), IBV_WC_SUCCESS);
  const RegionInfo second = scene.shown(window);
  EXPECT_NE(first.rkey, second.rkey);
  scene.allowed(scene.writes(second, 4088));
  scene.denied(scene.writes(second, 4096));
  scene.denied(scene.writes(first));
  ASSERT_EQ(scene.post(scene.words(window, 0)), IBV_WC_SUCCESS);
  const RegionInfo closed = scene.shown(window);
  EXPECT_NE(closed.rkey, second.rkey);
  scene.denied(scene.writes(second));
  scene.denied(scene.writes(closed));
}

TEST_P(MemoryWindow, OfType2ItIsClosedByLocalInvalidateAndThenBoundUnderANewKey) {
  Scene scene(GetParam());
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
  const RegionInfo first = scene.shown(window);
  scene.allowed(scene.writes(first));
  expect_posted(scene.pair.a.post_send(scene.pair.qa, local_invalidate(6, first.rkey)));
  expect_wc(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 6, IBV_WC_LOCAL_INV, scene.pair.qa);
  scene.denied(scene.writes(first));
  ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
  const RegionInfo second = scene.shown(window);
  EXPECT_EQ(second.rkey, ibv_inc_rkey(first.rkey));
  scene.allowed(scene.writes(second));
  scene.denied(scene.writes(first));
}

TEST_P(MemoryWindow, OfType2StillBoundItCannotBeBoundAgain) {
  Scene scene(GetParam());
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
  EXPECT_EQ(scene.post(scene.words(window)), IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(scene.pair.a.state(scene.pair.qa), IBV_QPS_ERR);
}

TEST_P(MemoryWindow, InvalidatingWhatIsNoWindowOfThisQueuePairIsAnError) {
  Scene scene(GetParam());
  const auto [other_a, other_b] = scene.pair.add_qps({}, {});
  const WindowInfo elsewhere = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  ASSERT_EQ(scene.post(other_a, scene.words(elsewhere)), IBV_WC_SUCCESS);
  const WindowInfo unbound = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  const RegionInfo of_type_1 = scene.open(IBV_MW_TYPE_1);
  for (const std::uint32_t key : {0u, scene.memory.rkey, unbound.rkey, of_type_1.rkey,
                                  scene.shown(elsewhere).rkey, 0xffffff01u}) {
    SCOPED_TRACE(key);
    expect_posted(scene.pair.a.post_send(scene.pair.qa, local_invalidate(6, key)));
    expect_error(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 6, IBV_WC_MW_BIND_ERR,
                 scene.pair.qa);
    scene.pair.reconnect();
    // By the peer too; both ends fail then.
    expect_posted(scene.pair.a.post_receive(scene.pair.qa, receive(8)));
    EXPECT_EQ(scene.try_once(send_with_invalidate(7, {}, key)), IBV_WC_REM_ACCESS_ERR);
    expect_error(scene.pair.a.poll_receives(scene.pair.qa, 1)[0], 8, IBV_WC_WR_FLUSH_ERR,
                 scene.pair.qa);
    EXPECT_EQ(scene.pair.a.call<&Endpoint::take_async_event>(kDefaultWaitMs).type,
              IBV_EVENT_QP_ACCESS_ERR);
    scene.pair.reconnect();
  }
}

TEST_P(MemoryWindow, AMessageOfThePeersEndsItBeforeTheReceiveCompletes) {
  Scene scene(GetParam(), 2_MiB);
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{57}, std::uint64_t{2000}, 1_MiB}) {
    SCOPED_TRACE(bytes);
    ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
    const RegionInfo shown = scene.shown(window);
    scene.pair.b.fill(scene.local, 0, 1_MiB, 9);
    scene.allowed(scene.writes(shown));
    expect_posted(
        scene.pair.a.post_receive(scene.pair.qa, receive(4, slice(scene.memory, 1_MiB, 1_MiB))));
    expect_posted(scene.pair.b.post_send(
        scene.pair.qb, send_with_invalidate(5, slice(scene.local, 0, bytes), shown.rkey)));
    const ibv_wc wc = scene.pair.a.poll_receives(scene.pair.qa, 1)[0];
    expect_receive(wc, 4, bytes, scene.pair.qa);
    EXPECT_EQ(wc.wc_flags, IBV_WC_WITH_INV);
    EXPECT_EQ(wc.invalidated_rkey, shown.rkey);
    EXPECT_EQ(scene.pair.a.mismatch(scene.memory, 1_MiB, bytes, 9), -1);
    expect_wc(scene.pair.b.poll_sends(scene.pair.qb, 1)[0], 5, IBV_WC_SEND, scene.pair.qb);
    scene.denied(scene.writes(shown));
  }
}

/// What is posted behind the message finds the key dead also when the receiver has not polled yet.
TEST_P(MemoryWindow, NothingPassesThroughItBehindTheMessageThatEndsIt) {
  Scene scene(GetParam());
  const RegionInfo shown = scene.open(IBV_MW_TYPE_2);
  scene.allowed(scene.writes(shown));
  scene.pair.a.set(scene.memory, 0, kUnderWindows, 0x11);
  expect_posted(scene.pair.a.post_receive(scene.pair.qa, receive(4)));
  expect_posted(scene.pair.b.post_send(
      scene.pair.qb, {send_with_invalidate(5, {}, shown.rkey), scene.writes(shown)}));
  const auto wcs = scene.pair.b.poll_sends(scene.pair.qb, 2);
  expect_wc(wcs[0], 5, IBV_WC_SEND, scene.pair.qb);
  expect_error(wcs[1], 1, IBV_WC_REM_ACCESS_ERR, scene.pair.qb);
  expect_untouched(scene.pair.a, scene.memory, 0, kUnderWindows, 0x11);
}

TEST_P(MemoryWindow, AnyNumberOfMessagesEndsWindowsOfAReceiverThatDoesNotPoll) {
  constexpr std::uint32_t kMany = 40;
  Scene scene(GetParam());
  std::vector<Request> requests;
  std::vector<Receive> receives;
  std::vector<RegionInfo> shown;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    shown.push_back(scene.open(IBV_MW_TYPE_2));
    receives.push_back(receive(i));
    requests.push_back(send_with_invalidate(i, {}, shown[i].rkey));
  }
  expect_posted(scene.pair.a.post_receive(scene.pair.qa, receives));
  expect_posted(scene.pair.b.post_send(scene.pair.qb, requests));
  const auto sent = scene.pair.b.poll_sends(scene.pair.qb, kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) expect_wc(sent[i], i, IBV_WC_SEND, scene.pair.qb);
  const auto got = scene.pair.a.poll_receives(scene.pair.qa, kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    expect_receive(got[i], i, 0, scene.pair.qa);
    EXPECT_EQ(got[i].invalidated_rkey, shown[i].rkey);
  }
  scene.denied(scene.writes(shown[kMany - 1]));
}

TEST_P(MemoryWindow, BoundToWhatItMayNotShowItEndsInABindError) {
  Scene scene(GetParam());
  const RegionInfo unbindable =
      scene.pair.a.register_part(scene.memory, 0, kUnderWindows, kAllAccess);
  const RegionInfo readable =
      scene.pair.a.register_part(scene.memory, 0, kUnderWindows, IBV_ACCESS_MW_BIND);
  const RegionInfo foreign = scene.pair.a.register_foreign(scene.memory, kBindable);
  RegionWish wish;
  wish.of = scene.memory.id;
  wish.size = kUnderWindows;
  wish.access = kBindable | IBV_ACCESS_ZERO_BASED;
  const RegionInfo based = scene.pair.a.register_as(wish);
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  const auto fails = [&](const char* what, auto change) {
    SCOPED_TRACE(what);
    WindowBind bind = scene.words(window);
    change(bind);
    EXPECT_EQ(scene.post(bind), IBV_WC_MW_BIND_ERR);
    scene.pair.reconnect();
  };
  fails("no right to be bound to", [&](WindowBind& b) { b.region = unbindable.id; });
  fails("writing without local write", [&](WindowBind& b) { b.region = readable.id; });
  fails("zero based region", [&](WindowBind& b) { b.region = based.id, b.address = kFrom; });
  fails("before the region", [&](WindowBind& b) { b.address = scene.memory.address - 1; });
  fails("one past its end",
        [&](WindowBind& b) { b.address = scene.memory.address + kUnderWindows - b.length + 1; });
  fails("longer than it",
        [&](WindowBind& b) { b.address = scene.memory.address, b.length = kUnderWindows + 1; });
  fails("around the address space", [&](WindowBind& b) { b.length = ~std::uint64_t{0}; });
  fails("another window's key", [&](WindowBind& b) { b.rkey += 0x100; });
  fails("a right that nobody knows", [&](WindowBind& b) { b.access |= 1u << 14; });
  // Another domain's region: type 1 is refused at once (man ibv_bind_mw), type 2 when performed.
  fails("another domain", [&](WindowBind& b) { b.region = foreign.id; });
  WindowBind bind = scene.words(scene.pair.a.allocate_window(IBV_MW_TYPE_1));
  bind.region = foreign.id;
  EXPECT_EQ(scene.pair.a.bind_window(scene.pair.qa, bind), EPERM);
  EXPECT_EQ(scene.post(scene.words(window, kLength, IBV_ACCESS_REMOTE_READ)), IBV_WC_SUCCESS);
  // Reading needs no local write.
  WindowBind reading =
      scene.words(scene.pair.a.allocate_window(IBV_MW_TYPE_2), kLength, IBV_ACCESS_REMOTE_READ);
  reading.region = readable.id;
  EXPECT_EQ(scene.post(reading), IBV_WC_SUCCESS);
}

TEST_P(MemoryWindow, OfType2ItMayCountFromZero) {
  Scene scene(GetParam());
  RegionInfo shown = scene.open(IBV_MW_TYPE_2, kAllRights | IBV_ACCESS_ZERO_BASED);
  shown.address = 0;
  scene.pair.b.fill(scene.local, 0, 64, 3);
  scene.allowed(scene.writes(shown, kLength - 64, 64));
  EXPECT_EQ(scene.pair.a.mismatch(scene.memory, kFrom + kLength - 64, 64, 3), -1);
  scene.denied(scene.writes(shown, kLength));
}

TEST_P(MemoryWindow, WhileItIsOpenItsRegionIsBusy) {
  const AllowedLog says_why("memory windows");
  for (const ibv_mw_type type : kTypes) {
    SCOPED_TRACE(type);
    Scene scene(GetParam());
    const WindowInfo window = scene.pair.a.allocate_window(type);
    ASSERT_EQ(scene.post(scene.words(window)), IBV_WC_SUCCESS);
    EXPECT_EQ(scene.pair.a.deregister(scene.memory), EBUSY);
    RegionWish wish;
    wish.access = kAllAccess;
    EXPECT_EQ(scene.pair.a.change_region(scene.memory, IBV_REREG_MR_CHANGE_ACCESS, wish),
              IBV_REREG_MR_ERR_INPUT);
    scene.allowed(scene.writes(scene.shown(window)));
    const RegionInfo shown = scene.shown(window);
    EXPECT_EQ(scene.pair.a.free_window(window), 0);
    scene.denied(scene.writes(shown));
    EXPECT_EQ(scene.pair.a.deregister(scene.memory), 0);
  }
}

TEST_P(MemoryWindow, OfType2ItEndsWithItsQueuePair) {
  Scene scene(GetParam());
  const auto [other_a, other_b] = scene.pair.add_qps({}, {});
  const WindowInfo window = scene.pair.a.allocate_window(IBV_MW_TYPE_2);
  ASSERT_EQ(scene.post(other_a, scene.words(window)), IBV_WC_SUCCESS);
  ASSERT_EQ(scene.pair.a.call<&Endpoint::destroy_qp>(other_a.id), 0);
  EXPECT_EQ(scene.pair.a.deregister(scene.memory), 0);
  EXPECT_EQ(scene.pair.a.free_window(window), 0);
}

/// Every way to close a window keeps the promise of deregistration.
TEST_P(MemoryWindow, ClosedInAnyWayNoPeerTouchesWhatItShowed) {
  constexpr std::uint64_t kLong = 256_KiB;  // one piece of a copy: its end is written last
  constexpr std::uint64_t kMark = 0x5555;
  Scene scene(GetParam(), kLong);
  const auto [other_a, other_b] = scene.pair.add_qps({}, {});
  scene.pair.b.set(scene.local, 0, kLong, 0x99);
  std::uint32_t invalidated = 0;
  for (std::uint32_t round = 0; round < 64 || invalidated == 0; ++round) {
    ASSERT_LT(round, 200u) << "not one LOCAL_INV succeeded";
    SCOPED_TRACE(round);
    const bool of_qp = round % 4 >= 2;
    const WindowInfo window = scene.pair.a.allocate_window(of_qp ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
    WindowBind bind = scene.words(window, kLong);
    bind.address = scene.memory.address;
    ASSERT_EQ(scene.post(bind), IBV_WC_SUCCESS);
    RegionInfo shown = scene.shown(window);
    shown.address = scene.memory.address;
    scene.pair.a.set(scene.memory, 0, kLong, 0);
    const std::uint64_t size = round % 16 < 4 ? 8 : kLong;
    const Request request = scene.writes(shown, kLong - size, size);
    auto storm = std::async(std::launch::async, [&] {
      return scene.pair.b.call<&Endpoint::storm>(scene.pair.qb.id, request, 8u, ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return scene.pair.a.load(scene.memory, kLong - 8) != 0; }));
    switch (round % 4) {
      case 0:
      case 2:
        ASSERT_EQ(scene.pair.a.free_window(window), 0);
        break;
      case 1:
        bind.length = 0;
        ASSERT_EQ(scene.post(other_a, bind), IBV_WC_SUCCESS);
        break;
      case 3: {
        expect_posted(scene.pair.a.post_send(scene.pair.qa, local_invalidate(6, shown.rkey)));
        const ibv_wc wc = scene.pair.a.poll_sends(scene.pair.qa, 1)[0];
        // The peer's next request may already have ended the queue pair: then nothing is promised.
        if (wc.status == IBV_WC_WR_FLUSH_ERR) {
          (void)storm.get();
          scene.pair.reconnect();
          continue;
        }
        expect_wc(wc, 6, IBV_WC_LOCAL_INV, scene.pair.qa);
        ++invalidated;
        break;
      }
    }
    scene.pair.a.store(scene.memory, kLong - 8, kMark);
    scene.pair.a.fill(scene.memory, 0, kLong - 8, round);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures[0].status, IBV_WC_REM_ACCESS_ERR) << describe(failures);
    EXPECT_EQ(scene.pair.a.load(scene.memory, kLong - 8), kMark);
    EXPECT_EQ(scene.pair.a.mismatch(scene.memory, 0, kLong - 8, round), -1);
    scene.pair.reconnect();
  }
}

TEST(MemoryWindowRules, TheDeviceSaysThatItHasThem) {
  Session session;
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(session.context.get(), &attr), 0);
  EXPECT_GT(attr.max_mw, 1000);
  constexpr unsigned kFlags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  EXPECT_EQ(attr.device_cap_flags & kFlags, kFlags);
}

}  // namespace
}  // namespace verbatim::harness
