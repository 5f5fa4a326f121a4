// SPDX-License-Identifier: BSD-2-Clause
//
// Work requests built by calls (man ibv_wr_post) on the other transports than RC: each operation of
// theirs (IBTA table 46, annex A14) with each way to say its data.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

enum class Way { kPiece, kPieces, kInline, kInlineBuffers };
constexpr std::pair<Way, const char*> kWays[] = {{Way::kPiece, "a piece"},
                                                 {Way::kPieces, "a list of pieces"},
                                                 {Way::kInline, "inline data"},
                                                 {Way::kInlineBuffers, "several inline buffers"}};
constexpr std::uint64_t kReceives = 1000;  ///< from here on are the wr_ids of receives
constexpr std::size_t kTarget = 4096;

class WrOfType : public OnDevice {
 protected:
  static ibv_qp_init_attr_ex asked(ibv_qp_type type, std::uint64_t operations) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = type;
    const bool receives = type != IBV_QPT_XRC_SEND;
    init.cap = {8, receives ? 8u : 0u, 2, receives ? 1u : 0u, 64};
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = operations;
    return init;
  }
  std::string open(ibv_qp_type type, std::uint64_t operations) {
    if (std::string why = lacks_type(context(), type); !why.empty()) return why;
    queue_ = cq(64);
    ibv_qp_init_attr_ex init = asked(type, operations);
    init.pd = pd();
    init.send_cq = init.recv_cq = queue_;
    a_.reset(ibv_create_qp_ex(context(), &init));
    if (!a_) return unless_unsupported("send_ops_flags for this type", errno);
    wr_ = ibv_qp_to_qp_ex(a_.get());
    memory_ = mr(bytes_, sizeof bytes_, kAllAccess);
    return {};
  }
  void TearDown() override { a_.reset(); }

  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(bytes_ + offset);
  }
  void begin(std::uint64_t id = 1) {
    ibv_wr_start(wr_);
    wr_->wr_id = id;
    wr_->wr_flags = IBV_SEND_SIGNALED;
  }
  /// Says the data of the request that was begun; what that is.
  std::string say(Way way) {
    std::string data(way == Way::kPiece || way == Way::kPieces ? 300 : 40, '\0');
    for (char& each : data) each = static_cast<char>(++seed_ * 7);
    if (way == Way::kPiece) {
      std::memcpy(bytes_, data.data(), 300);
      ibv_wr_set_sge(wr_, memory_->lkey, at(0), 300);
    } else if (way == Way::kPieces) {
      std::memcpy(bytes_ + 512, data.data(), 100);
      std::memcpy(bytes_, data.data() + 100, 200);
      const ibv_sge pieces[] = {{at(512), 100, memory_->lkey}, {at(0), 200, memory_->lkey}};
      ibv_wr_set_sge_list(wr_, 2, pieces);
    } else {
      // It may change at once.
      std::string gone = data;
      const ibv_data_buf buffers[] = {{&gone[0], 10}, {&gone[10], 0}, {&gone[10], 30}};
      if (way == Way::kInline)
        ibv_wr_set_inline_data(wr_, gone.data(), gone.size());
      else
        ibv_wr_set_inline_data_list(wr_, 3, buffers);
      gone.assign(gone.size(), '\0');
    }
    return data;
  }
  void expect_at(std::size_t offset, const std::string& data) {
    EXPECT_TRUE(
        wait_until([&] { return std::memcmp(bytes_ + offset, data.data(), data.size()) == 0; }));
  }
  void expect_sent(const ibv_wc& wc, ibv_wc_opcode opcode) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.qp_num, a_->qp_num);
  }
  /// Of one request that no receive belongs to.
  void expect_done(ibv_wc_opcode opcode) {
    ASSERT_EQ(ibv_wr_complete(wr_), 0);
    expect_sent(poll(queue_, 1)[0], opcode);
  }
  /// Of one request and the receive that it took; the receive's.
  ibv_wc received(ibv_wc_opcode opcode, ibv_wc_opcode of_receive = IBV_WC_RECV) {
    EXPECT_EQ(ibv_wr_complete(wr_), 0);
    ibv_wc got{};
    for (const ibv_wc& wc : poll(queue_, 2)) {
      if (wc.wr_id < kReceives) {
        expect_sent(wc, opcode);
      } else {
        got = wc;
      }
    }
    EXPECT_EQ(got.status, IBV_WC_SUCCESS) << ibv_wc_status_str(got.status);
    EXPECT_EQ(got.opcode, of_receive);
    return got;
  }
  static void expect_immediate(const ibv_wc& wc, std::uint32_t value) {
    EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(ntohl(wc.imm_data), value);
  }
  template <class Say>
  void in_each_way(const Say& sentence) {
    for (const auto& [way, name] : kWays) {
      SCOPED_TRACE(name);
      std::memset(bytes_ + kTarget, 0, sizeof bytes_ - kTarget);
      sentence(way);
    }
  }

  alignas(64) char bytes_[8192] = {};
  unsigned seed_ = 0;
  ibv_cq* queue_ = nullptr;
  ibv_mr* memory_ = nullptr;
  QpHandle a_;
  ibv_qp_ex* wr_ = nullptr;
};

class WrUc : public WrOfType {
 protected:
  std::string open() {
    constexpr std::uint64_t kAll = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (std::string why = WrOfType::open(IBV_QPT_UC, kAll); !why.empty()) return why;
    b_ = qp(IBV_QPT_UC, queue_);
    EXPECT_EQ(lead(a_.get(), IBV_QPS_RTS, b_), 0);
    EXPECT_EQ(lead(b_, IBV_QPS_RTS, a_.get()), 0);
    return {};
  }
  void post() { ASSERT_EQ(post_receive(b_, kReceives, bytes_ + kTarget, 1024, memory_->lkey), 0); }
  ibv_qp* b_ = nullptr;
};
RUN_ON_EVERY_DEVICE(WrUc);

TEST_P(WrUc, WritesWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    begin();
    ibv_wr_rdma_write(wr_, memory_->rkey, at(kTarget));
    const std::string data = say(way);
    expect_done(IBV_WC_RDMA_WRITE);
    expect_at(kTarget, data);
  });
}

TEST_P(WrUc, WritesWithImmediateWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    ASSERT_EQ(post_receive(b_, kReceives, nullptr, 0, 0), 0);
    begin();
    ibv_wr_rdma_write_imm(wr_, memory_->rkey, at(kTarget), htonl(0xCAFE));
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM);
    expect_immediate(wc, 0xCAFE);
    expect_at(kTarget, data);
  });
}

TEST_P(WrUc, SendsWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post();
    begin();
    ibv_wr_send(wr_);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.byte_len, data.size());
    EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    expect_at(kTarget, data);
  });
}

TEST_P(WrUc, SendsWithImmediateWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post();
    begin();
    ibv_wr_send_imm(wr_, htonl(77));
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.byte_len, data.size());
    expect_immediate(wc, 77);
    expect_at(kTarget, data);
  });
}

class WrUd : public WrOfType {
 protected:
  static constexpr std::size_t kGrh = 40;
  std::string open() {
    constexpr std::uint64_t kAll = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (std::string why = WrOfType::open(IBV_QPT_UD, kAll); !why.empty()) return why;
    self_ = ah_to_self();
    EXPECT_EQ(lead(a_.get(), IBV_QPS_RTS), 0);
    for (ibv_qp*& each : members_) {
      each = qp(IBV_QPT_UD, queue_);
      EXPECT_EQ(lead(each, IBV_QPS_RTS), 0);
    }
    return {};
  }
  void post(std::size_t member) {
    ASSERT_EQ(post_receive(members_[member], kReceives + member, bytes_ + place(member), 1024,
                           memory_->lkey),
              0);
  }
  static std::size_t place(std::size_t member) { return kTarget + member * 1024; }
  void to(std::size_t member) { ibv_wr_set_ud_addr(wr_, self_, members_[member]->qp_num, kQkey); }
  ibv_ah* self_ = nullptr;
  ibv_qp* members_[2] = {};
};
RUN_ON_EVERY_DEVICE(WrUd);

TEST_P(WrUd, SendsWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post(0);
    begin();
    ibv_wr_send(wr_);
    to(0);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.byte_len, kGrh + data.size());
    EXPECT_EQ(wc.src_qp, a_->qp_num);
    EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    expect_at(kTarget + kGrh, data);
  });
}

TEST_P(WrUd, SendsWithImmediateWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post(0);
    begin();
    ibv_wr_send_imm(wr_, htonl(5));
    to(0);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.byte_len, kGrh + data.size());
    expect_immediate(wc, 5);
    expect_at(kTarget + kGrh, data);
  });
}

TEST_P(WrUd, ABatchNamesTheReceiverOfEachDatagram) {
  SKIP_IF(open());
  std::string data[2];
  post(0);
  post(1);
  begin(0);
  for (const std::size_t member : {1u, 0u}) {
    wr_->wr_id = member;
    ibv_wr_send(wr_);
    to(member);
    data[member] = say(member == 0 ? Way::kPiece : Way::kInline);
  }
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  for (const ibv_wc& wc : poll(queue_, 4)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.wr_id < kReceives) continue;
    const std::size_t member = wc.wr_id - kReceives;
    EXPECT_EQ(wc.qp_num, members_[member]->qp_num);
    EXPECT_EQ(wc.byte_len, kGrh + data[member].size());
    expect_at(place(member) + kGrh, data[member]);
  }
}

TEST_P(WrUd, ABatchWithADatagramToNobodyIsRefusedAsAWhole) {
  SKIP_IF(open());
  post(0);
  begin(1);
  ibv_wr_send(wr_);
  to(0);
  say(Way::kInline);
  wr_->wr_id = 2;
  ibv_wr_send(wr_);
  say(Way::kInline);
  EXPECT_EQ(ibv_wr_complete(wr_), EINVAL);
  // The next datagram is the first that arrives.
  begin(3);
  ibv_wr_send(wr_);
  to(0);
  const std::string data = say(Way::kInline);
  (void)received(IBV_WC_SEND);
  expect_at(kTarget + kGrh, data);
}

class WrXrc : public WrOfType {
 protected:
  std::string open() {
    constexpr std::uint64_t kAll = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if (std::string why = WrOfType::open(IBV_QPT_XRC_SEND, kAll); !why.empty()) return why;
    b_ = qp(IBV_QPT_XRC_RECV, nullptr);
    EXPECT_EQ(lead(a_.get(), IBV_QPS_RTS, b_), 0);
    EXPECT_EQ(lead(b_, IBV_QPS_RTS, a_.get()), 0);
    for (std::size_t i = 0; i < 2; ++i) {
      ibv_srq_init_attr_ex init{};
      init.attr = {8, 1, 0};
      init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                       IBV_SRQ_INIT_ATTR_CQ;
      init.srq_type = IBV_SRQT_XRC;
      init.pd = pd();
      init.xrcd = xrcd();
      init.cq = queue_;
      srqs_[i].reset(ibv_create_srq_ex(context(), &init));
      EXPECT_EQ(ibv_get_srq_num(srqs_[i].get(), &numbers_[i]), 0);
    }
    return {};
  }
  void TearDown() override {
    for (SrqHandle& each : srqs_) each.reset();
    WrOfType::TearDown();
  }
  static std::size_t place(std::size_t queue) { return kTarget + queue * 1024; }
  void post(std::size_t queue) {
    ibv_sge sge{at(place(queue)), 1024, memory_->lkey};
    ibv_recv_wr wr{kReceives + queue, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srqs_[queue].get(), &wr, &bad), 0);
  }
  void to(std::size_t queue) { ibv_wr_set_xrc_srqn(wr_, numbers_[queue]); }
  std::uint64_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint64_t*>(bytes_ + offset);
  }
  ibv_qp* b_ = nullptr;
  SrqHandle srqs_[2];
  std::uint32_t numbers_[2] = {};
};
RUN_ON_EVERY_DEVICE(WrXrc);

TEST_P(WrXrc, SendsWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post(1);
    begin();
    ibv_wr_send(wr_);
    to(1);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.wr_id, kReceives + 1);
    EXPECT_EQ(wc.qp_num, b_->qp_num);
    EXPECT_EQ(wc.byte_len, data.size());
    expect_at(place(1), data);
  });
}

TEST_P(WrXrc, SendsWithImmediateWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post(0);
    begin();
    ibv_wr_send_imm(wr_, htonl(6));
    to(0);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_SEND);
    EXPECT_EQ(wc.byte_len, data.size());
    expect_immediate(wc, 6);
    expect_at(place(0), data);
  });
}

TEST_P(WrXrc, WritesWhatIsSaidInEachWay) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    begin();
    ibv_wr_rdma_write(wr_, memory_->rkey, at(kTarget));
    to(0);
    const std::string data = say(way);
    expect_done(IBV_WC_RDMA_WRITE);
    expect_at(kTarget, data);
  });
}

TEST_P(WrXrc, WritesWithImmediateIntoTheQueueThatIsNamed) {
  SKIP_IF(open());
  in_each_way([&](Way way) {
    post(1);
    begin();
    ibv_wr_rdma_write_imm(wr_, memory_->rkey, at(kTarget + 2048), htonl(7));
    to(1);
    const std::string data = say(way);
    const ibv_wc wc = received(IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.wr_id, kReceives + 1);
    expect_immediate(wc, 7);
    expect_at(kTarget + 2048, data);
  });
}

TEST_P(WrXrc, ReadsIntoOnePieceAndIntoAList) {
  SKIP_IF(open());
  for (std::size_t i = 0; i < 300; ++i) bytes_[kTarget + i] = static_cast<char>(i * 3 + 1);
  const std::string there(bytes_ + kTarget, 300);
  begin();
  ibv_wr_rdma_read(wr_, memory_->rkey, at(kTarget));
  to(0);
  ibv_wr_set_sge(wr_, memory_->lkey, at(0), 300);
  expect_done(IBV_WC_RDMA_READ);
  expect_at(0, there);
  const ibv_sge pieces[] = {{at(2048), 100, memory_->lkey}, {at(1024), 200, memory_->lkey}};
  begin();
  ibv_wr_rdma_read(wr_, memory_->rkey, at(kTarget));
  to(0);
  ibv_wr_set_sge_list(wr_, 2, pieces);
  expect_done(IBV_WC_RDMA_READ);
  expect_at(2048, there.substr(0, 100));
  expect_at(1024, there.substr(100));
}

TEST_P(WrXrc, FetchesAndAddsAndComparesAndSwaps) {
  SKIP_IF(open());
  if (attr().atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "atomic_cap is NONE";
  word(kTarget) = 40;
  begin();
  ibv_wr_atomic_fetch_add(wr_, memory_->rkey, at(kTarget), 2);
  to(0);
  ibv_wr_set_sge(wr_, memory_->lkey, at(0), 8);
  expect_done(IBV_WC_FETCH_ADD);
  EXPECT_EQ(word(0), 40u);
  EXPECT_EQ(word(kTarget), 42u);
  begin();
  ibv_wr_atomic_cmp_swp(wr_, memory_->rkey, at(kTarget), 42, 7);
  to(0);
  ibv_wr_set_sge(wr_, memory_->lkey, at(8), 8);
  expect_done(IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(8), 42u);
  EXPECT_EQ(word(kTarget), 7u);
}

TEST_P(WrXrc, ABatchNamesTheQueueOfEachRequest) {
  SKIP_IF(open());
  std::string data[2];
  post(0);
  post(1);
  begin(0);
  for (const std::size_t queue : {1u, 0u}) {
    wr_->wr_id = queue;
    ibv_wr_send(wr_);
    to(queue);
    data[queue] = say(queue == 0 ? Way::kPiece : Way::kInline);
  }
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  for (const ibv_wc& wc : poll(queue_, 4)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.wr_id < kReceives) continue;
    EXPECT_EQ(wc.byte_len, data[wc.wr_id - kReceives].size());
    expect_at(place(wc.wr_id - kReceives), data[wc.wr_id - kReceives]);
  }
}

}  // namespace
}  // namespace verbatim::harness
