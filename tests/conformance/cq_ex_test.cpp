// SPDX-License-Identifier: BSD-2-Clause
//
// The extended completion queue: a walk from start to end that reads only what it needs (man
// ibv_create_cq_ex).
#include <time.h>

#include <cerrno>
#include <cstring>
#include <tuple>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kEvery = IBV_WC_STANDARD_FLAGS;

class CqEx : public OnDevice {
 protected:
  /// Null with errno.
  ibv_cq_ex* make(std::uint64_t wc_flags, std::uint32_t flags = 0, std::uint32_t depth = 64) {
    ibv_cq_init_attr_ex init{};
    init.cqe = depth;
    init.wc_flags = wc_flags;
    if (flags != 0) {
      init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
      init.flags = flags;
    }
    ibv_cq_ex* const made = ibv_create_cq_ex(context(), &init);
    if (made != nullptr) made_.emplace_back(ibv_cq_ex_to_cq(made));
    return made;
  }
  std::string open(std::uint64_t wc_flags = kEvery, std::uint32_t flags = 0,
                   ibv_qp_type type = IBV_QPT_RC) {
    queue_ = make(wc_flags, flags);
    if (queue_ == nullptr)
      return unless_unsupported(
          wc_flags == kEvery && flags == 0 ? "ibv_create_cq_ex" : "rarer fields of completions",
          errno);
    std::tie(a_, b_) = connected(type, ibv_cq_ex_to_cq(queue_));
    memory_ = mr(bytes_, sizeof bytes_, kAllAccess);
    return {};
  }
  void TearDown() override {
    for (ibv_qp* each : {a_, b_}) {
      if (each == nullptr) continue;
      EXPECT_EQ(destroy(each), 0);
    }
    made_.clear();
  }
  /// Starts the walk at the next completion.
  void await_first() {
    ibv_poll_cq_attr attr{};
    int error = ENOENT;
    ASSERT_TRUE(wait_until([&] {
      error = ibv_start_poll(queue_, &attr);
      return error != ENOENT;
    }));
    ASSERT_EQ(error, 0);
  }
  /// One message from a to b: its two completions.
  void exchange(std::uint64_t id, std::uint32_t length) {
    ASSERT_EQ(post_receive(b_, id + 1000, bytes_ + 2048, 2048, memory_->lkey), 0);
    ASSERT_EQ(post_send(a_, id, bytes_, length, memory_->lkey), 0);
  }

  alignas(64) char bytes_[4096] = {};
  ibv_mr* memory_ = nullptr;
  ibv_cq_ex* queue_ = nullptr;
  ibv_qp* a_ = nullptr;
  ibv_qp* b_ = nullptr;

 private:
  std::vector<CqHandle> made_;
};
RUN_ON_EVERY_DEVICE(CqEx);

TEST_P(CqEx, ThatIsEmptyHasNothingToStartWith) {
  SKIP_IF(open());
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(queue_, &attr), ENOENT);
}

TEST_P(CqEx, GivesOneCompletionAfterAnother) {
  SKIP_IF(open());
  for (std::uint64_t i = 0; i < 5; ++i) exchange(i, 10);
  std::uint64_t sends = 0, receives = 0;
  await_first();
  for (;;) {
    if (queue_->wr_id >= 1000) {
      EXPECT_EQ(queue_->wr_id, 1000 + receives++);
    } else {
      EXPECT_EQ(queue_->wr_id, sends++);
    }
    EXPECT_EQ(queue_->status, IBV_WC_SUCCESS);
    if (sends + receives == 10) break;
    int error = ENOENT;
    ASSERT_TRUE(wait_until([&] { return (error = ibv_next_poll(queue_)) != ENOENT; }));
    ASSERT_EQ(error, 0);
  }
  EXPECT_EQ(ibv_next_poll(queue_), ENOENT);
  ibv_end_poll(queue_);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(queue_, &attr), ENOENT);
}

TEST_P(CqEx, GivesWhatFollowsToTheNextWalk) {
  SKIP_IF(open());
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_EQ(post_receive(b_, i, nullptr, 0, 0), 0);
  }
  ASSERT_EQ(to_state(b_, IBV_QPS_ERR), 0);
  for (std::uint64_t i = 0; i < 6; i += 2) {
    await_first();
    EXPECT_EQ(queue_->wr_id, i);
    EXPECT_EQ(ibv_next_poll(queue_), 0);
    EXPECT_EQ(queue_->wr_id, i + 1);
    ibv_end_poll(queue_);
  }
}

TEST_P(CqEx, TellsTheFieldsOfASend) {
  SKIP_IF(open());
  exchange(7, 33);
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    EXPECT_EQ(ibv_wc_read_vendor_err(queue_), 0u);
    if (queue_->wr_id == 7) {
      EXPECT_EQ(ibv_wc_read_opcode(queue_), IBV_WC_SEND);
      EXPECT_EQ(ibv_wc_read_qp_num(queue_), a_->qp_num);
    } else {
      EXPECT_EQ(queue_->wr_id, 1007u);
      EXPECT_EQ(ibv_wc_read_opcode(queue_), IBV_WC_RECV);
      EXPECT_EQ(ibv_wc_read_byte_len(queue_), 33u);
      EXPECT_EQ(ibv_wc_read_qp_num(queue_), b_->qp_num);
      EXPECT_EQ(ibv_wc_read_wc_flags(queue_) & (IBV_WC_WITH_IMM | IBV_WC_GRH), 0u);
    }
    ibv_end_poll(queue_);
  }
}

TEST_P(CqEx, TellsImmediateDataAsItWasSent) {
  SKIP_IF(open());
  ASSERT_EQ(post_receive(b_, 1, bytes_, 64, memory_->lkey), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = 0x44332211;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
  await_first();
  EXPECT_EQ(queue_->wr_id, 1u);
  EXPECT_EQ(ibv_wc_read_opcode(queue_), IBV_WC_RECV);
  EXPECT_NE(ibv_wc_read_wc_flags(queue_) & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ibv_wc_read_imm_data(queue_), 0x44332211u);
  ibv_end_poll(queue_);
}

TEST_P(CqEx, TellsTheKeyThatASendInvalidated) {
  SKIP_IF(open());
  ibv_mw* const window = ibv_alloc_mw(pd(), IBV_MW_TYPE_2);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
  ibv_mr* const region = mr(bytes_, 1024, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr.bind_mw.bind_info = {region, reinterpret_cast<std::uintptr_t>(bytes_), 64,
                          IBV_ACCESS_REMOTE_WRITE};
  const std::uint32_t key = wr.bind_mw.rkey;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(b_, &wr, &bad), 0);
  await_first();
  EXPECT_EQ(queue_->status, IBV_WC_SUCCESS);
  ibv_end_poll(queue_);
  ASSERT_EQ(post_receive(b_, 1, nullptr, 0, 0), 0);
  wr = {};
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = key;
  ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
  await_first();
  EXPECT_EQ(queue_->wr_id, 1u);
  EXPECT_NE(ibv_wc_read_wc_flags(queue_) & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(ibv_wc_read_invalidated_rkey(queue_), key);
  ibv_end_poll(queue_);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_P(CqEx, TellsAnErrorByItsStatus) {
  SKIP_IF(open());
  ASSERT_EQ(post_receive(b_, 5, nullptr, 0, 0), 0);
  ASSERT_EQ(to_state(b_, IBV_QPS_ERR), 0);
  await_first();
  EXPECT_EQ(queue_->wr_id, 5u);
  EXPECT_EQ(queue_->status, IBV_WC_WR_FLUSH_ERR);
  ibv_end_poll(queue_);
}

TEST_P(CqEx, OfOneSourceTellsWhereFromWhereRoutingMatters) {
  SKIP_IF(open());
  exchange(1, 8);
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    if (queue_->wr_id == 1001) {
      // Defined for datagrams; on connections they must be readable and are not judged but for
      // their range.
      EXPECT_LE(ibv_wc_read_src_qp(queue_), 0xffffffu);
      EXPECT_LE(ibv_wc_read_slid(queue_), 0xffffu);
      EXPECT_LE(ibv_wc_read_sl(queue_), 15);
      EXPECT_LE(ibv_wc_read_dlid_path_bits(queue_), 127);
    }
    ibv_end_poll(queue_);
  }
}

TEST_P(CqEx, OfADatagramTellsWhatThePlainVerbTells) {
  // man ibv_create_cq_ex: the fields of ibv_wc, read one by one.
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  SKIP_IF(open(kEvery, 0, IBV_QPT_UD));
  ibv_ah_attr path = path_to_self(session());
  path.sl = 5;
  const AhHandle local(ibv_create_ah(pd(), &path));
  path.is_global = 1;
  path.grh.dgid = session().gid;
  path.grh.sgid_index = session().gid_index;
  path.grh.traffic_class = 0x24;
  const AhHandle global(ibv_create_ah(pd(), &path));
  for (ibv_ah* const ah : {local.get(), global.get()}) {
    ASSERT_NE(ah, nullptr);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 0x44332211;
    wr.wr.ud = {.ah = ah, .remote_qpn = b_->qp_num, .remote_qkey = kQkey};
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(post_receive(b_, 1, bytes_, 64, memory_->lkey), 0);
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
    }
    const ibv_wc plain = poll(ibv_cq_ex_to_cq(queue_), 1)[0];
    EXPECT_EQ(plain.src_qp, a_->qp_num);
    await_first();
    EXPECT_EQ(queue_->wr_id, plain.wr_id);
    EXPECT_EQ(queue_->status, plain.status);
    EXPECT_EQ(ibv_wc_read_opcode(queue_), plain.opcode);
    EXPECT_EQ(ibv_wc_read_byte_len(queue_), plain.byte_len);
    EXPECT_EQ(ibv_wc_read_imm_data(queue_), plain.imm_data);
    EXPECT_EQ(ibv_wc_read_qp_num(queue_), plain.qp_num);
    EXPECT_EQ(ibv_wc_read_src_qp(queue_), plain.src_qp);
    EXPECT_EQ(ibv_wc_read_wc_flags(queue_), plain.wc_flags);
    EXPECT_EQ(ibv_wc_read_slid(queue_), plain.slid);
    EXPECT_EQ(ibv_wc_read_sl(queue_), plain.sl);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(queue_), plain.dlid_path_bits);
    ibv_end_poll(queue_);
    if (port().link_layer == IBV_LINK_LAYER_INFINIBAND) {
      EXPECT_EQ(plain.slid, port().lid);
      EXPECT_EQ(plain.sl, 5);
    }
  }
}

TEST_P(CqEx, TimestampsDoNotRunBackwards) {
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  if (extended.completion_timestamp_mask == 0) GTEST_SKIP() << "completion_timestamp_mask is 0";
  SKIP_IF(open(kEvery | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    exchange(i, 8);
    for (int seen = 0; seen < 2; ++seen) {
      await_first();
      const std::uint64_t now = ibv_wc_read_completion_ts(queue_);
      EXPECT_EQ(now & ~extended.completion_timestamp_mask, 0u);
      EXPECT_GE(now, last);
      last = now;
      ibv_end_poll(queue_);
    }
  }
  EXPECT_GT(last, 0u);
}

TEST_P(CqEx, WallclockTimesAreThoseOfTheWall) {
  SKIP_IF(open(kEvery | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec);
  };
  constexpr std::uint64_t kSkew = 100'000'000;
  const std::uint64_t before = now();
  exchange(1, 8);
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    const std::uint64_t told = ibv_wc_read_completion_wallclock_ns(queue_);
    EXPECT_GE(told + kSkew, before);
    EXPECT_LE(told, now() + kSkew);
    ibv_end_poll(queue_);
  }
}

TEST_P(CqEx, CanBePolledByThePlainVerbToo) {
  SKIP_IF(open());
  exchange(9, 12);
  const auto wcs = poll(ibv_cq_ex_to_cq(queue_), 2);
  for (const ibv_wc& wc : wcs) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_TRUE(wc.wr_id == 9 || wc.wr_id == 1009);
  }
}

TEST_P(CqEx, ForOneThreadWorksInOne) {
  SKIP_IF(open(kEvery, IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
  for (std::uint64_t i = 0; i < 50; ++i) {
    exchange(i, 16);
    for (int seen = 0; seen < 2; ++seen) {
      await_first();
      EXPECT_EQ(queue_->status, IBV_WC_SUCCESS);
      ibv_end_poll(queue_);
    }
  }
}

TEST_P(CqEx, WithoutFurtherFieldsStillTellsIdAndStatus) {
  SKIP_IF(open(0));
  exchange(3, 8);
  std::uint64_t sum = 0;
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    EXPECT_EQ(queue_->status, IBV_WC_SUCCESS);
    sum += queue_->wr_id;
    ibv_end_poll(queue_);
  }
  EXPECT_EQ(sum, 1006u);
}

TEST_P(CqEx, OfFieldsThatNobodyKnowsIsRefused) {
  if (make(kEvery) == nullptr) SKIP_IF(unless_unsupported("ibv_create_cq_ex", errno));
  expect_complaints();
  errno = 0;
  EXPECT_EQ(make(std::uint64_t{1} << 60), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_P(CqEx, WithUnknownFlagsIsRefused) {
  if (make(kEvery) == nullptr) SKIP_IF(unless_unsupported("ibv_create_cq_ex", errno));
  expect_complaints();
  errno = 0;
  EXPECT_EQ(make(kEvery, 1u << 30), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_P(CqEx, WithUnknownBitsInItsMaskIsRefused) {
  if (make(kEvery) == nullptr) SKIP_IF(unless_unsupported("ibv_create_cq_ex", errno));
  expect_complaints();
  ibv_cq_init_attr_ex init{};
  init.cqe = 4;
  init.comp_mask = 1u << 30;
  errno = 0;
  EXPECT_EQ(ibv_create_cq_ex(context(), &init), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_P(CqEx, AsksOfAWalkNothingThatIsNotDefined) {
  // man ibv_create_cq_ex: ibv_poll_cq_attr's comp_mask must be known.
  SKIP_IF(open());
  ibv_poll_cq_attr attr{};
  attr.comp_mask = 1u << 30;
  EXPECT_EQ(ibv_start_poll(queue_, &attr), EINVAL);
}

TEST_P(CqEx, AnswersWithNothingWhereOtherTransportsHaveTags) {
  // The man page leaves open what reading a field gives that nobody asked for; here it is nothing.
  SKIP_IF(open());
  exchange(1, 8);
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    EXPECT_EQ(ibv_wc_read_cvlan(queue_), 0u);
    EXPECT_EQ(ibv_wc_read_flow_tag(queue_), 0u);
    ibv_wc_tm_info tags{1, 1};
    ibv_wc_read_tm_info(queue_, &tags);
    EXPECT_EQ(tags.tag, 0u);
    EXPECT_EQ(tags.priv, 0u);
    ibv_end_poll(queue_);
  }
}

// man ibv_create_cq_ex: which fields are to be read. Public suites ask for all that the header knows
// (IBV_CREATE_CQ_SUP_WC_FLAGS), which adapters take; a device without a clock has no times to tell.
TEST_P(CqEx, TakesEveryFieldThatTheHeaderKnowsAndReadsWhatItHasNotAs0) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &device), 0);
  constexpr std::uint64_t kClocks =
      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  std::uint64_t all{IBV_CREATE_CQ_SUP_WC_FLAGS};
  if (device.completion_timestamp_mask == 0) all &= ~kClocks;
  if (make(kEvery) == nullptr) SKIP_IF(unless_unsupported("ibv_create_cq_ex", errno));
  ASSERT_EQ(open(all), "");
  exchange(1, 8);
  for (int seen = 0; seen < 2; ++seen) {
    await_first();
    EXPECT_EQ(queue_->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_cvlan(queue_), 0u);
    EXPECT_EQ(ibv_wc_read_flow_tag(queue_), 0u);
    ibv_wc_tm_info tags{1, 1};
    ibv_wc_read_tm_info(queue_, &tags);
    EXPECT_EQ(tags.tag, 0u);
    EXPECT_EQ(tags.priv, 0u);
    ibv_end_poll(queue_);
  }
}

}  // namespace
}  // namespace verbatim::harness
