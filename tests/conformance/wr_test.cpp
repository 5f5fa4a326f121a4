// SPDX-License-Identifier: BSD-2-Clause
//
// Work requests built by calls (man ibv_wr_post, ibv_create_qp_ex): every operation with each way
// to say its data, batches that happen at ibv_wr_complete or not at all.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "tests/conformance/wr_stage.hpp"

namespace verbatim::harness {
namespace {

class Wr : public WrStage {};
RUN_ON_EVERY_DEVICE(Wr);

TEST_P(Wr, AnExtendedQueuePairIsItsPlainSelf) {
  SKIP_IF(open());
  EXPECT_EQ(&wr_->qp_base, a_.get());
}

TEST_P(Wr, WritesFromOnePiece) {
  SKIP_IF(open());
  begin(1);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  set_data(0, 500);
  expect_done(1, IBV_WC_RDMA_WRITE);
  expect_same(0, 4096, 500);
}

TEST_P(Wr, WritesFromAListOfPieces) {
  SKIP_IF(open());
  const ibv_sge pieces[] = {{at(0), 100, memory_->lkey}, {at(300), 200, memory_->lkey}};
  begin(2);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  ibv_wr_set_sge_list(wr_, 2, pieces);
  expect_done(2, IBV_WC_RDMA_WRITE);
  expect_same(0, 4096, 100);
  expect_same(300, 4196, 200);
}

TEST_P(Wr, WritesInlineDataThatMayChangeAtOnce) {
  SKIP_IF(open());
  char stack[40];
  std::memcpy(stack, bytes_, sizeof stack);
  begin(3);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  ibv_wr_set_inline_data(wr_, stack, sizeof stack);
  std::memset(stack, 0, sizeof stack);
  expect_done(3, IBV_WC_RDMA_WRITE);
  expect_same(0, 4096, sizeof stack);
}

TEST_P(Wr, WritesInlineDataOfSeveralBuffers) {
  SKIP_IF(open());
  const ibv_data_buf buffers[] = {{bytes_, 10}, {bytes_ + 10, 0}, {bytes_ + 10, 30}};
  begin(4);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  ibv_wr_set_inline_data_list(wr_, 3, buffers);
  expect_done(4, IBV_WC_RDMA_WRITE);
  expect_same(0, 4096, 40);
}

TEST_P(Wr, WritesWithImmediate) {
  SKIP_IF(open());
  ASSERT_EQ(post_receive(b_, 9, nullptr, 0, 0), 0);
  begin(5);
  ibv_wr_rdma_write_imm(wr_, memory_->rkey, at(4096), htonl(0xCAFE));
  set_data(0, 64);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const ibv_wc wc = received();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(wc.imm_data), 0xCAFEu);
  expect_same(0, 4096, 64);
}

TEST_P(Wr, Reads) {
  SKIP_IF(open());
  begin(6);
  ibv_wr_rdma_read(wr_, memory_->rkey, at(0));
  set_data(4096, 700);
  expect_done(6, IBV_WC_RDMA_READ);
  expect_same(0, 4096, 700);
}

TEST_P(Wr, Sends) {
  SKIP_IF(open());
  ASSERT_EQ(post_receive(b_, 9, bytes_ + 4096, 1024, memory_->lkey), 0);
  begin(7);
  ibv_wr_send(wr_);
  set_data(0, 300);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const ibv_wc wc = received();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 300u);
  expect_same(0, 4096, 300);
}

TEST_P(Wr, SendsWithImmediate) {
  SKIP_IF(open());
  ASSERT_EQ(post_receive(b_, 9, bytes_ + 4096, 1024, memory_->lkey), 0);
  begin(8);
  ibv_wr_send_imm(wr_, htonl(77));
  ibv_wr_set_inline_data(wr_, bytes_, 20);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const ibv_wc wc = received();
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ntohl(wc.imm_data), 77u);
  EXPECT_EQ(wc.byte_len, 20u);
}

TEST_P(Wr, FetchesAndAdds) {
  SKIP_IF(open());
  if (attr().atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "atomic_cap is NONE";
  word(4096) = 40;
  begin(9);
  ibv_wr_atomic_fetch_add(wr_, memory_->rkey, at(4096), 2);
  set_data(4104, 8);
  expect_done(9, IBV_WC_FETCH_ADD);
  EXPECT_EQ(word(4096), 42u);
  EXPECT_EQ(word(4104), 40u);
}

TEST_P(Wr, ComparesAndSwaps) {
  SKIP_IF(open());
  if (attr().atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "atomic_cap is NONE";
  word(4096) = 5;
  begin(10);
  ibv_wr_atomic_cmp_swp(wr_, memory_->rkey, at(4096), 5, 6);
  set_data(4104, 8);
  expect_done(10, IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(4096), 6u);
  EXPECT_EQ(word(4104), 5u);
}

TEST_P(Wr, BindsAWindowAndTakesItBack) {
  SKIP_IF(open(kOperations | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
               "memory windows of type 2"));
  ibv_mw* const window = ibv_alloc_mw(pd(), IBV_MW_TYPE_2);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
  ibv_mw_bind_info info{};
  info.mr = memory_;
  info.addr = at(4096);
  info.length = 256;
  info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const std::uint32_t key = ibv_inc_rkey(window->rkey);
  begin(14);
  ibv_wr_bind_mw(wr_, window, key, &info);
  expect_done(14, IBV_WC_BIND_MW);
  begin(15);
  ibv_wr_local_inv(wr_, key);
  expect_done(15, IBV_WC_LOCAL_INV);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_P(Wr, SendsAndInvalidates) {
  SKIP_IF(open(kOperations | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW,
               "memory windows of type 2"));
  ibv_mw* const window = ibv_alloc_mw(pd(), IBV_MW_TYPE_2);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
  // The window belongs to the receiver: b binds it by a classic request.
  const std::uint32_t key = ibv_inc_rkey(window->rkey);
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = key;
  bind.bind_mw.bind_info = {memory_, at(4096), 64, IBV_ACCESS_REMOTE_WRITE};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(b_, &bind, &bad), 0);
  ASSERT_EQ(poll(queue_, 1)[0].status, IBV_WC_SUCCESS);
  ASSERT_EQ(post_receive(b_, 9, bytes_ + 6000, 64, memory_->lkey), 0);
  begin(16);
  ibv_wr_send_inv(wr_, key);
  set_data(0, 8);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const ibv_wc wc = received();
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(wc.invalidated_rkey, key);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_P(Wr, SegmentsForTheNetworkWhereTheDeviceCan) {
  // man ibv_wr_post: TSO is for UD and raw packets.
  queue_ = cq(8);
  ibv_qp_init_attr_ex init = asked(IBV_QP_EX_WITH_TSO, IBV_QPT_UD);
  init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  init.max_tso_header = 64;
  const QpHandle made(ibv_create_qp_ex(context(), &init));
  char head[16] = {};
  if (!made) {
    expect_complaints();
    ASSERT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
    // The call is there all the same, on queue pairs that are made without it.
    SKIP_IF(open(IBV_QP_EX_WITH_SEND));
    begin(1);
    ibv_wr_send_tso(wr_, head, sizeof head, 1024);
    EXPECT_EQ(ibv_wr_complete(wr_), EOPNOTSUPP);
    return;
  }
  ASSERT_EQ(lead(made.get(), IBV_QPS_RTS), 0);
  ibv_qp_ex* const with = ibv_qp_to_qp_ex(made.get());
  ibv_wr_start(with);
  ibv_wr_send_tso(with, head, sizeof head, 1024);
  ibv_wr_abort(with);
}

TEST_P(Wr, SendsDatagrams) {
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  queue_ = cq(8);
  ibv_qp_init_attr_ex init = asked(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_QPT_UD);
  const QpHandle made(ibv_create_qp_ex(context(), &init));
  if (!made) SKIP_IF(unless_unsupported("send_ops_flags for datagrams", errno));
  ASSERT_EQ(lead(made.get(), IBV_QPS_RTS), 0);
  ibv_qp_ex* const with = ibv_qp_to_qp_ex(made.get());
  ibv_mr* const memory = mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(post_receive(made.get(), 1, bytes_, 256, memory->lkey), 0);
  ibv_ah* const self = ah_to_self();
  ibv_wr_start(with);
  with->wr_id = 2;
  with->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(with, htonl(5));
  ibv_wr_set_ud_addr(with, self, made->qp_num, kQkey);
  ibv_wr_set_sge(with, memory->lkey, at(4096), 30);
  ASSERT_EQ(ibv_wr_complete(with), 0);
  bool arrived = false;
  for (const ibv_wc& wc : poll(queue_, 2)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.wr_id != 1) continue;
    arrived = true;
    EXPECT_EQ(wc.byte_len, 70u);
    EXPECT_EQ(wc.src_qp, made->qp_num);
    EXPECT_EQ(ntohl(wc.imm_data), 5u);
  }
  EXPECT_TRUE(arrived);
}

TEST_P(Wr, OfAnXrcQueuePairNamesTheReceiversQueue) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_SEND));
  queue_ = cq(8);
  ibv_qp_init_attr_ex init = asked(IBV_QP_EX_WITH_SEND, IBV_QPT_XRC_SEND);
  init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
  const QpHandle sender(ibv_create_qp_ex(context(), &init));
  if (!sender) SKIP_IF(unless_unsupported("send_ops_flags for XRC", errno));
  ibv_qp* const receiver = qp(IBV_QPT_XRC_RECV, nullptr);
  ibv_srq_init_attr_ex shared{};
  shared.attr = {8, 1, 0};
  shared.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  shared.srq_type = IBV_SRQT_XRC;
  shared.pd = pd();
  shared.xrcd = xrcd();
  shared.cq = queue_;
  const SrqHandle srq(ibv_create_srq_ex(context(), &shared));
  ASSERT_NE(srq, nullptr) << std::strerror(errno);
  std::uint32_t number = 0;
  ASSERT_EQ(ibv_get_srq_num(srq.get(), &number), 0);
  ASSERT_EQ(lead(sender.get(), IBV_QPS_RTS, receiver), 0);
  ASSERT_EQ(lead(receiver, IBV_QPS_RTS, sender.get()), 0);
  ibv_mr* const memory = mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE);
  ibv_sge sge{at(0), 64, memory->lkey};
  ibv_recv_wr receive{7, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq.get(), &receive, &bad), 0);
  ibv_qp_ex* const with = ibv_qp_to_qp_ex(sender.get());
  ibv_wr_start(with);
  with->wr_id = 8;
  with->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(with);
  ibv_wr_set_xrc_srqn(with, number);
  ibv_wr_set_sge(with, memory->lkey, at(4096), 16);
  ASSERT_EQ(ibv_wr_complete(with), 0);
  for (const ibv_wc& wc : poll(queue_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST_P(Wr, DoesABatchInItsOrder) {
  SKIP_IF(open());
  begin(20);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  set_data(0, 64);
  wr_->wr_id = 21;
  wr_->wr_flags = 0;
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4160));
  set_data(64, 64);
  wr_->wr_id = 22;
  wr_->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  ibv_wr_rdma_read(wr_, memory_->rkey, at(4096));
  set_data(6000, 128);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const auto wcs = poll(queue_, 2);
  EXPECT_EQ(wcs[0].wr_id, 20u);
  EXPECT_EQ(wcs[1].wr_id, 22u);
  expect_same(0, 6000, 128);
}

TEST_P(Wr, DoesNothingOfWhatWasAborted) {
  SKIP_IF(open());
  begin(30);
  for (int i = 0; i < 5; ++i) {
    ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
    set_data(0, 64);
  }
  ibv_wr_abort(wr_);
  begin(31);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(5000));
  set_data(0, 8);
  expect_done(31, IBV_WC_RDMA_WRITE);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(queue_, 1, &wc), 0);
  EXPECT_EQ(word(4096), 0u);
}

TEST_P(Wr, AnEmptyBatchIsASuccess) {
  SKIP_IF(open());
  ibv_wr_start(wr_);
  EXPECT_EQ(ibv_wr_complete(wr_), 0);
  ibv_wr_start(wr_);
  ibv_wr_abort(wr_);
}

TEST_P(Wr, OfMoreThanTheQueueHoldsFailsAndDoesNothing) {
  // man ibv_wr_post: no work is executed until ibv_wr_complete returns success.
  SKIP_IF(open());
  begin(40);
  for (int i = 0; i < 1000; ++i) {
    ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
    set_data(0, 8);
  }
  EXPECT_EQ(ibv_wr_complete(wr_), ENOMEM);
  EXPECT_EQ(word(4096), 0u);
  begin(41);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(5000));
  set_data(0, 8);
  expect_done(41, IBV_WC_RDMA_WRITE);
}

TEST_P(Wr, WithMoreInlineThanWasGrantedFailsAndDoesNothing) {
  SKIP_IF(open());
  ibv_qp_attr told{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(a_.get(), &told, IBV_QP_CAP, &init), 0);
  begin(42);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(4096));
  ibv_wr_set_inline_data(wr_, bytes_, init.cap.max_inline_data + 1);
  EXPECT_NE(ibv_wr_complete(wr_), 0);
  EXPECT_EQ(word(4096), 0u);
  begin(43);
  ibv_wr_rdma_write(wr_, memory_->rkey, at(5000));
  set_data(0, 8);
  expect_done(43, IBV_WC_RDMA_WRITE);
}

TEST_P(Wr, AlternatesWithTheClassicVerb) {
  SKIP_IF(open());
  for (std::uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(post_receive(b_, 900, bytes_ + 4096, 256, memory_->lkey), 0);
    ASSERT_EQ(post_receive(b_, 901, bytes_ + 4096, 256, memory_->lkey), 0);
    ASSERT_EQ(post_send(a_.get(), round, bytes_, 16, memory_->lkey), 0);
    begin(100 + round);
    ibv_wr_send(wr_);
    set_data(0, 17);
    ASSERT_EQ(ibv_wr_complete(wr_), 0);
    std::vector<std::uint64_t> sends;
    for (const ibv_wc& wc : poll(queue_, 4)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.qp_num == a_->qp_num) sends.push_back(wc.wr_id);
    }
    EXPECT_EQ(sends, (std::vector{round, 100 + round}));
  }
}

TEST_P(Wr, OperationsThatTheTypeLacksAreRefusedAtCreation) {
  // man ibv_create_qp_ex: "If the QP does not support all the requested work request types then QP
  // creation will fail."
  SKIP_IF(open());
  SKIP_IF(lacks_type(context(), IBV_QPT_UC));
  ibv_qp_init_attr_ex init = asked(IBV_QP_EX_WITH_RDMA_READ, IBV_QPT_UC);
  expect_complaints();
  errno = 0;
  EXPECT_EQ(ibv_create_qp_ex(context(), &init), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_P(Wr, UnknownOperationsAreRefusedAtCreation) {
  SKIP_IF(open());
  ibv_qp_init_attr_ex init = asked(std::uint64_t{1} << 40);
  expect_complaints();
  errno = 0;
  EXPECT_EQ(ibv_create_qp_ex(context(), &init), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

}  // namespace
}  // namespace verbatim::harness
