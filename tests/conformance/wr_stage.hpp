// SPDX-License-Identifier: BSD-2-Clause
// The stage of sentences about requests that are built by calls (man ibv_wr_post).
#pragma once

#include <cerrno>
#include <cstring>

#include "tests/support/device.hpp"

namespace verbatim::harness {

inline constexpr std::uint64_t kOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// Two queue pairs, of which one is built by calls, and memory that both reach.
class WrStage : public OnDevice {
 protected:
  ibv_qp_init_attr_ex asked(std::uint64_t operations, ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = queue_;
    init.cap = {8, 8, 2, 2, 64};
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd();
    init.send_ops_flags = operations;
    return init;
  }
  std::string open(std::uint64_t operations = kOperations, const char* what = "such operations") {
    queue_ = cq(64);
    ibv_qp_init_attr_ex init = asked(operations);
    a_.reset(ibv_create_qp_ex(context(), &init));
    if (!a_) return unless_unsupported(what, errno);
    b_ = qp(IBV_QPT_RC, queue_);
    EXPECT_EQ(lead(a_.get(), IBV_QPS_RTS, b_), 0);
    EXPECT_EQ(lead(b_, IBV_QPS_RTS, a_.get()), 0);
    wr_ = ibv_qp_to_qp_ex(a_.get());
    EXPECT_NE(wr_, nullptr);
    memory_ = mr(bytes_, sizeof bytes_, kAllAccess | IBV_ACCESS_MW_BIND);
    for (std::size_t i = 0; i < 1024; ++i) bytes_[i] = static_cast<char>(i * 7 + 1);
    return {};
  }
  void TearDown() override { a_.reset(); }
  void begin(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_wr_start(wr_);
    wr_->wr_id = id;
    wr_->wr_flags = flags;
  }
  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(bytes_ + offset);
  }
  void set_data(std::size_t offset, std::uint32_t length) {
    ibv_wr_set_sge(wr_, memory_->lkey, at(offset), length);
  }
  void expect_done(std::uint64_t id, ibv_wc_opcode opcode) {
    ASSERT_EQ(ibv_wr_complete(wr_), 0);
    const ibv_wc wc = poll(queue_, 1)[0];
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.qp_num, a_->qp_num);
  }
  void expect_same(std::size_t one, std::size_t other, std::size_t length) {
    EXPECT_EQ(std::memcmp(bytes_ + one, bytes_ + other, length), 0);
  }
  std::uint64_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint64_t*>(bytes_ + offset);
  }
  /// Of a receive at b and a send at a, the receive's.
  ibv_wc received() {
    ibv_wc of_receive{};
    for (const ibv_wc& wc : poll(queue_, 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.qp_num == b_->qp_num) of_receive = wc;
    }
    return of_receive;
  }

  alignas(64) char bytes_[8192] = {};
  ibv_mr* memory_ = nullptr;
  ibv_cq* queue_ = nullptr;
  QpHandle a_;
  ibv_qp* b_ = nullptr;
  ibv_qp_ex* wr_ = nullptr;
};

}  // namespace verbatim::harness
