// SPDX-License-Identifier: BSD-2-Clause
//
// What the sentences about regions and windows have in common: two connected queue pairs of one
// domain, `a_` that asks and `b_` that answers, and memory of either.
#pragma once

#include <cstring>
#include <tuple>

#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {

class MrStage : public OnDevice {
 protected:
  void SetUp() override {
    both_ = cq(64);
    std::tie(a_, b_) = connected(IBV_QPT_RC, both_);
    ASSERT_NE(local_ = mr(mine_, sizeof mine_, kAllAccess), nullptr);
    for (std::size_t i = 0; i < sizeof mine_; ++i) mine_[i] = static_cast<char>(i * 5 + 3);
  }
  /// One request of a's on remote memory; its status.
  ibv_wc_status run(ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t rkey,
                    std::uint32_t length = 64, std::size_t at = 0) {
    return run_by(a_, opcode, {address_of(mine_ + at), length, local_->lkey}, address, rkey);
  }
  ibv_wc_status run_by(ibv_qp* by, ibv_wr_opcode opcode, ibv_sge sge, std::uint64_t address,
                       std::uint32_t rkey) {
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {address, rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(by, &wr, &bad), 0);
    return poll(both_, 1)[0].status;
  }
  ibv_wc_status write_to(std::uint64_t address, std::uint32_t rkey) {
    return run(IBV_WR_RDMA_WRITE, address, rkey);
  }
  static std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }
  /// Connects the two again after a fault.
  void again() { join(a_, b_); }
  void join(ibv_qp* one, ibv_qp* other) {
    for (ibv_qp* each : {one, other}) ASSERT_EQ(to_state(each, IBV_QPS_RESET), 0);
    ASSERT_EQ(lead(one, IBV_QPS_RTS, other), 0);
    ASSERT_EQ(lead(other, IBV_QPS_RTS, one), 0);
  }
  /// Not connected.
  QpHandle qp_in(ibv_pd* domain) {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = both_;
    init.cap = {16, 16, 2, 2, 0};
    return QpHandle(ibv_create_qp(domain, &init));
  }

  alignas(4096) char mine_[4096] = {};
  alignas(4096) char theirs_[8192] = {};
  ibv_cq* both_ = nullptr;
  ibv_qp* a_ = nullptr;
  ibv_qp* b_ = nullptr;
  ibv_mr* local_ = nullptr;
};

}  // namespace verbatim::harness
