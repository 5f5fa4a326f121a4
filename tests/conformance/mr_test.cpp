// SPDX-License-Identifier: BSD-2-Clause
//
// Memory regions and what is like them (IBTA 10.6, 11.2.8; man ibv_reg_mr, ibv_advise_mr,
// ibv_alloc_null_mr, ibv_alloc_dm, ibv_reg_dmabuf_mr). Changed ones: mr_rereg_test.cpp; windows on
// them: mw_test.cpp.
#include <cerrno>
#include <cstring>
#include <set>

#include "tests/conformance/mr_stage.hpp"

namespace verbatim::harness {
namespace {

class Mr : public MrStage {};
RUN_ON_EVERY_DEVICE(Mr);

TEST_P(Mr, TellsWhatWasRegistered) {
  ibv_mr* const made = mr(theirs_, 777, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->addr, theirs_);
  EXPECT_EQ(made->length, 777u);
  EXPECT_EQ(made->pd, pd());
  EXPECT_EQ(made->context, context());
}

TEST_P(Mr, EachHasKeysOfItsOwn) {
  std::set<std::uint32_t> local, remote;
  for (int i = 0; i < 50; ++i) {
    ibv_mr* const made = mr(theirs_, 100, kAllAccess);
    EXPECT_TRUE(local.insert(made->lkey).second);
    EXPECT_TRUE(remote.insert(made->rkey).second);
  }
}

TEST_P(Mr, MayOverlapOthers) {
  ibv_mr* const first = mr(theirs_, 4096, kAllAccess);
  ibv_mr* const second = mr(theirs_ + 64, 4096, kAllAccess);
  EXPECT_EQ(write_to(address_of(theirs_ + 64), first->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(address_of(theirs_ + 128), second->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 128, mine_, 64), 0);
}

TEST_P(Mr, WithRemoteWriteOrAtomicsNeedsLocalWrite) {
  // man ibv_reg_mr: "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
  // IBV_ACCESS_LOCAL_WRITE must be set too".
  expect_complaints();
  for (const int access : {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC}}) {
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd(), theirs_, 100, access), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(Mr, WithUnknownRightsIsRefused) {
  expect_complaints();
  errno = 0;
  int access = 1 << 18;
  EXPECT_EQ(ibv_reg_mr(pd(), theirs_, 100, access), nullptr);
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
}

TEST_P(Mr, TakesOptionalRightsThatItDoesNotKnow) {
  // man ibv_reg_mr: bits of IBV_ACCESS_OPTIONAL_RANGE are hints.
  int access = kAllAccess | static_cast<int>(IBV_ACCESS_RELAXED_ORDERING);
  const MrHandle relaxed(ibv_reg_mr(pd(), theirs_, 100, access));
  EXPECT_NE(relaxed, nullptr) << std::strerror(errno);
  access = kAllAccess | static_cast<int>(1u << 29);
  const MrHandle unheard_of(ibv_reg_mr(pd(), theirs_, 100, access));
  EXPECT_NE(unheard_of, nullptr) << std::strerror(errno);
}

TEST_P(Mr, AroundTheEndOfTheAddressSpaceIsRefused) {
  expect_complaints();
  EXPECT_EQ(ibv_reg_mr(pd(), theirs_, ~std::size_t{0}, 0), nullptr);
}

TEST_P(Mr, AtAnAddressOfTheProgramsChoiceIsReachedThere) {
  constexpr std::uint64_t kBase = 0x7700000000;
  ibv_mr* const made = ibv_reg_mr_iova(pd(), theirs_, 4096, kBase, kAllAccess);
  if (made == nullptr) SKIP_IF(unless_unsupported("ibv_reg_mr_iova", errno));
  EXPECT_EQ(write_to(kBase + 128, made->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 128, mine_, 64), 0);
  EXPECT_EQ(write_to(address_of(theirs_), made->rkey), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

TEST_P(Mr, AtAnAddressOfTheProgramsChoiceIsNamedSoInLocalPiecesToo) {
  constexpr std::uint64_t kBase = 0x10000;
  ibv_mr* const made = ibv_reg_mr_iova2(pd(), theirs_, 4096, kBase, kAllAccess);
  if (made == nullptr) SKIP_IF(unless_unsupported("ibv_reg_mr_iova2", errno));
  ASSERT_EQ(post_receive(b_, 1, reinterpret_cast<void*>(kBase), 64, made->lkey), 0);
  ASSERT_EQ(post_send(a_, 2, mine_, 64, local_->lkey), 0);
  for (const ibv_wc& wc : poll(both_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_, mine_, 64), 0);
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

TEST_P(Mr, OfBaseZeroIsReachedByOffsets) {
  int access = kAllAccess | IBV_ACCESS_ZERO_BASED;
  ibv_mr* const made = ibv_reg_mr(pd(), theirs_, 4096, access);
  if (made == nullptr) SKIP_IF(unless_unsupported("IBV_ACCESS_ZERO_BASED", errno));
  EXPECT_EQ(write_to(256, made->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(theirs_ + 256, mine_, 64), 0);
  EXPECT_EQ(write_to(4096 - 63, made->rkey), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

TEST_P(Mr, ThatCanBeFlushedIsLikeAnyOther) {
  int access = kAllAccess | static_cast<int>(IBV_ACCESS_FLUSH_GLOBAL);
  ibv_mr* const made = ibv_reg_mr(pd(), theirs_, 4096, access);
  if (made == nullptr) SKIP_IF(unless_unsupported("IBV_ACCESS_FLUSH_GLOBAL", errno));
  EXPECT_EQ(write_to(address_of(theirs_), made->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

TEST_P(Mr, OrdinaryMemoryIsNotPromisedToOutlastALossOfPower) {
  expect_complaints();
  int access = kAllAccess | static_cast<int>(IBV_ACCESS_FLUSH_PERSISTENT);
  EXPECT_EQ(ibv_reg_mr(pd(), theirs_, 4096, access), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_P(Mr, OnDemandIsLikeAnyOther) {
  int access = kAllAccess | IBV_ACCESS_ON_DEMAND;
  ibv_mr* const made = ibv_reg_mr(pd(), theirs_, 4096, access);
  if (made == nullptr) SKIP_IF(unless_unsupported("IBV_ACCESS_ON_DEMAND", errno));
  EXPECT_EQ(write_to(address_of(theirs_), made->rkey), IBV_WC_SUCCESS);
  ibv_sge piece{address_of(theirs_), 4096, made->lkey};
  for (const ibv_advise_mr_advice advice :
       {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
        IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT}) {
    const int error = ibv_advise_mr(pd(), advice, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1);
    EXPECT_TRUE(error == 0 || error == EOPNOTSUPP) << error;
    if (error != 0) expect_complaints();
  }
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

TEST_P(Mr, AdviceOnNothingIsRefused) {
  expect_complaints();
  ibv_sge piece{address_of(theirs_), 100, 0x7fffff00};
  EXPECT_NE(ibv_advise_mr(pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), 0);
}

TEST_P(Mr, OfNothingSwallowsAndGivesZeros) {
  // man ibv_alloc_null_mr: writes are discarded, reads give zeros.
  ibv_mr* const nothing = ibv_alloc_null_mr(pd());
  if (nothing == nullptr) SKIP_IF(unless_unsupported("ibv_alloc_null_mr", errno));
  std::memset(theirs_, 0x55, 128);
  ibv_mr* const there = mr(theirs_, sizeof theirs_, kAllAccess);
  ASSERT_EQ(post_receive(b_, 1, theirs_, 128, there->lkey), 0);
  ASSERT_EQ(post_send(a_, 2, nullptr, 100, nothing->lkey), 0);
  for (const ibv_wc& wc : poll(both_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(theirs_[i], 0);
  EXPECT_EQ(theirs_[100], 0x55);
  ASSERT_EQ(post_receive(b_, 3, nullptr, 128, nothing->lkey), 0);
  ASSERT_EQ(post_send(a_, 4, mine_, 64, local_->lkey), 0);
  for (const ibv_wc& wc : poll(both_, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(nothing), 0);
}

/// Device memory (man ibv_alloc_dm).
class Dm : public MrStage {
 protected:
  std::string open(std::size_t length = 4096) {
    ibv_alloc_dm_attr init{};
    init.length = length;
    memory_ = ibv_alloc_dm(context(), &init);
    return memory_ != nullptr ? std::string() : unless_unsupported("device memory", errno);
  }
  void TearDown() override {
    if (memory_ != nullptr) {
      EXPECT_EQ(ibv_free_dm(memory_), 0);
    }
  }
  ibv_dm* memory_ = nullptr;
};
RUN_ON_EVERY_DEVICE(Dm);

TEST_P(Dm, KeepsWhatIsCopiedIntoIt) {
  SKIP_IF(open());
  ASSERT_EQ(ibv_memcpy_to_dm(memory_, 256, mine_, 512), 0);
  ASSERT_EQ(ibv_memcpy_from_dm(theirs_, memory_, 256, 512), 0);
  EXPECT_EQ(std::memcmp(theirs_, mine_, 512), 0);
}

TEST_P(Dm, RefusesCopiesBeyondItsEnd) {
  SKIP_IF(open());
  expect_complaints();
  EXPECT_NE(ibv_memcpy_to_dm(memory_, 4096, mine_, 64), 0);
  EXPECT_NE(ibv_memcpy_from_dm(theirs_, memory_, 4096 - 32, 64), 0);
}

TEST_P(Dm, IsWrittenByPeersThroughItsRegion) {
  SKIP_IF(open());
  ibv_mr* const made = ibv_reg_dm_mr(pd(), memory_, 0, 4096,
                                     kAllAccess | static_cast<unsigned>(IBV_ACCESS_ZERO_BASED));
  ASSERT_NE(made, nullptr) << std::strerror(errno);
  EXPECT_EQ(write_to(128, made->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(ibv_memcpy_from_dm(theirs_, memory_, 128, 64), 0);
  EXPECT_EQ(std::memcmp(theirs_, mine_, 64), 0);
  EXPECT_EQ(ibv_dereg_mr(made), 0);
}

// Linux, drivers/infiniband/core/uverbs_std_types_mr.c: only the end of the range is looked at.
TEST_P(Dm, MayHaveARegionOfNoBytesWhichShowsNone) {
  SKIP_IF(open());
  for (const std::uint64_t offset : {0u, 64u, 4096u}) {
    SCOPED_TRACE(offset);
    ibv_mr* const made = ibv_reg_dm_mr(pd(), memory_, offset, 0,
                                       kAllAccess | static_cast<unsigned>(IBV_ACCESS_ZERO_BASED));
    ASSERT_NE(made, nullptr) << std::strerror(errno);
    EXPECT_EQ(made->length, 0u);
    EXPECT_EQ(write_to(0, made->rkey), IBV_WC_REM_ACCESS_ERR);
    again();
    EXPECT_EQ(ibv_dereg_mr(made), 0);
  }
}

// man ibv_memcpy_to_dm leaves it to the device; mlx5, the only adapter that has such memory, copies
// words of 4 bytes and says EINVAL (rdma-core, providers/mlx5/verbs.c).
TEST_P(Dm, RefusesCopiesThatAreNotOfWholeWords) {
  SKIP_IF(open());
  expect_complaints();
  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::size_t>{1, 4}, {2, 4}, {0, 3}, {4, 6}, {3, 5}, {4095, 1}}) {
    SCOPED_TRACE(::testing::Message() << length << " bytes at " << offset);
    EXPECT_EQ(ibv_memcpy_to_dm(memory_, offset, mine_, length), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(theirs_, memory_, offset, length), EINVAL);
  }
  EXPECT_EQ(ibv_memcpy_to_dm(memory_, 4, mine_ + 1, 12), 0) << "the program's side may be anywhere";
  EXPECT_EQ(ibv_memcpy_from_dm(theirs_ + 1, memory_, 4, 12), 0);
  EXPECT_EQ(std::memcmp(theirs_ + 1, mine_ + 1, 12), 0);
}

TEST_P(Dm, OfMoreThanTheDeviceHasIsRefused) {
  SKIP_IF(open());
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  EXPECT_GE(extended.max_dm_size, 4096u);
  ibv_alloc_dm_attr init{};
  init.length = extended.max_dm_size + 1;
  expect_complaints();
  EXPECT_EQ(ibv_alloc_dm(context(), &init), nullptr);
}

TEST_P(Dm, RegionsBeyondItsEndAreRefused) {
  SKIP_IF(open());
  expect_complaints();
  EXPECT_EQ(ibv_reg_dm_mr(pd(), memory_, 64, 4096, IBV_ACCESS_ZERO_BASED), nullptr);
}

}  // namespace
}  // namespace verbatim::harness
