// SPDX-License-Identifier: BSD-2-Clause
//
// Completion counters (man ibv_create_comp_cntr, ibv_qp_attach_comp_cntr, ibv_query_comp_cntr_caps
// of rdma-core 65).
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kSend = IBV_QP_ATTACH_COMP_CNTR_OP_SEND;
constexpr std::uint32_t kRecv = IBV_QP_ATTACH_COMP_CNTR_OP_RECV;
constexpr std::uint32_t kRead = IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ;
constexpr std::uint32_t kWrite = IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE;

class CompletionCounters : public OnDevice {
 protected:
  void SetUp() override {
    SKIP_IF(unless_unsupported("completion counters", ibv_query_comp_cntr_caps(context(), &caps_)));
    region_ = mr(memory_, sizeof memory_, kAllAccess);
    ASSERT_NE(region_, nullptr);
  }
  static int attach(ibv_qp* qp, ibv_comp_cntr* counter, std::uint32_t ops) {
    ibv_qp_attach_comp_cntr_attr attr{0, ops};
    return ibv_qp_attach_comp_cntr(qp, counter, &attr);
  }
  static std::uint64_t successes(ibv_comp_cntr* counter) {
    std::uint64_t value = 0;
    EXPECT_EQ(ibv_read_comp_cntr(counter, &value), 0);
    return value;
  }
  static std::uint64_t errors(ibv_comp_cntr* counter) {
    std::uint64_t value = 0;
    EXPECT_EQ(ibv_read_err_comp_cntr(counter, &value), 0);
    return value;
  }
  /// A look may be a little behind (NOTES): looks until it is there, and no further.
  template <class Look>
  static void expect_soon(Look look, ibv_comp_cntr* counter, std::uint64_t value) {
    EXPECT_TRUE(wait_until([&] { return look(counter) >= value; }));
    EXPECT_EQ(look(counter), value);
  }

  struct Two {
    ibv_qp* a;
    ibv_qp* b;
  };
  Two two(ibv_qp_type type = IBV_QPT_RC, ibv_srq* from = nullptr) {
    return {qp(type, cq_a()), qp(type, cq_b(), from)};
  }
  void connect(Two pair) {
    ASSERT_EQ(lead(pair.a, IBV_QPS_RTS, pair.b), 0);
    ASSERT_EQ(lead(pair.b, IBV_QPS_RTS, pair.a), 0);
  }
  ibv_cq* cq_a() { return cq_a_ != nullptr ? cq_a_ : cq_a_ = cq(); }
  ibv_cq* cq_b() { return cq_b_ != nullptr ? cq_b_ : cq_b_ = cq(); }

  /// `length` bytes from the start of the memory; WRITE to and READ from its second half.
  int post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t length, unsigned flags = 0,
           std::uint32_t rkey = 0) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_), length, region_->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.imm_data = htobe32(77);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_) + sizeof memory_ / 2;
    wr.wr.rdma.rkey = rkey == 0 ? region_->rkey : rkey;
    if (qp->qp_type == IBV_QPT_UD) wr.wr.ud = {ah_to_self(), peer_qpn_, kQkey};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  int receive(ibv_qp* qp, std::uint64_t wr_id, std::uint64_t at = 0) {
    return post_receive(qp, wr_id, memory_ + sizeof memory_ / 2 + at, 64, region_->lkey);
  }

  ibv_comp_cntr_caps caps_{};
  ibv_mr* region_ = nullptr;
  ibv_cq* cq_a_ = nullptr;
  ibv_cq* cq_b_ = nullptr;
  std::uint32_t peer_qpn_ = 0;
  alignas(4096) static inline char memory_[8192];
};
RUN_ON_EVERY_DEVICE(CompletionCounters);

TEST_P(CompletionCounters, AreDescribed) {
  EXPECT_NE(caps_.max_value, 0u);
  EXPECT_NE(caps_.max_counters, 0u);
  EXPECT_NE(caps_.supported_qp_attach_ops, 0u);
}

TEST_P(CompletionCounters, BeginAtZero) {
  ibv_comp_cntr* const made = counter();
  EXPECT_EQ(made->context, context());
  EXPECT_EQ(successes(made), 0u);
  EXPECT_EQ(errors(made), 0u);
}

TEST_P(CompletionCounters, AreSetAndIncrementedEachOfTheirCounts) {
  ibv_comp_cntr* const made = counter();
  EXPECT_EQ(ibv_set_comp_cntr(made, 40), 0);
  EXPECT_EQ(ibv_inc_comp_cntr(made, 2), 0);
  EXPECT_EQ(ibv_set_err_comp_cntr(made, 5), 0);
  EXPECT_EQ(ibv_inc_err_comp_cntr(made, 1), 0);
  EXPECT_EQ(successes(made), 42u);
  EXPECT_EQ(errors(made), 6u);
}

TEST_P(CompletionCounters, GoOnFromZeroBeyondTheirMost) {
  ibv_comp_cntr* const made = counter();
  EXPECT_EQ(ibv_set_comp_cntr(made, caps_.max_value), 0);
  EXPECT_EQ(ibv_inc_comp_cntr(made, 1), 0);
  EXPECT_EQ(successes(made), 0u);
}

TEST_P(CompletionCounters, CountRequestsByOperationSignaledOrNot) {
  const Two pair = two();
  ibv_comp_cntr* const sends = counter();
  ibv_comp_cntr* const writes = counter();
  ibv_comp_cntr* const reads = counter();
  ASSERT_EQ(attach(pair.a, sends, kSend), 0);
  ASSERT_EQ(attach(pair.a, writes, kWrite), 0);
  ASSERT_EQ(attach(pair.a, reads, kRead), 0);
  connect(pair);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(receive(pair.b, i), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_SEND_WITH_IMM, 64, IBV_SEND_SIGNALED), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 0), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 4096), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE_WITH_IMM, 16), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_READ, 512, IBV_SEND_SIGNALED), 0);
  (void)poll(cq_a(), 2);
  EXPECT_EQ(successes(sends), 2u);
  EXPECT_EQ(successes(writes), 3u);
  EXPECT_EQ(successes(reads), 1u);
  EXPECT_EQ(errors(sends) + errors(writes) + errors(reads), 0u);
  (void)poll(cq_b(), 3);
}

TEST_P(CompletionCounters, OfBytesCountBytes) {
  const Two pair = two();
  ibv_comp_cntr* const sent = counter(IBV_COMP_CNTR_TYPE_BYTES);
  ibv_comp_cntr* const received = counter(IBV_COMP_CNTR_TYPE_BYTES);
  ASSERT_EQ(attach(pair.a, sent, kSend | kWrite), 0);
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  ASSERT_EQ(receive(pair.b, 0), 0);
  ASSERT_EQ(receive(pair.b, 1), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 1000), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_SEND, 64), 0);
  expect_soon(successes, sent, 1072);
  expect_soon(successes, received, 72);
}

TEST_P(CompletionCounters, CountSendsOfEachTransport) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    SCOPED_TRACE(name_of(type));
    const Two pair = two(type);
    ibv_comp_cntr* const sends = counter();
    ASSERT_EQ(attach(pair.a, sends, kSend), 0);
    connect(pair);
    peer_qpn_ = pair.b->qp_num;
    constexpr std::uint64_t kCount = 40;  // more than the queue pair's receives
    std::uint64_t posted = 0;
    for (; posted < kCount; ++posted) {
      (void)receive(pair.b, posted);
      ASSERT_EQ(post(pair.a, IBV_WR_SEND, 16, IBV_SEND_SIGNALED), 0);
      (void)poll(cq_a(), 1);
      ibv_wc wc;
      (void)ibv_poll_cq(cq_b(), 1, &wc);
    }
    expect_soon(successes, sends, kCount);
    EXPECT_EQ(destroy(pair.a), 0);
    EXPECT_EQ(destroy(pair.b), 0);
  }
}

TEST_P(CompletionCounters, CountWorkCallsToo) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd();
  init.send_cq = init.recv_cq = cq_a();
  init.cap = {16, 16, 1, 1, 32};
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  const QpHandle made(ibv_create_qp_ex(context(), &init));
  if (!made) SKIP_IF(unless_unsupported("ibv_wr_*", errno));
  ibv_comp_cntr* const writes = counter();
  ASSERT_EQ(attach(made.get(), writes, kWrite), 0);
  ASSERT_EQ(lead(made.get(), IBV_QPS_RTS), 0);
  ibv_qp_ex* const by_calls = ibv_qp_to_qp_ex(made.get());
  for (int batch = 0; batch < 3; ++batch) {
    ibv_wr_start(by_calls);
    for (unsigned i = 0; i < 5; ++i) {
      by_calls->wr_id = i;
      by_calls->wr_flags = i == 4 ? IBV_SEND_SIGNALED : 0;
      ibv_wr_rdma_write(by_calls, region_->rkey, reinterpret_cast<std::uintptr_t>(memory_) + 4096);
      ibv_wr_set_sge(by_calls, region_->lkey, reinterpret_cast<std::uintptr_t>(memory_), 8);
    }
    ASSERT_EQ(ibv_wr_complete(by_calls), 0);
    (void)poll(cq_a(), 1);
  }
  EXPECT_EQ(successes(writes), 15u);
}

TEST_P(CompletionCounters, CountReceivesThatNobodyPolls) {
  const Two pair = two();
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  // Polled, not polled, polled again: what a look at the counter takes is not lost to the queue.
  std::uint64_t wr_id = 0;
  std::uint64_t total = 0;
  for (const int count : {12, 16, 3, 16}) {
    const std::uint64_t first = wr_id;
    std::memset(memory_ + 4096, 0, 4096);
    for (int i = 0; i < count; ++i, ++wr_id) {
      ASSERT_EQ(receive(pair.b, wr_id, 64 * (wr_id - first)), 0);
      std::memset(memory_, static_cast<int>(wr_id + 1), 64);
      ASSERT_EQ(post(pair.a, i % 2 == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 32,
                     IBV_SEND_INLINE | IBV_SEND_SIGNALED),
                0);
    }
    total += static_cast<std::uint64_t>(count);
    expect_soon(successes, received, total);
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(memory_[4096 + 64 * i], static_cast<char>(first + static_cast<unsigned>(i) + 1))
          << "counted, but not there";
    (void)poll(cq_a(), static_cast<std::size_t>(count));
    const std::vector<ibv_wc> found = poll(cq_b(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(found[i].wr_id, first + i);
      EXPECT_EQ(found[i].opcode, IBV_WC_RECV);
      EXPECT_EQ(found[i].byte_len, 32u);
      EXPECT_EQ(found[i].qp_num, pair.b->qp_num);
      EXPECT_EQ(found[i].wc_flags, i % 2 == 0 ? unsigned{IBV_WC_WITH_IMM} : 0u);
      if (i % 2 == 0) {
        EXPECT_EQ(found[i].imm_data, htobe32(77));
      }
    }
    EXPECT_EQ(successes(received), total) << "polling counts nothing twice";
  }
}

TEST_P(CompletionCounters, CountReceivesThatArePolledFirst) {
  const Two pair = two();
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(receive(pair.b, i), 0);
    ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8, IBV_SEND_SIGNALED), 0);
    (void)poll(cq_a(), 1);
    ASSERT_EQ(poll(cq_b(), 1)[0].wr_id, i);
  }
  EXPECT_EQ(successes(received), 100u);
}

TEST_P(CompletionCounters, CountLongMessages) {
  const Two pair = two();
  ibv_comp_cntr* const received = counter();
  ibv_comp_cntr* const sent = counter();
  ASSERT_EQ(attach(pair.a, sent, kSend), 0);
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  std::vector<char> from(1 << 20, 'x'), to(1 << 20);
  ibv_mr* const source = mr(from.data(), from.size(), 0);
  ibv_mr* const target = mr(to.data(), to.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(post_receive(pair.b, 1, to.data(), 1 << 20, target->lkey), 0);
  ASSERT_EQ(post_send(pair.a, 2, from.data(), 1 << 20, source->lkey), 0);
  // Neither queue is polled meanwhile.
  expect_soon(successes, received, 1);
  expect_soon(successes, sent, 1);
  EXPECT_EQ(from, to);
  (void)poll(cq_a(), 1);
  EXPECT_EQ(poll(cq_b(), 1)[0].byte_len, 1u << 20);
}

TEST_P(CompletionCounters, CountReceivesOfASharedQueue) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq* const shared = srq();
  const Two pair = two(IBV_QPT_RC, shared);
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  for (std::uint64_t i = 0; i < 8; ++i) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_) + 4096, 64, region_->lkey};
    ibv_recv_wr wr{i, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(shared, &wr, &bad), 0);
    ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8), 0);
  }
  expect_soon(successes, received, 8);
  EXPECT_EQ(poll(cq_b(), 8).back().wr_id, 7u);
}

TEST_P(CompletionCounters, TakeNoEventFromAnArmedQueue) {
  ibv_comp_channel* const with = channel();
  cq_b_ = cq(64, with);
  const Two pair = two();
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  connect(pair);
  std::uint64_t total = 0;
  for (const bool arms_first : {true, false}) {
    for (const int solicited_only : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << arms_first << ' ' << solicited_only);
      if (arms_first) {
        ASSERT_EQ(ibv_req_notify_cq(cq_b_, solicited_only), 0);
      }
      ASSERT_EQ(receive(pair.b, 1), 0);
      ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8, solicited_only != 0 ? IBV_SEND_SOLICITED : 0), 0);
      expect_soon(successes, received, ++total);
      if (!arms_first) {
        ASSERT_EQ(ibv_req_notify_cq(cq_b_, solicited_only), 0);
      }
      pollfd readable{with->fd, POLLIN, 0};
      ASSERT_EQ(::poll(&readable, 1, kDefaultWaitMs), 1);
      ibv_cq* which;
      void* cookie;
      ASSERT_EQ(ibv_get_cq_event(with, &which, &cookie), 0);
      ibv_ack_cq_events(which, 1);
      (void)poll(cq_b_, 1);
    }
  }
}

TEST_P(CompletionCounters, CountWhatEndsInError) {
  expect_complaints();
  const Two pair = two();
  ibv_comp_cntr* const writes = counter();
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.a, writes, kWrite), 0);
  ASSERT_EQ(attach(pair.a, received, kRecv), 0);
  connect(pair);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(receive(pair.a, i), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 8), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 8, 0, region_->rkey ^ 0xff), 0);
  expect_soon(errors, writes, 1);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 8), 0) << "flushes";
  expect_soon(errors, writes, 2);
  EXPECT_EQ(successes(writes), 1u);
  expect_soon(errors, received, 4);
  EXPECT_EQ(successes(received), 0u);
  for (const ibv_wc& wc : poll(cq_a(), 6)) EXPECT_NE(wc.status, IBV_WC_SUCCESS);
}

TEST_P(CompletionCounters, OfSeveralQueuePairsAddUp) {
  const Two first = two();
  const Two second = two();
  ibv_comp_cntr* const all = counter();
  for (ibv_qp* const qp : {first.a, second.a}) ASSERT_EQ(attach(qp, all, kSend), 0);
  for (ibv_qp* const qp : {first.b, second.b}) ASSERT_EQ(attach(qp, all, kRecv), 0);
  connect(first);
  connect(second);
  for (const Two& pair : {first, second, second}) {
    ASSERT_EQ(receive(pair.b, 0), 0);
    ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8), 0);
  }
  expect_soon(successes, all, 6);
}

TEST_P(CompletionCounters, GoOnWhenAQueuePairIsReset) {
  const Two pair = two();
  ibv_comp_cntr* const sends = counter();
  ibv_comp_cntr* const received = counter();
  ASSERT_EQ(attach(pair.a, sends, kSend), 0);
  ASSERT_EQ(attach(pair.b, received, kRecv), 0);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    connect(pair);
    ASSERT_EQ(receive(pair.b, 0), 0);
    ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8, IBV_SEND_SIGNALED), 0);
    (void)poll(cq_a(), 1);
    (void)poll(cq_b(), 1);
    EXPECT_EQ(to_state(pair.a, IBV_QPS_RESET), 0);
    EXPECT_EQ(to_state(pair.b, IBV_QPS_RESET), 0);
    EXPECT_EQ(successes(sends), round);
    EXPECT_EQ(successes(received), round);
  }
}

TEST_P(CompletionCounters, OutliveTheirQueuePairs) {
  expect_complaints();
  const Two pair = two();
  ibv_comp_cntr* const sends = counter();
  ASSERT_EQ(attach(pair.a, sends, kSend), 0);
  connect(pair);
  ASSERT_EQ(receive(pair.b, 0), 0);
  ASSERT_EQ(post(pair.a, IBV_WR_SEND, 8, IBV_SEND_SIGNALED), 0);
  (void)poll(cq_a(), 1);
  EXPECT_EQ(ibv_destroy_comp_cntr(sends), EBUSY);
  EXPECT_EQ(destroy(pair.a), 0) << "which detaches it";
  EXPECT_EQ(successes(sends), 1u);
}

TEST_P(CompletionCounters, ShareNoOperationOfAQueuePair) {
  expect_complaints();
  const Two pair = two();
  ASSERT_EQ(attach(pair.a, counter(), kSend | kRead), 0);
  ibv_comp_cntr* const late = counter();
  EXPECT_EQ(attach(pair.a, late, kSend | kWrite), EBUSY);
  EXPECT_EQ(attach(pair.a, late, kWrite), 0) << "no part of the refused";
  connect(pair);
  ASSERT_EQ(post(pair.a, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0);
  (void)poll(cq_a(), 1);
  EXPECT_EQ(successes(late), 1u);
}

TEST_P(CompletionCounters, BeginInResetOrInit) {
  expect_complaints();
  ibv_comp_cntr* const made = counter();
  ibv_qp* const made_qp = qp(IBV_QPT_RC, cq_a());
  EXPECT_EQ(attach(made_qp, made, kSend), 0);
  ASSERT_EQ(lead(made_qp, IBV_QPS_INIT), 0);
  EXPECT_EQ(attach(made_qp, made, kWrite), 0);
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp* const later = qp(IBV_QPT_RC, cq_a());
    ASSERT_EQ(lead(later, state), 0);
    EXPECT_EQ(attach(later, made, kSend), EINVAL) << name_of(state);
  }
}

TEST_P(CompletionCounters, RefuseWhatIsNotKnown) {
  expect_complaints();
  ibv_comp_cntr_type unknown;
  std::memset(&unknown, 0x7f, sizeof unknown);
  const auto why = [&](ibv_comp_cntr_init_attr attr) {
    errno = 0;
    EXPECT_EQ(ibv_create_comp_cntr(context(), &attr), nullptr);
    return errno;
  };
  EXPECT_EQ(why({1, IBV_COMP_CNTR_TYPE_WRS, 0}), EINVAL);
  EXPECT_EQ(why({0, IBV_COMP_CNTR_TYPE_WRS, 1}), EINVAL);
  EXPECT_EQ(why({0, unknown, 0}), EINVAL);

  ibv_comp_cntr* const made = counter();
  ibv_qp* const made_qp = qp(IBV_QPT_RC, cq_a());
  ibv_qp_attach_comp_cntr_attr attr{1, kSend};
  EXPECT_EQ(ibv_qp_attach_comp_cntr(made_qp, made, &attr), EINVAL);
  EXPECT_EQ(attach(made_qp, made, 0), EINVAL);
  EXPECT_EQ(attach(made_qp, made, 1u << 31), EOPNOTSUPP);
  for (std::uint32_t op = kSend; op <= IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE; op <<= 1)
    EXPECT_EQ(attach(made_qp, made, op),
              (caps_.supported_qp_attach_ops & op) != 0 ? 0 : int{EOPNOTSUPP})
        << op;
}

TEST_P(CompletionCounters, CountNoQueuePairsOfAnotherContext) {
  expect_complaints();
  DeviceObjects elsewhere(GetParam());
  EXPECT_EQ(attach(elsewhere.qp(IBV_QPT_RC, elsewhere.cq()), counter(), kSend), EINVAL);
}

}  // namespace
}  // namespace verbatim::harness
