// SPDX-License-Identifier: BSD-2-Clause
//
// Every verb on every object from every thread, without a lock of the application's (man
// ibv_alloc_td): nothing lost, nothing doubled. Under ThreadSanitizer these are the tests that
// matter.
#include <atomic>

#include "tests/conformance/crew.hpp"

namespace verbatim::harness {
namespace {

class RcThreads : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcThreads, on_every_device(each_way()));

class RcThreadsAtBothEnds : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcThreadsAtBothEnds, on_every_device(within_a_process()));

TEST_P(RcThreads, ManyPostOnOneQueuePairAndManyPollOneQueue) {
  PairWish wish;
  wish.a.send_depth = 64;
  Pair pair(GetParam(), wish);
  Endpoint& a = pair.a.here();
  const RegionInfo local = pair.a.allocate(GetParam().memory, kPosters * kEach * 8);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, (kPosters + 1) * 8);
  Tally tally(kPosters * kEach);
  PatientPoster poster(tally);
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::uint64_t id = p * kEach + i;
          const Slice word = slice(local, id * 8, 8);
          if (i % 3 == 0) {
            poster.post(a, pair.qa.id, fetch_add(id, word, remote, kPosters * 8, 1));
          } else {
            a.store(local.id, id * 8, i + 1);
            const Request request = write(id, word, remote, p * 8);
            poster.post(a, pair.qa.id, i % 2 == 0 ? request : request.with(IBV_SEND_INLINE));
          }
        }
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p) {
      crew.add([&] { poll_until_complete(a, pair.qa.send_cq, tally); });
    }
  }
  tally.expect_each_once();
  EXPECT_TRUE(a.poll_once(pair.qa.send_cq, 16).empty());
  const std::uint64_t adds = kPosters * ((kEach + 2) / 3);
  EXPECT_EQ(pair.b.load(remote, kPosters * 8), adds);
  // Each thread's own writes stayed in order: its last one stays.
  const std::uint64_t last = (kEach - 1) % 3 == 0 ? kEach - 1 : kEach;
  for (std::uint32_t p = 0; p < kPosters; ++p) EXPECT_EQ(pair.b.load(remote, p * 8), last);
}

TEST_P(RcThreadsAtBothEnds, ManySendAndManyReceiveOnOneConnection) {
  constexpr std::uint64_t kSlot = 256;
  constexpr std::uint32_t kReceives = 64;
  PairWish wish;
  wish.a.send_depth = 64;
  wish.b.receive_depth = kReceives;
  wish.link_b.min_rnr_timer = 1;
  Pair pair(GetParam(), wish);
  Endpoint& a = pair.a.here();
  Endpoint& b = pair.b.here();
  const RegionInfo from = pair.a.allocate(GetParam().memory, kPosters * kEach * kSlot);
  const RegionInfo to = pair.b.allocate(GetParam().memory, kReceives * kSlot);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(to, i * kSlot, kSlot))));
  }
  Tally sent(kPosters * kEach);
  Tally arrived(kPosters * kEach);
  PatientPoster poster(sent);
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::uint64_t id = p * kEach + i;
          const std::uint64_t size = 8 + (id * 13) % (kSlot - 8);
          a.fill(from.id, id * kSlot + 8, size - 8, static_cast<std::uint32_t>(id));
          a.store(from.id, id * kSlot, id);
          poster.post(a, pair.qa.id, send(id, slice(from, id * kSlot, size)));
        }
      });
    }
    crew.add([&] { poll_until_complete(a, pair.qa.send_cq, sent); });
    crew.add([&] { poll_until_complete(a, pair.qa.send_cq, sent); });
    for (std::uint32_t p = 0; p < kPollers; ++p) {
      crew.add([&] {
        ASSERT_TRUE(wait_until([&] {
          for (ibv_wc wc : b.poll_once(pair.qb.receive_cq, 3)) {
            const std::uint64_t place = wc.wr_id * kSlot;
            const std::uint64_t id = b.load(to.id, place);
            EXPECT_EQ(wc.byte_len, 8 + (id * 13) % (kSlot - 8));
            EXPECT_EQ(b.mismatch(to.id, place + 8, wc.byte_len - 8, static_cast<std::uint32_t>(id)),
                      -1);
            const Receive again = receive(wc.wr_id, slice(to, place, kSlot));
            wc.wr_id = id;
            arrived.count(wc);
            EXPECT_EQ(b.post_receive(pair.qb.id, {again}).error, 0);
          }
          return arrived.complete();
        }));
      });
    }
  }
  sent.expect_each_once();
  arrived.expect_each_once();
}

TEST_P(RcThreads, EachWithItsOwnQueuePairShareOneQueue) {
  Pair pair(GetParam());
  Endpoint& a = pair.a.here();
  QpWish wish_a;
  wish_a.send_cq = a.create_cq(4096, 0);
  const RegionInfo local = pair.a.allocate(GetParam().memory, kPosters * 4_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kPosters * 4_KiB);
  std::vector<QpInfo> qps;
  for (std::uint32_t p = 0; p < kPosters; ++p) qps.push_back(pair.add_qps(wish_a, {}).first);
  Tally tally(kPosters * kEach);
  PatientPoster poster(tally);
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::uint64_t size = 1 + (i * 41) % 4_KiB;
          const Slice piece = slice(local, p * 4_KiB, size);
          poster.post(a, qps[p].id,
                      i % 2 == 0 ? write(p * kEach + i, piece, remote, p * 4_KiB)
                                 : read(p * kEach + i, piece, remote, p * 4_KiB));
        }
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p) {
      crew.add([&] { poll_until_complete(a, wish_a.send_cq, tally); });
    }
  }
  tally.expect_each_once();
}

TEST_P(RcThreadsAtBothEnds, ReceivesThatArePostedWhileTheQueuePairFailsAreAllFlushed) {
  // IBTA 10.3.1.6; man ibv_post_recv: a thread that posts need not know that another has failed it.
  constexpr std::uint32_t kDepth = 128, kRounds = 100, kMostInList = 32;
  Pair pair(GetParam());
  Endpoint& b = pair.b.here();
  ibv_qp* const qp = b.qp(pair.qb.id);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  ibv_sge room{to.address, 64, to.lkey};
  std::vector<ibv_recv_wr> list(kMostInList);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t in_list = round % kMostInList + 1;
    for (std::uint32_t i = 0; i < in_list; ++i)
      list[i] = {i, i + 1 < in_list ? &list[i + 1] : nullptr, &room, 1};
    std::atomic<std::uint32_t> posted{0}, flushed{0};
    std::atomic<bool> all{false};
    {
      Crew crew;
      crew.add([&] {
        const RaiseAtEnd at_end{all};
        for (std::uint32_t n = 0; n + in_list <= kDepth; n += in_list) {
          ibv_recv_wr* bad;
          ASSERT_EQ(ibv_post_recv(qp, list.data(), &bad), 0);
          posted += in_list;
        }
      });
      crew.add([&] {
        (void)wait_until([&] {
          for (const ibv_wc& wc : b.poll_once(pair.qb.receive_cq, 16)) {
            EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
            ++flushed;
          }
          return all && flushed == posted;
        });
      });
      while (posted < round % kDepth && !all) {
      }
      ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
    }
    ASSERT_EQ(flushed, posted) << "round " << round << ", lists of " << in_list;
    pair.reconnect();
  }
}

TEST_P(RcThreads, RegisterAndDestroyBesideTraffic) {
  Pair pair(GetParam());
  Endpoint& a = pair.a.here();
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB);
  std::atomic<bool> stop{false};
  {
    Crew crew;
    for (int t = 0; t < 2; ++t) {
      crew.add([&] {
        std::vector<unsigned char> memory(16'384);
        while (!stop.load()) {
          ibv_mr* mr = ibv_reg_mr(a.pd(), memory.data(), memory.size(), kAllAccess);
          ASSERT_NE(mr, nullptr);
          ibv_cq* cq = ibv_create_cq(a.context(), 16, nullptr, nullptr, 0);
          ASSERT_NE(cq, nullptr);
          ibv_qp_init_attr init{};
          init.send_cq = init.recv_cq = cq;
          init.cap = {8, 8, 1, 1, 0};
          init.qp_type = IBV_QPT_RC;
          ibv_qp* qp = ibv_create_qp(a.pd(), &init);
          ASSERT_NE(qp, nullptr);
          EXPECT_EQ(ibv_destroy_qp(qp), 0);
          EXPECT_EQ(ibv_destroy_cq(cq), 0);
          EXPECT_EQ(ibv_dereg_mr(mr), 0);
        }
      });
    }
    crew.add([&] {
      const RaiseAtEnd end{stop};
      const auto failures = a.storm(pair.qa.id, write(1, slice(local, 0, 3000), remote), 16,
                                    scaled_rounds(1000u, 200u));
      EXPECT_TRUE(failures.empty()) << describe(failures);
    });
  }
}

}  // namespace
}  // namespace verbatim::harness
