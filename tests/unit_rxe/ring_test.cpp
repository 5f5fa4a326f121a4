// SPDX-License-Identifier: BSD-2-Clause
// What the kernel says about a ring is checked before it is used, and whatever stands in the shared
// indices later, nothing outside of the ring is touched.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "providers/rxe/hot.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

using rxe::Consumer;
using rxe::Producer;
using rxe::Queue;

int map(FakeRing& ring, std::size_t least = 64) {
  Queue queue;
  return queue.map(ring.fd(), ring.place(), least);
}

TEST(RxeRing, IsMappedAsTheKernelDescribesIt) {
  FakeRing ring(3, 9);
  Queue queue;
  ASSERT_EQ(queue.map(ring.fd(), ring.place(), 208), 0);
  EXPECT_EQ(queue.capacity(), 7u);
  EXPECT_EQ(queue.element_size(), 512u);
}

TEST(RxeRing, RefusesADescriptionThatCannotBe) {
  FakeRing ring(3, 9);
  EXPECT_EQ(map(ring, 513), EPROTO) << "elements smaller than what they hold";
  for (const std::uint32_t mask : {6u, 15u, 0xffffu, UINT32_MAX}) {
    ring.mask_word() = mask;
    EXPECT_EQ(map(ring), EPROTO) << mask;
  }
  ring.mask_word() = 7;
  for (const std::uint32_t shift : {0u, 5u, 11u, 31u, 64u, UINT32_MAX}) {
    ring.shift_word() = shift;
    EXPECT_EQ(map(ring), EPROTO) << shift;
  }
  ring.shift_word() = 9;
  Queue queue;
  mminfo small = ring.place();
  small.size = 100;
  EXPECT_EQ(queue.map(ring.fd(), small, 64), EPROTO) << "no room for the header";
  EXPECT_FALSE(queue.mapped());
  EXPECT_EQ(map(ring), 0);
}

TEST(RxeRing, BelievesTheOtherSidesIndexOnlyInItsLowBits) {
  FakeRing ring(3, 9);
  Queue queue;
  ASSERT_EQ(queue.map(ring.fd(), ring.place(), 208), 0);
  for (const std::uint32_t wild : {8u, 0x80000003u, UINT32_MAX}) {
    ring.consumer_word() = wild;
    EXPECT_LE(Producer(queue).room(), 7u) << wild;
    ring.producer_word() = wild;
    EXPECT_LE(Consumer(queue).count(), 7u) << wild;
    auto& slot = Producer(queue).slot<unsigned char>();
    EXPECT_GE(&slot, queue.element(0));
    EXPECT_LE(&slot, queue.element(7));
  }
}

TEST(RxeRing, HoldsOneLessThanItHasSlotsWhereverItStarts) {
  for (std::uint32_t start = 0; start < 8; ++start) {
    FakeRing ring(3, 9);
    ring.start_at(start);
    Queue queue;
    ASSERT_EQ(queue.map(ring.fd(), ring.place(), 208), 0);
    for (std::uint32_t i = 0; i < 7; ++i) {
      Producer producer(queue);
      ASSERT_EQ(producer.room(), 7 - i);
      producer.slot<std::uint32_t>() = i;
      producer.advance();
      EXPECT_EQ(i == 0 ? ring.head() : ring.slot(start), i == 0 ? nullptr : ring.slot(start))
          << "nothing is seen before it is published";
      producer.publish();
    }
    EXPECT_EQ(Producer(queue).room(), 0u);
    for (std::uint32_t i = 0; i < 7; ++i) {
      ASSERT_NE(ring.head(), nullptr);
      EXPECT_EQ(*reinterpret_cast<std::uint32_t*>(ring.head()), i);
      ring.consume();
    }
    EXPECT_EQ(ring.head(), nullptr);
    EXPECT_EQ(Producer(queue).room(), 7u);
  }
}

// Under ThreadSanitizer this is the proof of the order: every byte of an element is written before
// it is seen, and read before its slot is written again.
TEST(RxeRing, RequestsArriveWholeAndInOrder) {
  constexpr std::uint64_t kRequests = 20000;
  FakeQp fake(IBV_QPT_RC, 4);
  fake.send.use_mapping_of(fake.qp->send_ring);
  std::uint64_t wrong = 0;
  std::thread kernel([&] {
    for (std::uint64_t next = 0; next < kRequests;) {
      unsigned char* const element = fake.send.head();
      if (element == nullptr) {
        std::this_thread::yield();
        continue;
      }
      const SentView sent(element);
      wrong += sent.wr_id() != next || sent.length() != 8 || sent.u64(208) != ~next;
      ++next;
      fake.send.consume();
    }
  });
  for (std::uint64_t i = 0; i < kRequests;) {
    std::uint64_t bytes = ~i;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(&bytes), 8, 0};
    ibv_send_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    ibv_send_wr* bad = nullptr;
    const int error = rxe::post_send(fake.plain(), &wr, &bad);
    if (error == 0)
      ++i;
    else if (error == ENOMEM)
      std::this_thread::yield();
    else
      FAIL() << error;
  }
  kernel.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(fake.system.rung.load(), static_cast<int>(kRequests)) << "one call for each list";
}

TEST(RxeRing, CompletionsArriveWholeAndInOrder) {
  constexpr std::uint64_t kCompletions = 20000;
  FakeHost host;
  FakeRing ring(4, 6);
  rxe::Cq cq;
  cq.plain.context = host.context.handle();
  ASSERT_EQ(cq.ring.map(ring.fd(), ring.place(), sizeof(ib_uverbs_wc)), 0);
  ring.use_mapping_of(cq.ring);
  std::thread kernel([&] {
    for (std::uint64_t i = 0; i < kCompletions;) {
      ib_uverbs_wc wc{};
      wc.wr_id = i;
      wc.qp_num = static_cast<std::uint32_t>(~i);
      if (ring.produce(&wc, sizeof wc))
        ++i;
      else
        std::this_thread::yield();
    }
  });
  for (std::uint64_t next = 0; next < kCompletions;) {
    ibv_wc wcs[5];
    const int found = rxe::poll_cq(&cq.plain, 5, wcs);
    ASSERT_GE(found, 0);
    if (found == 0) std::this_thread::yield();
    for (int i = 0; i < found; ++i, ++next) {
      ASSERT_EQ(wcs[i].wr_id, next);
      ASSERT_EQ(wcs[i].qp_num, static_cast<std::uint32_t>(~next));
    }
  }
  kernel.join();
}

}  // namespace
}  // namespace verbatim::rxe_test
