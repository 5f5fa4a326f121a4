// SPDX-License-Identifier: BSD-2-Clause
//
// An honest end of datagrams, in the test's own process.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/handles.hpp"

namespace verbatim::hostile {

inline constexpr std::uint32_t kQkey = 0x1234;
inline constexpr std::uint32_t kHeader = 40;

/// A UD queue pair with a few receives posted.
class DatagramEnd {
 public:
  explicit DatagramEnd(const harness::Session& session) : memory_(4096) {
    cq_.reset(ibv_create_cq(session.context.get(), 64, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session.pd.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_UD;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 8,
                .max_recv_wr = 8,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_.reset(ibv_create_qp(session.pd.get(), &init));
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    for (int i = 0; i < 4; ++i) {
      ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()), 1024, mr_->lkey};
      ibv_recv_wr wr{};
      ibv_recv_wr* bad;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      EXPECT_EQ(ibv_post_recv(qp_.get(), &wr, &bad), 0);
    }
  }
  ibv_qp* get() const { return qp_.get(); }
  std::uint32_t qpn() const { return qp_->qp_num; }
  void send(ibv_ah* ah, std::uint32_t qpn, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()) + 2048, bytes, mr_->lkey};
    ibv_send_wr wr{};
    ibv_send_wr* bad;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = kQkey};
    ASSERT_EQ(ibv_post_send(qp_.get(), &wr, &bad), 0);
    EXPECT_EQ(next().opcode, IBV_WC_SEND);
  }
  ibv_wc next() {
    ibv_wc wc{};
    EXPECT_TRUE(harness::wait_until([&] { return ibv_poll_cq(cq_.get(), 1, &wc) == 1; }));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    return wc;
  }

 private:
  std::vector<unsigned char> memory_;
  harness::CqHandle cq_;
  harness::MrHandle mr_;
  harness::QpHandle qp_;
};

}  // namespace verbatim::hostile
