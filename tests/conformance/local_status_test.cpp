// SPDX-License-Identifier: BSD-2-Clause
//
// What a requester finds wrong by itself, apart from keys and lengths (rc_fault_local_test.cpp): a
// window that cannot be bound or invalidated is IBV_WC_MW_BIND_ERR (IBTA 10.6.7, 11.6.2: memory
// management operation error; man ibv_bind_mw, ibv_poll_cq), and what does not fit the queue pair
// is IBV_WC_LOC_QP_OP_ERR (IBTA 11.6.2: local QP operation error). What stands before it has
// succeeded, what stands behind it is flushed, signaled or not; no peer hears of it (IBTA 10.10.3).
#include <cerrno>

#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

class LocalStatus : public OnDevice {
 protected:
  void SetUp() override { both_ = cq(64); }
  void TearDown() override {
    if (window_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_mw(window_), 0);
    }
  }
  std::string open(ibv_mw_type type) {
    window_ = ibv_alloc_mw(pd(), type);
    if (window_ == nullptr) return unless_unsupported("memory windows of that type", errno);
    region_ = mr(bytes_, sizeof bytes_, kBindable);
    connect();
    expect_complaints();
    return {};
  }
  void connect() { std::tie(a_, b_) = connected(IBV_QPT_RC, both_); }
  /// 64 bytes within `region`.
  static ibv_mw_bind_info part_of(ibv_mr* region, unsigned rights = IBV_ACCESS_REMOTE_READ) {
    return {region, reinterpret_cast<std::uintptr_t>(region->addr) + 64, 64, rights};
  }
  /// Of the window under its next key.
  static ibv_send_wr bind(ibv_mw& window, const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw = {&window, ibv_inc_rkey(window.rkey), info};
    return wr;
  }
  static ibv_send_wr invalidate(std::uint32_t key) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = key;
    return wr;
  }
  int post(ibv_send_wr& first) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(a_, &first, &bad);
  }
  void expect_wc(const ibv_wc& wc, std::uint64_t id, ibv_wc_status status) {
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status) << wc.wr_id << ": " << ibv_wc_status_str(wc.status);
    EXPECT_EQ(wc.qp_num, a_->qp_num);
  }
  /// `bad`, which is not signaled, with a request before and one behind it. Another connection
  /// stands then.
  void expect_ends_in(ibv_wc_status status, ibv_send_wr bad) {
    ASSERT_EQ(post_receive(a_, 10, nullptr, 0, 0), 0);
    ASSERT_EQ(post_receive(b_, 11, nullptr, 0, 0), 0);
    ASSERT_EQ(post_send(a_, 1, nullptr, 0, 0), 0);
    for (const ibv_wc& wc : poll(both_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(post_receive(b_, 12, nullptr, 0, 0), 0);
    ibv_send_wr behind{};
    behind.wr_id = 3;
    behind.opcode = IBV_WR_SEND;
    bad.wr_id = 2;
    bad.send_flags = 0;
    bad.next = &behind;
    ASSERT_EQ(post(bad), 0);
    std::vector<ibv_wc> sends;
    for (const ibv_wc& wc : poll(both_, 3)) {
      if (wc.wr_id == 10)
        expect_wc(wc, 10, IBV_WC_WR_FLUSH_ERR);
      else
        sends.push_back(wc);
    }
    ASSERT_EQ(sends.size(), 2u);
    expect_wc(sends[0], 2, status);
    expect_wc(sends[1], 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(state(a_), IBV_QPS_ERR);
    EXPECT_EQ(state(b_), IBV_QPS_RTS);
    ibv_wc none;
    EXPECT_EQ(ibv_poll_cq(both_, 1, &none), 0) << "the peer's receive " << none.wr_id;
    connect();
  }

  alignas(4096) char bytes_[4096] = {};
  ibv_cq* both_ = nullptr;
  ibv_qp* a_ = nullptr;
  ibv_qp* b_ = nullptr;
  ibv_mw* window_ = nullptr;
  ibv_mr* region_ = nullptr;
};

class BindError : public LocalStatus {
 protected:
  /// By the request, and by ibv_bind_mw when the window is of type 1.
  void expect_error(const ibv_mw_bind_info& info) { expect_error(*window_, info); }
  void expect_error(ibv_mw& window, const ibv_mw_bind_info& info) {
    if (window.type == IBV_MW_TYPE_2) return expect_ends_in(IBV_WC_MW_BIND_ERR, bind(window, info));
    ibv_mw_bind asked{};
    asked.wr_id = 4;
    asked.bind_info = info;
    ASSERT_EQ(ibv_bind_mw(a_, &window, &asked), 0);
    expect_wc(poll(both_, 1)[0], 4, IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(state(a_), IBV_QPS_ERR);
    EXPECT_EQ(state(b_), IBV_QPS_RTS);
    connect();
  }
  /// Of what is of another protection domain (IBTA C10-72). A device may see that by what it has in
  /// hand when the request is posted, and refuse it there.
  void expect_foreign(ibv_mw& window, const ibv_mw_bind_info& info) {
    ibv_mw_bind asked{};
    asked.bind_info = info;
    ibv_send_wr request = bind(window, info);
    const int error =
        window.type == IBV_MW_TYPE_1 ? ibv_bind_mw(a_, &window, &asked) : post(request);
    if (error == EINVAL) {
      EXPECT_EQ(state(a_), IBV_QPS_RTS);
      return;
    }
    ASSERT_EQ(error, 0);
    EXPECT_EQ(poll(both_, 1)[0].status, IBV_WC_MW_BIND_ERR);
    connect();
    expect_error(window, info);
  }
  void expect_error_beyond(ibv_mr* region) {
    const auto begin = reinterpret_cast<std::uintptr_t>(region->addr);
    const std::uint64_t end = begin + region->length;
    for (ibv_mw_bind_info info :
         {ibv_mw_bind_info{region, begin - 1, 64, IBV_ACCESS_REMOTE_READ},
          ibv_mw_bind_info{region, end - 63, 64, IBV_ACCESS_REMOTE_READ},
          ibv_mw_bind_info{region, begin, region->length + 1, IBV_ACCESS_REMOTE_READ}}) {
      expect_error(info);
    }
  }
};
RUN_ON_EVERY_DEVICE(BindError);

TEST_P(BindError, OfTypeOneToARegionThatTakesNoWindows) {
  // IBTA C10-73.
  SKIP_IF(open(IBV_MW_TYPE_1));
  expect_error(part_of(mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE)));
}

TEST_P(BindError, OfTypeTwoToARegionThatTakesNoWindows) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  expect_error(part_of(mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE)));
}

TEST_P(BindError, OfTypeOneForWritersToARegionThatCannotBeWritten) {
  // IBTA C10-74.
  SKIP_IF(open(IBV_MW_TYPE_1));
  expect_error(part_of(mr(bytes_, sizeof bytes_, IBV_ACCESS_MW_BIND), IBV_ACCESS_REMOTE_WRITE));
}

TEST_P(BindError, OfTypeTwoForWritersToARegionThatCannotBeWritten) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  ibv_mr* const readable = mr(bytes_, sizeof bytes_, IBV_ACCESS_MW_BIND);
  expect_error(part_of(readable, IBV_ACCESS_REMOTE_WRITE));
  expect_error(part_of(readable, IBV_ACCESS_REMOTE_ATOMIC));
}

TEST_P(BindError, OfTypeOneToBytesThatAreNotOfTheRegion) {
  // IBTA C10-75.
  SKIP_IF(open(IBV_MW_TYPE_1));
  expect_error_beyond(mr(bytes_ + 64, 1024, kBindable));
}

TEST_P(BindError, OfTypeTwoToBytesThatAreNotOfTheRegion) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  expect_error_beyond(mr(bytes_ + 64, 1024, kBindable));
}

TEST_P(BindError, IsNotWhatARegionOfAnotherDomainThanItsWindowsIsButAnErrorOfTheVerb) {
  // ibv_bind_mw compares the two itself: EPERM, and nothing was posted.
  SKIP_IF(open(IBV_MW_TYPE_1));
  const PdHandle other(ibv_alloc_pd(context()));
  const MrHandle foreign(ibv_reg_mr(other.get(), bytes_, sizeof bytes_, kBindable));
  ASSERT_NE(foreign, nullptr);
  ibv_mw_bind asked{};
  asked.send_flags = IBV_SEND_SIGNALED;
  asked.bind_info = part_of(foreign.get());
  EXPECT_EQ(ibv_bind_mw(a_, window_, &asked), EPERM);
  asked.bind_info = part_of(region_);
  EXPECT_EQ(ibv_bind_mw(a_, window_, &asked), 0);
  EXPECT_EQ(poll(both_, 1)[0].status, IBV_WC_SUCCESS);
}

TEST_P(BindError, OfTypeTwoToARegionOfAnotherProtectionDomain) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  const PdHandle other(ibv_alloc_pd(context()));
  const MrHandle foreign(ibv_reg_mr(other.get(), bytes_, sizeof bytes_, kBindable));
  ASSERT_NE(foreign, nullptr);
  expect_foreign(*window_, part_of(foreign.get()));
}

TEST_P(BindError, OfAWindowOfAnotherProtectionDomain) {
  // Also when the region is of that domain, too.
  SKIP_IF(open(IBV_MW_TYPE_2));
  const PdHandle other(ibv_alloc_pd(context()));
  const MrHandle there(ibv_reg_mr(other.get(), bytes_, sizeof bytes_, kBindable));
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    const MwHandle foreign(ibv_alloc_mw(other.get(), type));
    ASSERT_NE(foreign, nullptr);
    expect_foreign(*foreign, part_of(there.get()));
  }
}

TEST_P(BindError, OfAWindowOfTypeTwoThatIsBound) {
  // IBTA 10.6.7.2: it is invalidated first.
  SKIP_IF(open(IBV_MW_TYPE_2));
  ibv_send_wr good = bind(*window_, part_of(region_));
  good.send_flags = IBV_SEND_SIGNALED;
  good.wr_id = 5;
  ASSERT_EQ(post(good), 0);
  expect_wc(poll(both_, 1)[0], 5, IBV_WC_SUCCESS);
  window_->rkey = good.bind_mw.rkey;
  expect_ends_in(IBV_WC_MW_BIND_ERR, bind(*window_, part_of(region_)));
}

TEST_P(BindError, OfAnInvalidateOfAWindowThatIsNotBound) {
  SKIP_IF(quirk_of(attr().vendor_id, kDiesOfAnInvalidate));
  SKIP_IF(open(IBV_MW_TYPE_2));
  expect_ends_in(IBV_WC_MW_BIND_ERR, invalidate(window_->rkey));
}

TEST_P(BindError, OfAnInvalidateOfWhatIsNoWindowOfTypeTwo) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  const ibv_wc_status status = quirk_of(attr().vendor_id, kInvalidatesAsAnOperation).empty()
                                   ? IBV_WC_MW_BIND_ERR
                                   : IBV_WC_LOC_QP_OP_ERR;
  const MwHandle of_type_one(ibv_alloc_mw(pd(), IBV_MW_TYPE_1));
  ASSERT_NE(of_type_one, nullptr);
  for (const std::uint32_t key : {of_type_one->rkey, region_->rkey, 0u}) {
    SCOPED_TRACE(key);
    expect_ends_in(status, invalidate(key));
  }
}

class OperationError : public LocalStatus {};
RUN_ON_EVERY_DEVICE(OperationError);

TEST_P(OperationError, OfADatagramByAnAddressHandleOfAnotherProtectionDomain) {
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  expect_complaints();
  const PdHandle other(ibv_alloc_pd(context()));
  ibv_ah_attr path = path_to_self(session());
  const AhHandle foreign(ibv_create_ah(other.get(), &path));
  ASSERT_NE(foreign, nullptr) << std::strerror(errno);
  ibv_mr* const region = mr(bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE);
  for (const unsigned flags : {0u, unsigned{IBV_SEND_INLINE}}) {
    SCOPED_TRACE(flags);
    a_ = qp(IBV_QPT_UD, both_);
    ASSERT_EQ(lead(a_, IBV_QPS_RTS), 0);
    ASSERT_EQ(post_receive(a_, 10, bytes_, 128, region->lkey), 0);
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes_ + 256), 16, region->lkey};
    ibv_send_wr behind{3, nullptr, &sge, 1, IBV_WR_SEND, 0, {}, {}, {}, {}};
    behind.wr.ud = {ah_to_self(), a_->qp_num, kQkey};
    ibv_send_wr bad = behind;
    bad.wr_id = 2;
    bad.next = &behind;
    bad.send_flags = flags;
    bad.wr.ud.ah = foreign.get();
    ASSERT_EQ(post(bad), 0);
    const auto ended = poll(both_, 2);
    expect_wc(ended[0], 2, IBV_WC_LOC_QP_OP_ERR);
    if (state(a_) == IBV_QPS_ERR && !quirk_of(attr().vendor_id, kNoSendQueueError).empty()) {
      // Both queues are flushed, each in an order of its own.
      const ibv_wc third = poll(both_, 1)[0];
      const bool sends_first = ended[1].wr_id == 3;
      expect_wc(sends_first ? ended[1] : third, 3, IBV_WC_WR_FLUSH_ERR);
      expect_wc(sends_first ? third : ended[1], 10, IBV_WC_WR_FLUSH_ERR);
      continue;
    }
    expect_wc(ended[1], 3, IBV_WC_WR_FLUSH_ERR);
    // IBTA 10.3.1.6: its receive queue goes on, and it sends again.
    EXPECT_EQ(state(a_), IBV_QPS_SQE);
    ASSERT_EQ(to_state(a_, IBV_QPS_RTS), 0);
    behind.wr_id = 4;
    behind.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(post(behind), 0);
    for (const ibv_wc& wc : poll(both_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
}

}  // namespace
}  // namespace verbatim::harness
