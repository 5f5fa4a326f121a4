// SPDX-License-Identifier: BSD-2-Clause
//
// Memory regions and what is like them (IBTA 10.6, 11.2.8; man ibv_reg_mr, ibv_rereg_mr,
// ibv_advise_mr, ibv_alloc_null_mr, ibv_alloc_dm, ibv_reg_dmabuf_mr).
#include <cerrno>
#include <cstring>
#include <set>
#include <tuple>

#include "tests/conformance/departures.hpp"
#include "tests/conformance/device.hpp"

namespace verbatim::harness {
namespace {

class Mr : public OnDevice {
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
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(mine_ + at), length, local_->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {address, rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a_, &wr, &bad), 0);
    return poll(both_, 1)[0].status;
  }
  ibv_wc_status write_to(std::uint64_t address, std::uint32_t rkey) {
    return run(IBV_WR_RDMA_WRITE, address, rkey);
  }
  static std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }
  /// Connects the two again after a fault.
  void again() {
    for (ibv_qp* each : {a_, b_}) ASSERT_EQ(to_state(each, IBV_QPS_RESET), 0);
    ASSERT_EQ(lead(a_, IBV_QPS_RTS, b_), 0);
    ASSERT_EQ(lead(b_, IBV_QPS_RTS, a_), 0);
  }

  alignas(4096) char mine_[4096] = {};
  alignas(4096) char theirs_[8192] = {};
  ibv_cq* both_ = nullptr;
  ibv_qp* a_ = nullptr;
  ibv_qp* b_ = nullptr;
  ibv_mr* local_ = nullptr;
};
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

/// Each combination of what ibv_rereg_mr changes.
class Rereg : public Mr {
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

/// Memory windows (IBTA 10.6.6, 10.6.7; man ibv_alloc_mw, ibv_bind_mw).
class Mw : public Mr {
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
  SKIP_IF(departs(attr().vendor_id, kWindowsWithoutBounds));
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

/// Device memory (man ibv_alloc_dm).
class Dm : public Mr {
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
