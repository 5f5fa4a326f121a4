// SPDX-License-Identifier: BSD-2-Clause
//
// More queue pairs on one completion queue than it has doorbells: two then share one, which says what
// the last of them said. And doorbells that lead to nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "providers/shm/wire/layout.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::harness {
namespace {

using shm::CqDoorbells;

class SharedDoorbell : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i <= CqDoorbells::kBells; ++i)
      receivers_.emplace_back(create(received_.get()));
    sharing_[0] = receivers_.front().get();
    sharing_[1] = receivers_.back().get();
    for (ibv_qp* const receiver : sharing_) {
      ASSERT_NE(receiver, nullptr);
      senders_.emplace_back(create(sent_.get()));
      connect(receiver, senders_.back().get());
      connect(senders_.back().get(), receiver);
    }
  }
  ibv_qp* create(ibv_cq* cq) {
    ibv_qp_init_attr wish{};
    wish.send_cq = wish.recv_cq = cq;
    wish.qp_type = IBV_QPT_RC;
    wish.cap.max_send_wr = wish.cap.max_recv_wr = 2;
    wish.cap.max_send_sge = wish.cap.max_recv_sge = 1;
    return ibv_create_qp(session_.pd.get(), &wish);
  }
  void connect(ibv_qp* qp, const ibv_qp* peer) {
    RcWay way;
    way.remote_qpn = peer->qp_num;
    way.remote_lid = session_.port.lid;
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
      ASSERT_EQ(modify_rc(qp, state, way), 0);
  }
  void post_receive(ibv_qp* qp) {
    ibv_sge sge = piece_;
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  void send(ibv_qp* qp) {
    ibv_sge sge = piece_;
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(sent_.get(), 1, &wc), 1);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  Session session_{"shm0"};
  unsigned char bytes_[8] = {};
  MrHandle mr_{ibv_reg_mr(session_.pd.get(), bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE)};
  ibv_sge piece_ = {reinterpret_cast<std::uintptr_t>(bytes_), sizeof bytes_, mr_.get()->lkey};
  CqHandle received_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  CqHandle sent_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  std::vector<QpHandle> receivers_;
  std::vector<QpHandle> senders_;
  ibv_qp* sharing_[2] = {};
};

TEST_F(SharedDoorbell, GivesNoMoreThanWasAskedForWhenBothHaveAMessage) {
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    for (ibv_qp* const receiver : sharing_) post_receive(receiver);
    for (const QpHandle& sender : senders_) send(sender.get());
    ibv_wc wc[4];
    std::memset(static_cast<void*>(wc), 0x5a, sizeof wc);
    const std::vector<unsigned char> untouched(3 * sizeof(ibv_wc), 0x5a);
    ASSERT_EQ(ibv_poll_cq(received_.get(), 1, wc), 1);
    EXPECT_EQ(std::memcmp(&wc[1], untouched.data(), untouched.size()), 0) << "beyond the array";
    ASSERT_EQ(ibv_poll_cq(received_.get(), 1, wc), 1);
    EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_poll_cq(received_.get(), 1, wc), 0);
  }
}

TEST_F(SharedDoorbell, LeadsToAllMessagesOfBothThoughTheLastOfThemHasFewer) {
  for (const std::size_t has_two : {0u, 1u}) {
    SCOPED_TRACE(has_two);
    for (const std::size_t i : {has_two, has_two, 1 - has_two}) {
      post_receive(sharing_[i]);
      send(senders_[i].get());
    }
    ibv_wc wc[4];
    EXPECT_EQ(ibv_poll_cq(received_.get(), 4, wc), 3);
  }
}

TEST_F(SharedDoorbell, LeadsToAllMessagesOfTheOneThatIsLeft) {
  ibv_wc wc[4];
  const auto send_to = [&](std::size_t i) {
    post_receive(sharing_[i]);
    send(senders_[i].get());
  };
  // With the first message of a connection all that lies there is looked at.
  for (const std::size_t i : {0u, 1u}) send_to(i);
  ASSERT_EQ(ibv_poll_cq(received_.get(), 4, wc), 2);
  for (const std::size_t i : {0u, 0u, 1u}) send_to(i);
  receivers_.back().reset();
  ASSERT_EQ(ibv_poll_cq(received_.get(), 4, wc), 2);
  for (int i = 0; i != 2; ++i) EXPECT_EQ(wc[i].qp_num, sharing_[0]->qp_num);
}

TEST_F(SharedDoorbell, OfAQueuePairThatIsGoneTakesNoPlaceInThePollOfAnother) {
  // Far enough from each other that one may be looked at without the other.
  QpHandle& gone = receivers_[CqDoorbells::kPerWord];
  const QpHandle& other = receivers_[3 * CqDoorbells::kPerWord];
  for (ibv_qp* const receiver : {gone.get(), other.get()}) {
    const QpHandle& sender = senders_.emplace_back(create(sent_.get()));
    connect(receiver, sender.get());
    connect(sender.get(), receiver);
    post_receive(receiver);
    send(sender.get());
  }
  gone.reset();
  ibv_wc wc;
  ASSERT_EQ(ibv_poll_cq(received_.get(), 1, &wc), 1);
  EXPECT_EQ(wc.qp_num, other->qp_num);
}

}  // namespace
}  // namespace verbatim::harness
