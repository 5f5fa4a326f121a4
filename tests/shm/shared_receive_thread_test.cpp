// SPDX-License-Identifier: BSD-2-Clause
//
// Threads on one shared receive queue, and on one completion queue of it: some post receives, some
// take messages, while others send, each over a connection of its own or all on one UD queue pair.
// No message is lost or doubled (those of connections; datagrams find a receive or are lost), and
// none lies in a receive that another has as well.
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kSenders = 3, kOthers = 2, kEach = 400, kSlots = 64, kHeader = 40;
constexpr std::uint32_t kSlotBytes = kHeader + sizeof(std::uint64_t);

class SharedByThreads : public ::testing::TestWithParam<ibv_qp_type> {
 protected:
  void SetUp() override {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = kSlots, .max_sge = 1, .srq_limit = 0};
    srq_.reset(ibv_create_srq(session_.pd.get(), &init));
    taken_.reset(ibv_create_cq(session_.context.get(), 2 * kSlots, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session_.pd.get(), slots_.data(), slots_.size(), IBV_ACCESS_LOCAL_WRITE));
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = session_.port.lid;
    ah_.reset(ibv_create_ah(session_.pd.get(), &path));
    for (std::uint32_t i = 0; i < kSlots; ++i) free_.push_back(i);
    for (std::uint32_t i = 0; i < kSenders; ++i) {
      sent_[i].reset(ibv_create_cq(session_.context.get(), 64, nullptr, nullptr, 0));
      if (i != 0 && is_ud()) continue;
      to_[i] = make(taken_.get(), srq_.get());
      from_[i] = make(sent_[i].get(), nullptr);
      ready(to_[i].get(), from_[i]->qp_num);
      ready(from_[i].get(), to_[i]->qp_num);
    }
  }
  static bool is_ud() { return GetParam() == IBV_QPT_UD; }
  QpHandle make(ibv_cq* cq, ibv_srq* srq) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.qp_type = GetParam();
    init.cap = {.max_send_wr = 16,
                .max_recv_wr = 0,
                .max_send_sge = 1,
                .max_recv_sge = 0,
                .max_inline_data = sizeof(std::uint64_t)};
    return QpHandle(ibv_create_qp(session_.pd.get(), &init));
  }
  static void ready(ibv_qp* qp, std::uint32_t remote) {
    RcWay way;
    way.remote_qpn = remote;
    way.rnr_retry = 7;
    if (!is_ud()) {
      for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
        ASSERT_EQ(modify_rc(qp, state, way), 0);
      return;
    }
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qkey = 5;
    attr.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  }
  /// A completion for each, which anybody of the queue pair may take.
  void send_all(std::uint32_t sender) {
    ibv_qp* const qp = from_[is_ud() ? 0 : sender].get();
    for (std::uint32_t i = 0; i < kEach; ++i) {
      std::uint64_t number = sender * kEach + i;
      ibv_sge sge{reinterpret_cast<std::uint64_t>(&number), sizeof number, 0};
      ibv_send_wr wr{};
      ibv_send_wr* bad;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
      if (is_ud()) wr.wr.ud = {.ah = ah_.get(), .remote_qpn = to_[0]->qp_num, .remote_qkey = 5};
      // Room in the queue comes with a completion, whoever polls it.
      EXPECT_TRUE(wait_until([&] {
        ibv_wc wc;
        while (ibv_poll_cq(qp->send_cq, 1, &wc) == 1) {
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        }
        // A datagram without a receive is lost, and that is not what is asked here.
        if (is_ud() && posted_.load() <= reserved_.fetch_add(1)) {
          --reserved_;
          return false;
        }
        const bool fits = ibv_post_send(qp, &wr, &bad) == 0;
        if (is_ud() && !fits) --reserved_;
        return fits;
      }));
    }
  }
  void post_receives() {
    EXPECT_TRUE(wait_until([&] {
      std::uint32_t slot = kSlots;
      {
        const std::lock_guard guard(mutex_);
        if (!free_.empty()) {
          slot = free_.back();
          free_.pop_back();
        }
      }
      if (slot == kSlots) return arrived_.load() == kSenders * kEach;
      ibv_sge sge{reinterpret_cast<std::uint64_t>(&slots_[slot * kSlotBytes]), kSlotBytes,
                  mr_->lkey};
      ibv_recv_wr wr{};
      ibv_recv_wr* bad;
      wr.wr_id = slot;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      EXPECT_EQ(ibv_post_srq_recv(srq_.get(), &wr, &bad), 0);
      ++posted_;
      return false;
    }));
  }
  void take() {
    EXPECT_TRUE(wait_until([&] {
      ibv_wc wcs[4];
      const int n = ibv_poll_cq(taken_.get(), 4, wcs);
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(wcs[i].status, IBV_WC_SUCCESS);
        const auto slot = static_cast<std::uint32_t>(wcs[i].wr_id);
        std::uint64_t number = 0;
        std::memcpy(&number, &slots_[slot * kSlotBytes + (is_ud() ? kHeader : 0)], sizeof number);
        EXPECT_LT(number, counts_.size());
        if (number < counts_.size()) ++counts_[number];
        {
          const std::lock_guard guard(mutex_);
          free_.push_back(slot);
        }
        ++arrived_;
      }
      return arrived_.load() == kSenders * kEach;
    }));
  }

  Session session_;
  std::vector<unsigned char> slots_ = std::vector<unsigned char>(kSlots * kSlotBytes);
  CqHandle taken_, sent_[kSenders];
  MrHandle mr_;
  SrqHandle srq_;
  AhHandle ah_;
  QpHandle to_[kSenders], from_[kSenders];
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::vector<std::atomic<int>> counts_ = std::vector<std::atomic<int>>(kSenders * kEach);
  std::atomic<std::uint32_t> posted_{0}, reserved_{0}, arrived_{0};
};

TEST_P(SharedByThreads, EachMessageArrivesOnceInAReceiveOfItsOwn) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kOthers; ++i) {
    threads.emplace_back([&] { post_receives(); });
    threads.emplace_back([&] { take(); });
  }
  for (std::uint32_t i = 0; i < kSenders; ++i) threads.emplace_back([&, i] { send_all(i); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < counts_.size(); ++i) EXPECT_EQ(counts_[i].load(), 1) << i;
}
INSTANTIATE_TEST_SUITE_P(, SharedByThreads, ::testing::Values(IBV_QPT_RC, IBV_QPT_UD),
                         [](const ::testing::TestParamInfo<ibv_qp_type>& tested) {
                           return std::string(tested.param == IBV_QPT_UD ? "Ud" : "Rc");
                         });

}  // namespace
}  // namespace verbatim::harness
