// SPDX-License-Identifier: BSD-2-Clause
//
// SENDs to shared receives of a queue pair that is not polled for: they go by the short way of a
// sender that rings, from the second on. It gives no message that has no receive, or too short a one.
// All are without a completion, whose queue's lock must have become the thread's for that way.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::harness {
namespace {

ibv_wc_status await(ibv_cq* cq) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  ibv_wc wc{};
  while (ibv_poll_cq(cq, 1, &wc) == 0)
    if (std::chrono::steady_clock::now() > end) return IBV_WC_GENERAL_ERR;
  return wc.status;
}

class RungShared : public ::testing::Test {
 protected:
  void SetUp() override {
    ibv_srq_init_attr shared{};
    shared.attr = {8, 1, 0};
    srq_.reset(ibv_create_srq(session_.pd.get(), &shared));
    ASSERT_NE(srq_, nullptr);
    receiver_.reset(create(received_.get(), srq_.get()));
    sender_.reset(create(sent_.get(), nullptr));
    connect(receiver_.get(), sender_.get());
    connect(sender_.get(), receiver_.get());
  }
  ibv_qp* create(ibv_cq* cq, ibv_srq* srq) {
    ibv_qp_init_attr wish{};
    wish.send_cq = wish.recv_cq = cq;
    wish.srq = srq;
    wish.qp_type = IBV_QPT_RC;
    wish.cap.max_send_wr = 8;
    wish.cap.max_recv_wr = srq == nullptr ? 1 : 0;
    wish.cap.max_send_sge = wish.cap.max_recv_sge = 1;
    return ibv_create_qp(session_.pd.get(), &wish);
  }
  void connect(ibv_qp* qp, const ibv_qp* peer) {
    RcWay way;
    way.remote_qpn = peer->qp_num;
    way.remote_lid = session_.port.lid;
    way.rnr_retry = 0;
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
      ASSERT_EQ(modify_rc(qp, state, way), 0);
  }
  ibv_sge piece(std::uint32_t bytes) const {
    return {reinterpret_cast<std::uintptr_t>(bytes_), bytes, mr_.get()->lkey};
  }
  void post_receive(std::uint32_t bytes) {
    ibv_sge sge = piece(bytes);
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq_.get(), &wr, &bad), 0);
  }
  /// 8 bytes.
  void send() {
    ibv_sge sge = piece(8);
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sender_.get(), &wr, &bad), 0);
  }
  /// The first goes the general way, which meets the peer.
  void send_first() {
    for (int i = 0; i < 2; ++i) {
      post_receive(8);
      send();
      ASSERT_EQ(await(received_.get()), IBV_WC_SUCCESS);
    }
  }

  Session session_{"shm0"};
  unsigned char bytes_[8] = {};
  MrHandle mr_{ibv_reg_mr(session_.pd.get(), bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE)};
  CqHandle received_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  CqHandle sent_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  SrqHandle srq_;
  QpHandle receiver_;
  QpHandle sender_;
};

TEST_F(RungShared, ASendThatFindsNoReceiveIsRefused) {
  const AllowedLog said("no receive posted");
  send_first();
  send();
  EXPECT_EQ(await(sent_.get()), IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(RungShared, ASendThatIsLongerThanItsReceiveEndsBoth) {
  const AllowedLog said("bytes");
  send_first();
  post_receive(4);
  send();
  EXPECT_EQ(await(sent_.get()), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(await(received_.get()), IBV_WC_LOC_LEN_ERR);
}

TEST_F(RungShared, OneWhoseReceiveHasABadKeyEndsBoth) {
  const AllowedLog said("lkey");
  send_first();
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(bytes_), 8, 0x7fffff00};
  ibv_recv_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq_.get(), &wr, &bad), 0);
  send();
  EXPECT_EQ(await(sent_.get()), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(await(received_.get()), IBV_WC_LOC_PROT_ERR);
}

class RungDatagrams : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kQkey = 7;
  static constexpr std::uint32_t kHeader = 40;  // of the routing header, in front of each

  void SetUp() override {
    receiver_.reset(create(received_.get()));
    sender_.reset(create(sent_.get()));
    ibv_ah_attr path{};
    path.dlid = session_.port.lid;
    path.port_num = 1;
    ah_.reset(ibv_create_ah(session_.pd.get(), &path));
    ASSERT_NE(ah_, nullptr);
    // The first goes the general way, which meets the peer.
    for (const std::uint64_t id : {std::uint64_t{1}, std::uint64_t{2}}) {
      post_receive();
      send(id, kQkey);
      ASSERT_EQ(next(), id);
    }
  }
  ibv_qp* create(ibv_cq* cq) {
    ibv_qp_init_attr wish{};
    wish.send_cq = wish.recv_cq = cq;
    wish.qp_type = IBV_QPT_UD;
    wish.cap = {8, 8, 1, 1, 8};
    ibv_qp* const qp = ibv_create_qp(session_.pd.get(), &wish);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    EXPECT_EQ(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return qp;
  }
  void post_receive() {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(bytes_), sizeof bytes_, mr_.get()->lkey};
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(receiver_.get(), &wr, &bad), 0);
  }
  void send(std::uint64_t word, std::uint32_t qkey) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(&word), sizeof word, 0};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    wr.wr.ud = {ah_.get(), receiver_->qp_num, qkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sender_.get(), &wr, &bad), 0);
  }
  /// The next datagram's word.
  std::uint64_t next() {
    EXPECT_EQ(await(received_.get()), IBV_WC_SUCCESS);
    std::uint64_t word;
    std::memcpy(&word, bytes_ + kHeader, sizeof word);
    return word;
  }

  Session session_{"shm0"};
  unsigned char bytes_[kHeader + 8] = {};
  MrHandle mr_{ibv_reg_mr(session_.pd.get(), bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE)};
  CqHandle received_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  CqHandle sent_{ibv_create_cq(session_.context.get(), 16, nullptr, nullptr, 0)};
  AhHandle ah_;
  QpHandle receiver_;
  QpHandle sender_;
};

TEST_F(RungDatagrams, OneOfAnotherQkeyIsDropped) {
  post_receive();
  send(3, kQkey + 1);
  send(4, kQkey);
  EXPECT_EQ(next(), 4u);
}

TEST_F(RungDatagrams, OneThatFindsNoReceiveIsDropped) {
  send(3, kQkey);
  post_receive();
  send(4, kQkey);
  EXPECT_EQ(next(), 4u);
}

}  // namespace
}  // namespace verbatim::harness
