// SPDX-License-Identifier: BSD-2-Clause
//
// Memory windows among several protection domains, and on regions that are changed (IBTA 10.6.7,
// 11.2.8; man ibv_bind_mw, ibv_rereg_mr): a window, its region and the queue pair that binds it are
// of one domain, and a region stays as it is while a window is bound to it.
#include <cerrno>

#include "tests/conformance/mr_stage.hpp"

namespace verbatim::harness {
namespace {

constexpr ibv_mw_type kWindowTypes[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

struct Window {
  MwHandle handle;
  std::uint32_t key = 0;  ///< of its last bind
};

class MwDomain : public MrStage {
 protected:
  void SetUp() override {
    MrStage::SetUp();
    other_.reset(ibv_alloc_pd(context()));
    stranger_ = qp_in(other_.get());
    guest_ = qp(IBV_QPT_RC, both_);
    join(guest_, stranger_.get());
  }
  std::string lacks_windows(ibv_mw_type type) {
    const MwHandle made(ibv_alloc_mw(pd(), type));
    return made ? std::string() : unless_unsupported("memory windows of that type", errno);
  }
  static Window window(ibv_pd* domain, ibv_mw_type type) {
    Window made{MwHandle(ibv_alloc_mw(domain, type))};
    EXPECT_NE(made.handle, nullptr);
    if (made.handle) made.key = made.handle->rkey;
    return made;
  }
  MrHandle region(ibv_pd* domain) { return MrHandle(ibv_reg_mr(domain, theirs_, 1024, kBindable)); }

  /// How a bind by `by` to 64 bytes of `region` ended. A refusal at the post is one of the bind.
  ibv_wc_status bind(ibv_qp* by, Window& window, ibv_mr* region, std::size_t from = 0,
                     std::size_t length = 64) {
    const ibv_mw_bind_info info{region, address_of(theirs_ + from), length,
                                IBV_ACCESS_REMOTE_WRITE};
    const int error = window.handle->type == IBV_MW_TYPE_1 ? post_bind(by, window, info)
                                                           : post_request(by, window, info);
    if (error == 0) return poll(both_, 1)[0].status;
    EXPECT_TRUE(error == EINVAL || error == EPERM) << error;
    return IBV_WC_MW_BIND_ERR;
  }
  /// It was not bound; `by`, whose peer is `peer`, works again.
  void expect_not_bound(ibv_qp* by, ibv_qp* peer, Window& window, ibv_mr* region,
                        std::size_t from = 0) {
    expect_complaints();
    const ibv_wc_status status = bind(by, window, region, from);
    EXPECT_TRUE(status == IBV_WC_MW_BIND_ERR || status == IBV_WC_LOC_PROT_ERR)
        << ibv_wc_status_str(status);
    join(by, peer);
    EXPECT_NE(write_over(peer, by, window, from), IBV_WC_SUCCESS);
  }
  /// Over a connection; it works afterwards.
  ibv_wc_status write_over(ibv_qp* asks, ibv_qp* answers, const Window& window,
                           std::size_t to = 0) {
    std::memset(theirs_ + to, 0, 64);
    const ibv_wc_status status =
        run_by(asks, IBV_WR_RDMA_WRITE, {address_of(mine_), 64, local_->lkey},
               address_of(theirs_ + to), window.key);
    EXPECT_EQ(std::memcmp(theirs_ + to, mine_, 64) == 0, status == IBV_WC_SUCCESS);
    if (status != IBV_WC_SUCCESS) join(asks, answers);
    return status;
  }
  void close(ibv_qp* by, Window& window, ibv_mr* region) {
    if (window.handle->type == IBV_MW_TYPE_1) {
      EXPECT_EQ(bind(by, window, region, 0, 0), IBV_WC_SUCCESS);
      return;
    }
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = window.key;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(by, &wr, &bad), 0);
    EXPECT_EQ(poll(both_, 1)[0].status, IBV_WC_SUCCESS);
  }
  /// Empty, or why none can be changed.
  std::string lacks_changes() {
    const MrHandle some = region(pd());
    if (ibv_rereg_mr(some.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kBindable) == 0)
      return {};
    return unless_unsupported("ibv_rereg_mr", errno);
  }

  static constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
  PdHandle other_;
  QpHandle stranger_;        ///< of the other domain
  ibv_qp* guest_ = nullptr;  ///< of ours, connected to it

 private:
  static int post_bind(ibv_qp* by, Window& window, const ibv_mw_bind_info& info) {
    ibv_mw_bind asked{};
    asked.send_flags = IBV_SEND_SIGNALED;
    asked.bind_info = info;
    const int error = ibv_bind_mw(by, window.handle.get(), &asked);
    window.key = window.handle->rkey;
    return error;
  }
  static int post_request(ibv_qp* by, Window& window, const ibv_mw_bind_info& info) {
    window.key = ibv_inc_rkey(window.key);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window.handle.get();
    wr.bind_mw.rkey = window.key;
    wr.bind_mw.bind_info = info;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(by, &wr, &bad);
  }
};
RUN_ON_EVERY_DEVICE(MwDomain);

TEST_P(MwDomain, IsNotBoundToARegionOfAnotherDomain) {
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    const MrHandle own = region(pd()), foreign = region(other_.get());
    Window tried = window(pd(), type);
    expect_not_bound(b_, a_, tried, foreign.get());
    EXPECT_EQ(bind(b_, tried, own.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsNotBoundIfItIsOfAnotherDomain) {
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    const MrHandle own = region(pd()), foreign = region(other_.get());
    Window tried = window(other_.get(), type);
    expect_not_bound(b_, a_, tried, own.get());
    EXPECT_EQ(bind(stranger_.get(), tried, foreign.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(guest_, stranger_.get(), tried), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsNotBoundByAQueuePairOfAnotherDomain) {
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    const MrHandle own = region(pd());
    Window tried = window(pd(), type);
    expect_not_bound(stranger_.get(), guest_, tried, own.get());
    EXPECT_EQ(bind(b_, tried, own.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsReachedOverTheQueuePairsOfItsDomainOrOverItsOwnAlone) {
  // IBTA 10.6.7: one of type 1 belongs to its domain, one of type 2 to the queue pair that bound
  // it.
  const auto [c, d] = connected(IBV_QPT_RC, both_);
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    const MrHandle own = region(pd());
    Window tried = window(pd(), type);
    ASSERT_EQ(bind(b_, tried, own.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(c, d, tried),
              type == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(write_over(guest_, stranger_.get(), tried), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsBoundAgainUnderTheKeyAfterTheOneThatItHas) {
  // man ibv_bind_mw, ibv_inc_rkey: the key that a window has stands in it, whoever chose it.
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    const MrHandle own = region(pd());
    Window tried = window(pd(), type);
    for (int round = 0; round < 3; ++round) {
      const std::uint32_t before = tried.handle->rkey;
      ASSERT_EQ(bind(b_, tried, own.get()), IBV_WC_SUCCESS) << round;
      EXPECT_NE(tried.handle->rkey, before);
      EXPECT_EQ(tried.handle->rkey, tried.key);
      EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_SUCCESS);
      close(b_, tried, own.get());
    }
  }
}

TEST_P(MwDomain, KeepsItsRegionAsItIsWhileItIsBound) {
  // IBTA 11.2.8.5: a region with windows bound to it is not reregistered.
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    SKIP_IF(lacks_changes());
    SKIP_IF(quirk_of(attr().vendor_id, kChangesBoundRegions));
    const MrHandle own = region(pd());
    Window tried = window(pd(), type);
    ASSERT_EQ(bind(b_, tried, own.get()), IBV_WC_SUCCESS);
    expect_complaints();
    for (int flags = 1; flags <= 7; ++flags) {
      EXPECT_NE(ibv_rereg_mr(own.get(), flags, other_.get(), theirs_ + 4096, 1024, kAllAccess), 0);
      EXPECT_TRUE(errno == EBUSY || errno == EINVAL) << errno;
    }
    EXPECT_EQ(own->pd, pd());
    EXPECT_EQ(own->addr, theirs_);
    EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_SUCCESS);

    close(b_, tried, own.get());
    ASSERT_EQ(
        ibv_rereg_mr(own.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, theirs_ + 4096, 1024, 0),
        0);
    EXPECT_EQ(write_over(a_, b_, tried), IBV_WC_REM_ACCESS_ERR);
    expect_not_bound(b_, a_, tried, own.get(), 0);
    EXPECT_EQ(bind(b_, tried, own.get(), 4096), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(a_, b_, tried, 4096), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsNotBoundToARegionThatWasTakenToAnotherDomain) {
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    SKIP_IF(lacks_changes());
    const MrHandle taken = region(pd());
    Window own = window(pd(), type), theirs = window(other_.get(), type);
    ASSERT_EQ(ibv_rereg_mr(taken.get(), IBV_REREG_MR_CHANGE_PD, other_.get(), nullptr, 0, 0), 0);
    expect_not_bound(b_, a_, own, taken.get());
    EXPECT_EQ(bind(stranger_.get(), theirs, taken.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(guest_, stranger_.get(), theirs), IBV_WC_SUCCESS);
  }
}

TEST_P(MwDomain, IsNotBoundToARegionThatLostTheRightToBeBound) {
  for (const ibv_mw_type type : kWindowTypes) {
    SCOPED_TRACE(type);
    SKIP_IF(lacks_windows(type));
    SKIP_IF(lacks_changes());
    const MrHandle own = region(pd());
    Window tried = window(pd(), type);
    const auto change_rights = [&](int rights) {
      return ibv_rereg_mr(own.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, rights);
    };
    ASSERT_EQ(change_rights(kAllAccess), 0);
    expect_not_bound(b_, a_, tried, own.get());
    ASSERT_EQ(change_rights(kBindable), 0);
    Window bound = window(pd(), type);
    EXPECT_EQ(bind(b_, bound, own.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(write_over(a_, b_, bound), IBV_WC_SUCCESS);
  }
}

}  // namespace
}  // namespace verbatim::harness
