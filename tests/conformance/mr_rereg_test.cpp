// SPDX-License-Identifier: BSD-2-Clause
//
// Regions that are changed while they live (IBTA 11.2.8.5; man ibv_rereg_mr): each combination of
// what ibv_rereg_mr changes, and who may use the region then.
#include <cerrno>

#include "tests/conformance/mr_stage.hpp"

namespace verbatim::harness {
namespace {

class Rereg : public MrStage {
 protected:
  static constexpr int kRead = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
};
RUN_ON_EVERY_DEVICE(Rereg);

TEST_P(Rereg, EachCombinationChangesWhatItNamesAndNothingElse) {
  const PdHandle other(ibv_alloc_pd(context()));
  for (int flags = 1; flags <= 7; ++flags) {
    SCOPED_TRACE(flags);
    ibv_mr* const made = ibv_reg_mr(pd(), theirs_, 1024, kAllAccess);
    ASSERT_NE(made, nullptr);
    const int answer = ibv_rereg_mr(made, flags, other.get(), theirs_ + 4096, 2048, kRead);
    if (answer != 0) {
      const int error = errno;
      EXPECT_EQ(ibv_dereg_mr(made), 0);
      SKIP_IF(unless_unsupported("ibv_rereg_mr", error));
    }
    const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool left = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
    const bool read_only = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    EXPECT_EQ(made->pd, left ? other.get() : pd());
    EXPECT_EQ(made->addr, moved ? theirs_ + 4096 : theirs_);
    EXPECT_EQ(made->length, moved ? 2048u : 1024u);
    const std::uint64_t place = address_of(theirs_) + (moved ? 4096 : 0);
    EXPECT_EQ(run(IBV_WR_RDMA_READ, place, made->rkey, 64, 1024),
              left ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    if (left) again();
    EXPECT_EQ(write_to(place, made->rkey),
              left || read_only ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    again();
    EXPECT_EQ(run(IBV_WR_RDMA_READ, address_of(theirs_) + (moved ? 0 : 4096), made->rkey, 64, 1024),
              IBV_WC_REM_ACCESS_ERR);
    again();
    EXPECT_EQ(ibv_dereg_mr(made), 0);
  }
}

TEST_P(Rereg, OfNothingOrOfUnknownThingsIsRefusedAndLeavesItAsItWas) {
  ibv_mr* const made = mr(theirs_, 1024, kAllAccess);
  if (ibv_rereg_mr(made, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess) != 0) {
    SKIP_IF(unless_unsupported("ibv_rereg_mr", errno));
  }
  expect_complaints();
  EXPECT_NE(ibv_rereg_mr(made, 1 << 20, pd(), theirs_, 64, 0), 0);
  EXPECT_NE(
      ibv_rereg_mr(made, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
      0);
  EXPECT_EQ(write_to(address_of(theirs_), made->rkey), IBV_WC_SUCCESS);
}

TEST_P(Rereg, IntoAnotherDomainItServesTheQueuePairsOfThatOneAlone) {
  // IBTA 10.2.3, 10.6.3: a key is good for queue pairs of its region's domain.
  const PdHandle other(ibv_alloc_pd(context()));
  const MrHandle made(ibv_reg_mr(pd(), theirs_, 1024, kAllAccess));
  const QpHandle stranger = qp_in(other.get());
  ibv_qp* const c = qp(IBV_QPT_RC, both_);
  join(c, stranger.get());
  const ibv_sge from_local{address_of(mine_), 64, local_->lkey};
  const ibv_sge from_made{address_of(theirs_), 64, made->lkey};
  const std::uint64_t sent_to = address_of(mine_ + 2048);
  const auto uses = [&](ibv_qp* peer, ibv_qp* own, ibv_wc_status afar, ibv_wc_status at_home) {
    // By the peer's request, then in one of its own.
    std::memset(theirs_, 0, 64);
    EXPECT_EQ(run_by(peer, IBV_WR_RDMA_WRITE, from_local, address_of(theirs_), made->rkey), afar);
    EXPECT_EQ(std::memcmp(theirs_, mine_, 64) == 0, afar == IBV_WC_SUCCESS);
    if (afar != IBV_WC_SUCCESS) join(peer, own);
    std::memset(theirs_, 0x33, 64);
    std::memset(mine_ + 2048, 0, 64);
    const ibv_wc_status status = run_by(own, IBV_WR_RDMA_WRITE, from_made, sent_to, local_->rkey);
    EXPECT_TRUE(is_status(attr().vendor_id, status, at_home)) << ibv_wc_status_str(status);
    EXPECT_EQ(std::memcmp(theirs_, mine_ + 2048, 64) == 0, at_home == IBV_WC_SUCCESS);
    if (at_home != IBV_WC_SUCCESS) join(peer, own);
  };
  uses(a_, b_, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
  uses(c, stranger.get(), IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR);
  constexpr int kDomain = IBV_REREG_MR_CHANGE_PD;
  if (ibv_rereg_mr(made.get(), kDomain, other.get(), nullptr, 0, 0) != 0)
    SKIP_IF(unless_unsupported("ibv_rereg_mr", errno));
  uses(c, stranger.get(), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
  uses(a_, b_, IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR);
  ASSERT_EQ(ibv_rereg_mr(made.get(), kDomain, pd(), nullptr, 0, 0), 0);
  uses(a_, b_, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
  uses(c, stranger.get(), IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR);
}

TEST_P(Rereg, IntoAnotherDomainItKeepsThatOneAliveAndNoLongerTheFirst) {
  // man ibv_alloc_pd: "ibv_dealloc_pd() may fail if any other resource is still associated".
  PdHandle first(ibv_alloc_pd(context()));
  const PdHandle second(ibv_alloc_pd(context()));
  const MrHandle made(ibv_reg_mr(first.get(), theirs_, 1024, kAllAccess));
  if (ibv_rereg_mr(made.get(), IBV_REREG_MR_CHANGE_PD, second.get(), nullptr, 0, 0) != 0)
    SKIP_IF(unless_unsupported("ibv_rereg_mr", errno));
  expect_complaints();
  EXPECT_EQ(ibv_dealloc_pd(second.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(first.release()), 0);
}

}  // namespace
}  // namespace verbatim::harness
