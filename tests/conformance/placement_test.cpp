// SPDX-License-Identifier: BSD-2-Clause
//
// The memory placement extensions (IBTA A19): 8 bytes that are written at once, and FLUSH, behind
// whose completion what was written before it is seen, or outlasts a loss of power.
#include "tests/conformance/wr_stage.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

class WrPlacement : public WrStage {
 protected:
  std::string open_for_atomic_writes() {
    return open(kOperations | IBV_QP_EX_WITH_ATOMIC_WRITE, "ATOMIC WRITE");
  }
  /// With a region and a connection that let themselves be flushed.
  std::string open_for_flush(unsigned rights_of_region = IBV_ACCESS_FLUSH_GLOBAL) {
    if (std::string why = open(kOperations | IBV_QP_EX_WITH_FLUSH, "FLUSH"); !why.empty())
      return why;
    flushed_ = mr(bytes_, sizeof bytes_, kAllAccess | static_cast<int>(rights_of_region));
    if (flushed_ == nullptr) return unless_unsupported("IBV_ACCESS_FLUSH_GLOBAL", errno);
    EXPECT_EQ(to_state(b_, IBV_QPS_RESET), 0);
    EXPECT_EQ(lead(b_, IBV_QPS_INIT, a_.get()), 0);
    ibv_qp_attr rights{};
    rights.qp_access_flags = kAllAccess | static_cast<unsigned>(IBV_ACCESS_FLUSH_GLOBAL);
    if (const int error = ibv_modify_qp(b_, &rights, IBV_QP_ACCESS_FLAGS))
      return unless_unsupported("a queue pair with FLUSH_GLOBAL", error);
    for (const ibv_qp_state next : {IBV_QPS_RTR, IBV_QPS_RTS}) {
      ibv_qp_attr more{};
      const int mask = attributes_for(IBV_QPT_RC, next, session(), a_->qp_num, more);
      EXPECT_EQ(ibv_modify_qp(b_, &more, mask), 0);
    }
    return {};
  }
  void expect_failed(std::uint64_t id, ibv_wc_status status) {
    expect_complaints();
    ASSERT_EQ(ibv_wr_complete(wr_), 0);
    const ibv_wc wc = poll(queue_, 1)[0];
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
  }
  /// A message that waits for its receive, and behind it what `add` adds as request 2.
  template <class Add>
  void expect_done_behind_a_message_that_waits(Add add, ibv_wc_opcode opcode) {
    begin(1);
    ibv_wr_send(wr_);
    set_data(0, 8);
    wr_->wr_id = 2;
    add();
    ASSERT_EQ(ibv_wr_complete(wr_), 0);
    ibv_wc wc{};
    // Long enough for it to be refused, and asked for again.
    for (int i = 0; i < 100000; ++i) ASSERT_EQ(ibv_poll_cq(queue_, 1, &wc), 0) << wc.wr_id;
    ASSERT_EQ(post_receive(b_, 9, bytes_ + 6000, 8, memory_->lkey), 0);
    for (const ibv_wc& done : poll(queue_, 3)) {
      EXPECT_EQ(done.status, IBV_WC_SUCCESS) << done.wr_id << ibv_wc_status_str(done.status);
      if (done.wr_id == 2) {
        EXPECT_EQ(done.opcode, opcode);
      }
    }
  }

  const std::uint64_t value_ = 0x1122334455667788;
  ibv_mr* flushed_ = nullptr;
};
RUN_ON_EVERY_DEVICE(WrPlacement);

TEST_P(WrPlacement, WritesEightBytesAtOnce) {
  SKIP_IF(open_for_atomic_writes());
  begin(11);
  ibv_wr_atomic_write(wr_, memory_->rkey, at(4096), &value_);
  expect_done(11, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(4096), value_);
}

TEST_P(WrPlacement, EightBytesAtOnceGoToAMultipleOfEightOnly) {
  SKIP_IF(open_for_atomic_writes());
  begin(11);
  ibv_wr_atomic_write(wr_, memory_->rkey, at(4100), &value_);
  expect_failed(11, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_NE(word(4096), value_);
}

TEST_P(WrPlacement, EightBytesAtOnceNeedTheRightToWrite) {
  SKIP_IF(open_for_atomic_writes());
  ibv_mr* const read_only =
      mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  begin(11);
  ibv_wr_atomic_write(wr_, read_only->rkey, at(4096), &value_);
  expect_failed(11, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(WrPlacement, EightBytesAtOnceAreAskedForAgainAsTheyWere) {
  SKIP_IF(open_for_atomic_writes());
  SKIP_IF(quirk_of(attr().vendor_id, kRepeatsPlacementAtAddressZero));
  expect_done_behind_a_message_that_waits(
      [&] { ibv_wr_atomic_write(wr_, memory_->rkey, at(4096), &value_); }, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(4096), value_);
}

TEST_P(WrPlacement, FlushesWhatWasWritten) {
  SKIP_IF(open_for_flush());
  begin(12);
  ibv_wr_rdma_write(wr_, flushed_->rkey, at(4096));
  set_data(0, 64);
  wr_->wr_id = 13;
  ibv_wr_flush(wr_, flushed_->rkey, at(4096), 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  const auto wcs = poll(queue_, 2);
  EXPECT_EQ(wcs[1].status, IBV_WC_SUCCESS) << ibv_wc_status_str(wcs[1].status);
  EXPECT_EQ(wcs[1].opcode, IBV_WC_FLUSH);
  expect_same(0, 4096, 64);
}

TEST_P(WrPlacement, FlushesAWholeRegionWhereverItIsAsked) {
  SKIP_IF(open_for_flush());
  begin(13);
  ibv_wr_flush(wr_, flushed_->rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
  expect_done(13, IBV_WC_FLUSH);
}

TEST_P(WrPlacement, AFlushOfMoreThanTheRegionIsRefused) {
  SKIP_IF(open_for_flush());
  begin(13);
  ibv_wr_flush(wr_, flushed_->rkey, at(4096), 4097, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  expect_failed(13, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(WrPlacement, AFlushNeedsTheRightOfTheRegion) {
  SKIP_IF(open_for_flush(0));
  begin(13);
  ibv_wr_flush(wr_, flushed_->rkey, at(4096), 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  expect_failed(13, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(WrPlacement, AFlushIsAskedForAgainAsItWas) {
  SKIP_IF(open_for_flush());
  SKIP_IF(quirk_of(attr().vendor_id, kRepeatsPlacementAtAddressZero));
  expect_done_behind_a_message_that_waits(
      [&] { ibv_wr_flush(wr_, flushed_->rkey, at(4096), 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE); },
      IBV_WC_FLUSH);
}

}  // namespace
}  // namespace verbatim::harness
