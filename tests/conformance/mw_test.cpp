// SPDX-License-Identifier: BSD-2-Clause
//
// Memory windows (IBTA 10.6.6, 10.6.7; man ibv_alloc_mw, ibv_bind_mw): what one opens, how it is
// closed, and of which region and domain it may be. Its bytes and rights: window_matrix_test.cpp.
#include <cerrno>

#include "tests/conformance/mr_stage.hpp"

namespace verbatim::harness {
namespace {

class Mw : public MrStage {
 protected:
  std::string open(ibv_mw_type type) {
    window_ = ibv_alloc_mw(pd(), type);
    if (window_ == nullptr) return unless_unsupported("memory windows of that type", errno);
    region_ = mr(theirs_, sizeof theirs_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    return {};
  }
  void TearDown() override {
    if (window_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_mw(window_), 0);
    }
  }
  ibv_mw_bind_info part(std::size_t from, std::size_t length, unsigned rights) {
    return {region_, address_of(theirs_ + from), length, rights};
  }
  /// By the responder, whose the window is: the status of a bind of type 1.
  ibv_wc_status bind(const ibv_mw_bind_info& info) {
    ibv_mw_bind asked{};
    asked.wr_id = 5;
    asked.send_flags = IBV_SEND_SIGNALED;
    asked.bind_info = info;
    EXPECT_EQ(ibv_bind_mw(b_, window_, &asked), 0);
    return poll(both_, 1)[0].status;
  }
  /// And of type 2, with a key of the program's choice.
  ibv_wc_status bind_as(std::uint32_t key, const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window_;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = info;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(b_, &wr, &bad), 0);
    return poll(both_, 1)[0].status;
  }
  ibv_mw* window_ = nullptr;
  ibv_mr* region_ = nullptr;
};
RUN_ON_EVERY_DEVICE(Mw);

TEST_P(Mw, OfTypeOneOpensAPartForWhatItSays) {
  SKIP_IF(open(IBV_MW_TYPE_1));
  ASSERT_EQ(bind(part(1024, 512, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(address_of(theirs_ + 1024), window_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 1024, mine_, 64), 0);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, address_of(theirs_ + 1024), window_->rkey, 64, 2048),
            IBV_WC_REM_ACCESS_ERR);
  SKIP_IF(quirk_of(attr().vendor_id, kWindowsWithoutBounds));
  again();
  EXPECT_EQ(write_to(address_of(theirs_ + 1024 + 512 - 63), window_->rkey), IBV_WC_REM_ACCESS_ERR);
  again();
  EXPECT_EQ(write_to(address_of(theirs_ + 1023), window_->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Mw, OfTypeOneHasANewKeyWithEachBind) {
  SKIP_IF(open(IBV_MW_TYPE_1));
  ASSERT_EQ(bind(part(0, 512, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  const std::uint32_t old = window_->rkey;
  ASSERT_EQ(bind(part(512, 512, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  EXPECT_NE(window_->rkey, old);
  EXPECT_EQ(write_to(address_of(theirs_ + 512), window_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(address_of(theirs_), old), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Mw, OfTypeOneIsClosedByABindOfNoLength) {
  SKIP_IF(open(IBV_MW_TYPE_1));
  ASSERT_EQ(bind(part(0, 512, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  const std::uint32_t old = window_->rkey;
  ASSERT_EQ(bind(part(0, 0, 0)), IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(address_of(theirs_), old), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Mw, IsClosedWhenItIsGivenBack) {
  SKIP_IF(open(IBV_MW_TYPE_1));
  ASSERT_EQ(bind(part(0, 512, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  const std::uint32_t key = window_->rkey;
  ASSERT_EQ(ibv_dealloc_mw(window_), 0);
  window_ = nullptr;
  EXPECT_EQ(write_to(address_of(theirs_), key), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Mw, OfTypeTwoHasTheKeyThatTheProgramChose) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  const std::uint32_t key = ibv_inc_rkey(window_->rkey);
  ASSERT_EQ(bind_as(key, part(64, 256, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)),
            IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(address_of(theirs_ + 64), key), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 64, mine_, 64), 0);
}

TEST_P(Mw, OfTypeTwoIsClosedByALocalInvalidate) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  const std::uint32_t key = ibv_inc_rkey(window_->rkey);
  ASSERT_EQ(bind_as(key, part(0, 256, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = key;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(b_, &wr, &bad), 0);
  const ibv_wc wc = poll(both_, 1)[0];
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write_to(address_of(theirs_), key), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Mw, OfTypeTwoIsClosedByASendThatSaysSo) {
  SKIP_IF(open(IBV_MW_TYPE_2));
  const std::uint32_t key = ibv_inc_rkey(window_->rkey);
  ASSERT_EQ(bind_as(key, part(0, 256, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
  ASSERT_EQ(post_receive(b_, 9, nullptr, 0, 0), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = key;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
  const ibv_wc wc = poll(both_, 1)[0];
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(wc.invalidated_rkey, key);
  EXPECT_EQ(write_to(address_of(theirs_), key), IBV_WC_REM_ACCESS_ERR);
}

// man ibv_bind_mw lists the remote rights and ZERO_BASED; programs pass those of the region too, and
// rdma-core's providers (mlx5: qp.c) look at none of them.
TEST_P(Mw, MayBeAskedForRightsThatOnlyRegionsHave) {
  constexpr unsigned kAsked = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB |
                              IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_REMOTE_WRITE;
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    SCOPED_TRACE(type);
    SKIP_IF(open(type));
    std::uint32_t key = ibv_inc_rkey(window_->rkey);
    const ibv_mw_bind_info info = part(64, 256, kAsked);
    ASSERT_EQ(type == IBV_MW_TYPE_1 ? bind(info) : bind_as(key, info), IBV_WC_SUCCESS);
    if (type == IBV_MW_TYPE_1) key = window_->rkey;
    EXPECT_EQ(write_to(address_of(theirs_ + 64), key), IBV_WC_SUCCESS);
    EXPECT_EQ(run(IBV_WR_RDMA_READ, address_of(theirs_ + 64), key, 64, 2048), IBV_WC_REM_ACCESS_ERR)
        << "a right that was not asked for";
    ASSERT_EQ(ibv_dealloc_mw(window_), 0);
    window_ = nullptr;
    again();
  }
}

TEST_P(Mw, OnARegionThatMayNotBeBoundIsAnError) {
  // IBTA 10.6.6.2.5: a memory management operation error, or a refusal at the post.
  SKIP_IF(open(IBV_MW_TYPE_1));
  ibv_mr* const closed = mr(theirs_, 1024, IBV_ACCESS_LOCAL_WRITE);
  ibv_mw_bind asked{};
  asked.send_flags = IBV_SEND_SIGNALED;
  asked.bind_info = {closed, address_of(theirs_), 64, IBV_ACCESS_REMOTE_WRITE};
  expect_complaints();
  const int error = ibv_bind_mw(b_, window_, &asked);
  if (error != 0) {
    EXPECT_TRUE(error == EINVAL || error == EPERM) << error;
    return;
  }
  const ibv_wc_status status = poll(both_, 1)[0].status;
  EXPECT_TRUE(status == IBV_WC_MW_BIND_ERR || status == IBV_WC_LOC_PROT_ERR) << status;
}

}  // namespace
}  // namespace verbatim::harness
