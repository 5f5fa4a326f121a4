// SPDX-License-Identifier: BSD-2-Clause
//
// Objects of a thread domain do what all others do, and deregistration, the service thread and
// queue pairs outside the domain are as safe from them: man ibv_alloc_td, ibv_alloc_parent_domain.
#include <verbatim/memory.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "tests/shm/dereg_storm.hpp"
#include "tests/shm/work_calls.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class Domain : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(Domain, each_way());

class DomainStorm : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(DomainStorm, between_processes());

PairWish in_domains() {
  PairWish wish = with_calls();
  wish.a.in_domain = wish.b.in_domain = 1;
  wish.a.with_channel = wish.b.with_channel = 1;
  return wish;
}

TEST_P(Domain, EveryOperationGoesItsWay) {
  WorkPair scene(GetParam(), in_domains());
  scene.post_receives(1, 3, 8_KiB);
  scene.pair.a.fill(scene.at_a, 0, 8_KiB, 5);
  expect_posted(scene.pair.a.post_send(
      scene.pair.qa, {send(1, slice(scene.at_a, 0, 8)), send(2, slice(scene.at_a, 0, 8_KiB)),
                      write(3, slice(scene.at_a, 0, 4096), scene.at_b, 32'768),
                      read(4, slice(scene.at_a, 16'384, 4096), scene.at_b, 32'768)}));
  ibv_wr_start(scene.work);
  scene.next(5);
  ibv_wr_rdma_write(scene.work, scene.at_b.rkey, scene.at_b.address + 40'960);
  scene.set_sge(0, 64);
  scene.next(6);
  ibv_wr_atomic_fetch_add(scene.work, scene.at_b.rkey, scene.at_b.address + 49'152, 3);
  scene.set_sge(32, 8);
  scene.next(7);
  ibv_wr_send(scene.work);
  scene.set_sge(0, 16);
  ASSERT_EQ(ibv_wr_complete(scene.work), 0);
  const auto sent = scene.sent(7);
  for (std::uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(sent[i].wr_id, i + 1);
    EXPECT_EQ(sent[i].status, IBV_WC_SUCCESS);
  }
  const auto got = scene.received(3);
  expect_receive(got[0], 1, 8, scene.pair.qb);
  expect_receive(got[1], 2, 8_KiB, scene.pair.qb);
  expect_receive(got[2], 3, 16, scene.pair.qb);
  EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 8_KiB, 8_KiB, 5), -1);
  EXPECT_EQ(scene.pair.b.mismatch(scene.at_b, 32'768, 4096, 5), -1);
  EXPECT_EQ(scene.pair.a.mismatch(scene.at_a, 16'384, 4096, 5), -1);
  EXPECT_EQ(scene.pair.b.load(scene.at_b, 49'152), 3u);
}

TEST_P(Domain, ARequestAloneCompletesOnlyIfItIsSignaled) {
  WorkPair scene(GetParam(), in_domains());
  expect_requests_alone(scene);
}

TEST_P(Domain, ThousandsOfMessagesGoBothWays) {
  constexpr std::uint64_t kCount = 20'000;
  WorkPair scene(GetParam(), in_domains());
  for (std::uint64_t i = 0; i < kCount; i += 50) {
    scene.post_receives(i, 50, 8);
    ibv_wr_start(scene.work);
    for (std::uint64_t j = i; j < i + 50; ++j) {
      scene.next(j, j % 10 == 9 ? unsigned{IBV_SEND_SIGNALED} : 0u);
      ibv_wr_send(scene.work);
      ibv_wr_set_inline_data(scene.work, &j, sizeof(j));
    }
    ASSERT_EQ(ibv_wr_complete(scene.work), 0);
    const auto got = scene.received(50);
    for (std::uint64_t j = 0; j < 50; ++j) ASSERT_EQ(got[j].wr_id, i + j);
    EXPECT_EQ(scene.pair.b.load(scene.at_b, 49 * 8), i + 49);
    EXPECT_EQ(scene.sent(5).size(), 5u);
  }
}

TEST_P(Domain, WhatWaitsIsMovedOnWhileItsThreadDoesSomethingElse) {
  WorkPair scene(GetParam(), in_domains());
  ASSERT_EQ(scene.pair.a.call<&Endpoint::arm>(scene.pair.qa.send_cq, 0), 0);
  expect_posted(scene.pair.a.post_send(scene.pair.qa, send(1, slice(scene.at_a, 0, 64))));
  scene.post_receives(2, 1, 64);
  EXPECT_EQ(scene.pair.a.call<&Endpoint::take_event>(scene.pair.qa.send_cq, kDefaultWaitMs),
            scene.pair.qa.send_cq);
  expect_wc(scene.sent(1)[0], 1, IBV_WC_SEND, scene.pair.qa);
  expect_receive(scene.received(1)[0], 2, 64, scene.pair.qb);
}

TEST_P(Domain, NoWakeupIsLost) {
  constexpr std::uint32_t kRounds = 2000;
  Pair pair(GetParam(), in_domains());
  std::thread at_b(
      [&] { pair.b.call<&Endpoint::ping_pong_by_events>(pair.qb.id, kRounds, 8, false); });
  pair.a.call<&Endpoint::ping_pong_by_events>(pair.qa.id, kRounds, 8, true);
  at_b.join();
}

TEST_P(Domain, AQueuePairFromOutsideMayShareItsCompletionQueue) {
  constexpr std::uint64_t kCount = 5000;
  WorkPair scene(GetParam(), in_domains());
  QpWish outside;
  outside.send_cq = scene.pair.qa.send_cq;
  const auto [qa, qb] = scene.pair.add_qps(outside, {});
  const auto post = [&](const QpInfo& qp, std::uint64_t first) {
    for (std::uint64_t i = 0; i < kCount;) {
      const Posted posted = scene.pair.a.here().post_send(
          qp.id, {write(first + i, slice(scene.at_a, 0, 8), scene.at_b, first % 4096)});
      if (posted.error == 0)
        ++i;
      else
        std::this_thread::yield();
    }
  };
  std::thread elsewhere([&, other = qa] { post(other, 8 * kCount); });
  std::thread here([&] { post(scene.pair.qa, 0); });
  std::uint64_t inside_seen = 0;
  std::uint64_t outside_seen = 0;
  while (inside_seen + outside_seen < 2 * kCount) {
    const ibv_wc wc = scene.sent(1)[0];
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.qp_num == qa.qpn) {
      ASSERT_EQ(wc.wr_id, 8 * kCount + outside_seen++);
    } else {
      ASSERT_EQ(wc.wr_id, inside_seen++);
    }
  }
  elsewhere.join();
  here.join();
}

/// Datagrams of all sizes, so many in flight at once.
TEST_P(Domain, DatagramsGoTheirWay) {
  constexpr std::uint64_t kRounds = 1000;
  PairWish wish = in_domains();
  wish.a.type = wish.b.type = IBV_QPT_UD;
  wish.a.send_ops = 0;
  Pair pair(GetParam(), wish);
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 8_KiB);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 64_KiB);
  const std::int32_t ah = pair.a.call<&Endpoint::create_ah>(pair.qb, 0);
  pair.a.fill(at_a, 0, 4_KiB, 7);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t size = round % 50 == 49 ? 4_KiB : round % 57;
    std::vector<Receive> receives;
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < 8; ++i) {
      receives.push_back(receive(i, slice(at_b, i * 8_KiB, 8_KiB)));
      requests.push_back(datagram(i, slice(at_a, 0, size), ah, pair.qb.qpn, kQkey));
    }
    expect_posted(pair.b.post_receive(pair.qb, receives));
    expect_posted(pair.a.post_send(pair.qa, requests));
    const auto got = pair.b.poll_receives(pair.qb, 8);
    const auto sent = pair.a.poll_sends(pair.qa, 8);
    for (std::uint64_t i = 0; i < 8; ++i) {
      expect_wc(sent[i], i, IBV_WC_SEND, pair.qa);
      expect_receive(got[i], i, 40 + size, pair.qb);
    }
    if (size != 0) {
      ASSERT_EQ(pair.b.mismatch(at_b, 7 * 8_KiB + 40, size, 7), -1);
    }
  }
}

TEST_P(Domain, AnXrcInitiatorDoesWhatItIsAsked) {
  constexpr std::uint64_t kRounds = 500;
  PairWish unconnected;
  unconnected.connected = false;
  Pair pair(GetParam(), unconnected);
  QpWish wish;
  wish.type = IBV_QPT_XRC_SEND;
  wish.in_domain = 1;
  const QpInfo sender = pair.a.create_qp(wish);
  wish = {};
  wish.type = IBV_QPT_XRC_RECV;
  const QpInfo target = pair.b.create_qp(wish);
  pair.a.connect(sender, target);
  pair.b.connect(target, sender);
  SrqWish shared;
  shared.xrc = 1;
  const SrqInfo queue = pair.b.create_srq(shared);
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 16_KiB);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 16_KiB);
  pair.a.fill(at_a, 0, 16_KiB, 7);
  const auto to_queue = [&](Request request) {
    request.remote_srqn = queue.srqn;
    return request;
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t size = round % 50 == 49 ? 16_KiB : 1 + round % 56;
    expect_posted(pair.b.post_srq_receive(queue, {receive(round, slice(at_b, 0, 16_KiB))}));
    expect_posted(
        pair.a.post_send(sender, {to_queue(send(1, slice(at_a, 0, size))),
                                  to_queue(write(2, slice(at_a, 0, 8), at_b, 16_KiB - 8))}));
    const auto sent = pair.a.poll_sends(sender, 2);
    expect_wc(sent[0], 1, IBV_WC_SEND, sender);
    expect_wc(sent[1], 2, IBV_WC_RDMA_WRITE, sender);
    const ibv_wc got = pair.b.call<&Endpoint::poll>(queue.cq, 1u, kDefaultWaitMs)[0];
    EXPECT_EQ(got.status, IBV_WC_SUCCESS);
    EXPECT_EQ(got.wr_id, round);
    EXPECT_EQ(got.byte_len, size);
    ASSERT_EQ(pair.b.mismatch(at_b, 0, size < 16_KiB ? size : 16_KiB - 8, 7), -1);
  }
}

TEST_P(DomainStorm, NothingIsTouchedAfterDeregAfterDestroyAfterErrorOrReset) {
  run_dereg_storm(GetParam(), 24, true);
}

/// The mark of a domain's thread, "I may be copying", is a plain store, which its processor may
/// keep to itself until after it has found the key good. Whoever takes the key away must not take
/// that for quiet: a copy that begins in this moment is long, and he sees it go on. The mark waits
/// behind stores to memory that is in no cache, so that the moment is long, too.
class DomainMark : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 16_KiB;  // the longest copy on the way without any fence

  void SetUp() override {
#ifdef VBT_UNDER_THREAD_SANITIZER
    GTEST_SKIP() << "looks at memory while it is written to, which is what it is about";
#endif
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two processors";
  }
  static PairWish in_domain() {
    PairWish wish;
    wish.a.in_domain = 1;
    return wish;
  }

  /// Writes of `a` to what `show` opens, until one fails; `hide` closes it, and says whether it did.
  /// How often memory was written to after it was closed.
  template <class Show, class Hide>
  std::uint32_t late_writes(Show show, Hide hide) {
    constexpr std::uint32_t kRounds = 6000;
    const RegionInfo from = pair_.a.allocate(MemoryKind::kMapped, kBytes);
    ibv_qp* const qp = pair_.a.here().qp(pair_.qa.id);
    auto* const source = reinterpret_cast<std::uint64_t*>(from.address + kBytes) - 1;
    auto* const target = reinterpret_cast<std::uint64_t*>(whole_.address + kBytes) - 1;
    const auto last = [target] { return __atomic_load_n(target, __ATOMIC_ACQUIRE); };
    std::atomic<std::uint32_t> key{0};  // 0: nothing to do
    std::atomic<bool> over{false};
    // Writes without a pause, each time something else, until one fails.
    std::thread domain([&] {
      constexpr std::size_t kStores = 48, kStride = 4096 + 64, kFar = std::size_t{32} << 20;
      std::vector<unsigned char> far(kFar);
      std::size_t at = 0;
      std::uint64_t number = 0;
      while (!over.load()) {
        const std::uint32_t rkey = key.load();
        if (rkey == 0) continue;
        ibv_sge sge{from.address, kBytes, from.lkey};
        ibv_send_wr wr{};
        ibv_send_wr* bad;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.wr.rdma = {whole_.address, rkey};
        ibv_wc wc{};
        do {
          __atomic_store_n(source, ++number, __ATOMIC_RELEASE);
          for (std::size_t i = 0; i < kStores; ++i, at = (at + kStride) % kFar)
            __atomic_store_n(&far[at], static_cast<unsigned char>(number), __ATOMIC_RELAXED);
          if (ibv_post_send(qp, &wr, &bad) != 0) break;
          while (ibv_poll_cq(qp->send_cq, 1, &wc) == 0) {
          }
        } while (wc.status == IBV_WC_SUCCESS);
        key.store(0);
      }
    });
    std::uint32_t late = 0;
    // A machine that has little time for us gives fewer chances.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    for (std::uint32_t round = 0;
         round < kRounds && late == 0 && std::chrono::steady_clock::now() < end; ++round) {
      const RegionInfo shown = show();
      const std::uint64_t before = last();
      key.store(shown.rkey);
      while (last() == before && key.load() != 0) {  // it could not be posted at all
      }
      for (std::uint32_t i = round % 64; i != 0; --i) (void)last();
      const bool hidden = hide(shown);
      const std::uint64_t then = last();
      while (key.load() != 0) {
      }
      late += hidden && last() != then;
      pair_.reconnect();
    }
    over.store(true);
    domain.join();
    return late;
  }

  Pair pair_{{Placement::kOneContext, MemoryKind::kMapped}, in_domain()};
  const RegionInfo whole_ =
      pair_.b.allocate(MemoryKind::kMapped, kBytes, kAllAccess | IBV_ACCESS_MW_BIND);
};

TEST_F(DomainMark, IsSeenByADeregistrationThatComesInItsVeryMoment) {
  const auto hide = [this](const RegionInfo& shown) {
    EXPECT_EQ(pair_.b.deregister(shown), 0);
    return true;
  };
  EXPECT_EQ(late_writes([this] { return pair_.b.register_part(whole_, 0, kBytes); }, hide), 0u)
      << "memory was written after it was deregistered";
}

TEST_F(DomainMark, IsSeenByAnInvalidationThatComesInItsVeryMoment) {
  const WindowInfo window = pair_.b.allocate_window(IBV_MW_TYPE_2);
  const auto show = [&] {
    WindowBind bind;
    bind.window = window.id;
    bind.region = whole_.id;
    bind.rkey = ibv_inc_rkey(pair_.b.call<&Endpoint::window_key>(window.id));
    bind.address = whole_.address;
    bind.length = kBytes;
    bind.access = IBV_ACCESS_REMOTE_WRITE;
    EXPECT_EQ(pair_.b.bind_window(pair_.qb, bind), 0);
    EXPECT_EQ(pair_.b.poll_sends(pair_.qb, 1)[0].status, IBV_WC_SUCCESS);
    RegionInfo shown = whole_;
    shown.rkey = pair_.b.call<&Endpoint::window_key>(window.id);
    return shown;
  };
  // The writer's next request may already have ended the queue pair: then nothing is promised.
  const auto hide = [this](const RegionInfo& shown) {
    expect_posted(pair_.b.post_send(pair_.qb, local_invalidate(6, shown.rkey)));
    return pair_.b.poll_sends(pair_.qb, 1)[0].status == IBV_WC_SUCCESS;
  };
  EXPECT_EQ(late_writes(show, hide), 0u) << "memory was written after its window was closed";
}

TEST_P(DomainStorm, ItsQueuePairsEndWithTheirPeer) {
  AllowedLog peer_died("peer");
  Pair pair(GetParam(), in_domains());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 64);
  // Who has not been met cannot be seen dying.
  expect_posted(pair.a.post_send(pair.qa, write(0, slice(at_a, 0, 8), at_b)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 0, IBV_WC_RDMA_WRITE, pair.qa);
  expect_posted(pair.a.post_receive(pair.qa, receive(1, slice(at_a, 0, 8))));
  expect_posted(pair.a.post_send(pair.qa, send(2, slice(at_a, 0, 8))));  // finds no receive
  pair.b.child().kill_and_collect();
  EXPECT_EQ(pair.a.here().take_async_event(kDefaultWaitMs).type, IBV_EVENT_QP_FATAL);
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RETRY_EXC_ERR, pair.qa);
  expect_error(pair.a.poll_receives(pair.qa, 1)[0], 1, IBV_WC_WR_FLUSH_ERR, pair.qa);
}

TEST(DomainObjects, AreFreedInTheOrderOfTheirDependence) {
  AllowedLog still_used("in use");
  AllowedLog by_objects("used");
  Session session;
  ibv_td_init_attr none{};
  ibv_td* const td = ibv_alloc_td(session.context.get(), &none);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = ibv_alloc_pd(session.context.get());
  attr.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(session.context.get(), &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(attr.pd), EBUSY);
  ibv_cq* const cq = ibv_create_cq(session.context.get(), 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ibv_create_qp(parent, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->pd, parent);
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
  EXPECT_EQ(ibv_dealloc_pd(attr.pd), 0);
}

/// How often it was asked, by what for (verbatim/memory.h); the memory is the library's.
using Asked = std::map<std::uint64_t, int>;
void* note_request(ibv_pd*, void* asked, std::size_t, std::size_t, std::uint64_t type) {
  ++(*static_cast<Asked*>(asked))[type];
  return IBV_ALLOCATOR_USE_DEFAULT;
}
void free_nothing(ibv_pd*, void*, void*, std::uint64_t) {
  ADD_FAILURE() << "nothing was the program's";
}

TEST(DomainObjects, AProgramsAllocatorsAreAskedWhileEachKindOfQueueIsMade) {
  Session session;
  Asked asked;
  ibv_parent_domain_init_attr attr{};
  attr.pd = session.pd.get();
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  attr.alloc = note_request;
  attr.free = free_nothing;
  attr.pd_context = &asked;
  const PdHandle parent(ibv_alloc_parent_domain(session.context.get(), &attr));
  ASSERT_NE(parent, nullptr);
  const auto expect_asked = [&](vbt_resource only) {
    EXPECT_EQ(asked.size(), 1u);
    EXPECT_GT(asked[only], 0);
    asked.clear();
  };
  ibv_cq_init_attr_ex wish{};
  wish.cqe = 4;
  wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  wish.parent_domain = parent.get();
  const CqHandle cq(ibv_cq_ex_to_cq(ibv_create_cq_ex(session.context.get(), &wish)));
  ASSERT_NE(cq, nullptr);
  expect_asked(VBT_RESOURCE_CQ);
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  const SrqHandle srq(ibv_create_srq(parent.get(), &shared));
  ASSERT_NE(srq, nullptr);
  expect_asked(VBT_RESOURCE_SRQ);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr_ex init{};
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = parent.get();
    init.send_ops_flags = IBV_QP_EX_WITH_SEND;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = type;
    const QpHandle qp(ibv_create_qp_ex(session.context.get(), &init));
    ASSERT_NE(qp, nullptr);
    expect_asked(VBT_RESOURCE_QP);
  }
}

}  // namespace
}  // namespace verbatim::harness
