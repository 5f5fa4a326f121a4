// SPDX-License-Identifier: BSD-2-Clause
// Requests that are built by calls, in the words of ibv_post_send (man ibv_wr_post).
#include "runtime/verbs/software/built_requests.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/packet/request_batch.hpp"

namespace verbatim {
namespace {

constexpr std::uint32_t kMost = 4;
constexpr std::uint32_t kSges = 3;
constexpr std::uint32_t kInline = 40;

/// What a provider would be given, and the bytes that it would send.
struct Performed : ibv_send_wr {
  explicit Performed(const ibv_send_wr& request) : ibv_send_wr(request) {
    for (int i = 0; i < num_sge; ++i) list.push_back(sg_list[i]);
    if ((send_flags & IBV_SEND_INLINE) == 0) return;
    for (const ibv_sge& sge : list)
      bytes.append(reinterpret_cast<const char*>(sge.addr), sge.length);
  }
  std::vector<ibv_sge> list;
  std::string bytes;
};

struct Queue : Qp {
  RequestBatch batch;
  std::vector<Performed> performed;
  std::uint32_t room = kMost;
};

struct Requests : BatchedRequests<Queue> {
  static void start(ibv_qp_ex* qp) noexcept { of(qp).batch.start(); }
  static int complete(ibv_qp_ex* handle) noexcept {
    Queue& qp = of(handle);
    const auto judge = [&qp](const ibv_send_wr&, std::uint32_t number) noexcept {
      return number < qp.room ? 0 : ENOMEM;
    };
    return qp.batch.complete(
        judge, [&qp](const ibv_send_wr& wr) noexcept { qp.performed.emplace_back(wr); });
  }
  static void abort(ibv_qp_ex* qp) noexcept { of(qp).batch.start(); }
};

class BuiltRequestsTest : public ::testing::Test {
 protected:
  BuiltRequestsTest() {
    EXPECT_TRUE(qp_.batch.make(memory_, kMost, kSges, kInline));
    make(~std::uint64_t{0});
  }
  ~BuiltRequestsTest() override { qp_.batch.free(memory_); }
  void make(std::uint64_t operations) {
    using Built = BuiltRequests<Requests>;
    set_work_calls<Built::refuse_call>(qp_.extended, operations, Built::kCalls);
  }
  void begin(std::uint64_t id = 1, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_wr_start(wr_);
    next(id, flags);
  }
  void next(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    wr_->wr_id = id;
    wr_->wr_flags = flags;
  }
  void set_inline(std::string bytes) {
    ibv_wr_set_inline_data(wr_, bytes.data(), bytes.size());
    bytes.assign(bytes.size(), '\0');
  }
  /// The one request that has been built; it has no bytes, but for those that its call brings.
  Performed built() {
    EXPECT_EQ(ibv_wr_complete(wr_), 0);
    EXPECT_EQ(qp_.performed.size(), 1u);
    const Performed wr = qp_.performed.back();
    qp_.performed.clear();
    EXPECT_EQ(wr.wr_id, 1u);
    EXPECT_EQ(wr.next, nullptr);
    return wr;
  }
  /// The batch fails, and nothing of it is performed; that has no consequences for the next one.
  void expect_refused(int error) {
    EXPECT_EQ(ibv_wr_complete(wr_), error);
    EXPECT_TRUE(qp_.performed.empty());
    begin();
    ibv_wr_send(wr_);
    EXPECT_EQ(built().num_sge, 0);
  }

  QueueMemory memory_;
  Queue qp_;
  ibv_qp_ex* const wr_ = &qp_.extended;
};

TEST_F(BuiltRequestsTest, SayWhatTheCallsOfEachOperationWereTold) {
  begin();
  ibv_wr_send(wr_);
  EXPECT_EQ(built().opcode, IBV_WR_SEND);

  begin();
  ibv_wr_send_imm(wr_, 7);
  Performed wr = built();
  EXPECT_EQ(wr.opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(wr.imm_data, 7u);

  begin();
  ibv_wr_send_inv(wr_, 8);
  wr = built();
  EXPECT_EQ(wr.opcode, IBV_WR_SEND_WITH_INV);
  EXPECT_EQ(wr.invalidate_rkey, 8u);

  begin();
  ibv_wr_local_inv(wr_, 9);
  wr = built();
  EXPECT_EQ(wr.opcode, IBV_WR_LOCAL_INV);
  EXPECT_EQ(wr.invalidate_rkey, 9u);

  ibv_mw window{};
  const ibv_mw_bind_info info{nullptr, 100, 200, IBV_ACCESS_REMOTE_READ};
  begin();
  ibv_wr_bind_mw(wr_, &window, 10, &info);
  wr = built();
  EXPECT_EQ(wr.opcode, IBV_WR_BIND_MW);
  EXPECT_EQ(wr.bind_mw.mw, &window);
  EXPECT_EQ(wr.bind_mw.rkey, 10u);
  EXPECT_EQ(wr.bind_mw.bind_info.length, 200u);
}

TEST_F(BuiltRequestsTest, SayWhichMemoryTheCallsNamed) {
  const auto expect_rdma = [](const ibv_send_wr& wr, ibv_wr_opcode opcode) {
    EXPECT_EQ(wr.opcode, opcode);
    EXPECT_EQ(wr.wr.rdma.remote_addr, 4096u);
    EXPECT_EQ(wr.wr.rdma.rkey, 5u);
  };
  begin();
  ibv_wr_rdma_write(wr_, 5, 4096);
  expect_rdma(built(), IBV_WR_RDMA_WRITE);

  begin();
  ibv_wr_rdma_write_imm(wr_, 5, 4096, 6);
  Performed wr = built();
  expect_rdma(wr, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(wr.imm_data, 6u);

  begin();
  ibv_wr_rdma_read(wr_, 5, 4096);
  expect_rdma(built(), IBV_WR_RDMA_READ);

  begin();
  ibv_wr_atomic_write(wr_, 5, 4096, "8 bytes");
  wr = built();
  expect_rdma(wr, IBV_WR_ATOMIC_WRITE);
  EXPECT_EQ(wr.bytes, std::string_view("8 bytes", 8));

  const auto expect_atomic = [](const ibv_send_wr& each, ibv_wr_opcode opcode,
                                std::uint64_t compare_add, std::uint64_t swap) {
    EXPECT_EQ(each.opcode, opcode);
    EXPECT_EQ(each.wr.atomic.remote_addr, 4096u);
    EXPECT_EQ(each.wr.atomic.rkey, 5u);
    EXPECT_EQ(each.wr.atomic.compare_add, compare_add);
    EXPECT_EQ(each.wr.atomic.swap, swap);
  };
  begin();
  ibv_wr_atomic_cmp_swp(wr_, 5, 4096, 1, 2);
  expect_atomic(built(), IBV_WR_ATOMIC_CMP_AND_SWP, 1, 2);

  begin();
  ibv_wr_atomic_fetch_add(wr_, 5, 4096, 3);
  expect_atomic(built(), IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0);

  begin();
  ibv_wr_flush(wr_, 5, 4096, 70, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
  expect_atomic(built(), IBV_WR_FLUSH, 70, IBV_FLUSH_PERSISTENT | IBV_FLUSH_MR << 8);
}

TEST_F(BuiltRequestsTest, AreForWhomTheirSettersNameAndElseForNobody) {
  ibv_ah ah{};
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_ud_addr(wr_, &ah, 11, 12);
  ibv_wr_set_xrc_srqn(wr_, 13);
  Performed wr = built();
  EXPECT_EQ(wr.wr.ud.ah, &ah);
  EXPECT_EQ(wr.wr.ud.remote_qpn, 11u);
  EXPECT_EQ(wr.wr.ud.remote_qkey, 12u);
  EXPECT_EQ(wr.qp_type.xrc.remote_srqn, 13u);
  begin();
  ibv_wr_send(wr_);
  wr = built();
  EXPECT_EQ(wr.wr.ud.ah, nullptr);
  EXPECT_EQ(wr.qp_type.xrc.remote_srqn, 0u);
}

TEST_F(BuiltRequestsTest, HaveTheFlagsThatWereSetAtTheirCall) {
  // IBV_SEND_INLINE says nothing here: the setters do (man ibv_wr_post).
  begin(1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_INLINE);
  ibv_wr_send(wr_);
  wr_->wr_flags = 0;
  EXPECT_EQ(built().send_flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE});
}

TEST_F(BuiltRequestsTest, HaveOneSgeOrAListThatMayBeGoneAtOnce) {
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge(wr_, 1, 2, 3);
  Performed wr = built();
  ASSERT_EQ(wr.list.size(), 1u);
  EXPECT_EQ(wr.list[0].lkey, 1u);
  EXPECT_EQ(wr.list[0].addr, 2u);
  EXPECT_EQ(wr.list[0].length, 3u);

  ibv_sge list[kSges] = {{10, 11, 12}, {20, 21, 22}, {30, 31, 32}};
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge_list(wr_, kSges, list);
  std::memset(list, 0, sizeof list);
  wr = built();
  ASSERT_EQ(wr.list.size(), kSges);
  for (std::uint32_t i = 0; i < kSges; ++i) EXPECT_EQ(wr.list[i].addr, 10 * (i + 1));

  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge_list(wr_, 0, nullptr);
  EXPECT_EQ(built().num_sge, 0);
}

TEST_F(BuiltRequestsTest, HaveInlineBytesThatMayChangeAtOnce) {
  begin();
  ibv_wr_send(wr_);
  set_inline("inline");
  Performed wr = built();
  EXPECT_NE(wr.send_flags & IBV_SEND_INLINE, 0u);
  EXPECT_EQ(wr.bytes, "inline");

  const std::string whole = "ten bytes and thirty more of another one";
  ASSERT_EQ(whole.size(), kInline);
  std::string parts = whole;
  const ibv_data_buf buffers[] = {{&parts[0], 10}, {nullptr, 0}, {&parts[10], kInline - 10}};
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_inline_data_list(wr_, 3, buffers);
  parts.assign(kInline, '\0');
  wr = built();
  ASSERT_EQ(wr.num_sge, 1);
  EXPECT_EQ(wr.bytes, whole);

  begin();
  ibv_wr_send(wr_);
  set_inline({});
  wr = built();
  EXPECT_EQ(wr.num_sge, 0);
}

TEST_F(BuiltRequestsTest, HaveTheBytesThatWereSetLast) {
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge(wr_, 1, 2, 3);
  set_inline("later");
  EXPECT_EQ(built().bytes, "later");
  begin();
  ibv_wr_send(wr_);
  set_inline("before");
  ibv_wr_set_sge(wr_, 1, 2, 3);
  const Performed wr = built();
  EXPECT_EQ(wr.send_flags & IBV_SEND_INLINE, 0u);
  ASSERT_EQ(wr.list.size(), 1u);
  EXPECT_EQ(wr.list[0].addr, 2u);
}

TEST_F(BuiltRequestsTest, ArePerformedInTheirOrderWhenTheBatchIsComplete) {
  ibv_wr_start(wr_);
  for (std::uint64_t id = 0; id < kMost; ++id) {
    next(id, id % 2 == 0 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    ibv_wr_send(wr_);
    set_inline(std::string(kInline, static_cast<char>('a' + id)));
    EXPECT_TRUE(qp_.performed.empty());
  }
  ASSERT_EQ(ibv_wr_complete(wr_), 0);
  ASSERT_EQ(qp_.performed.size(), kMost);
  for (std::uint64_t id = 0; id < kMost; ++id) {
    const Performed& wr = qp_.performed[id];
    EXPECT_EQ(wr.wr_id, id);
    EXPECT_EQ((wr.send_flags & IBV_SEND_SIGNALED) != 0, id % 2 == 0);
    EXPECT_EQ(wr.bytes, std::string(kInline, static_cast<char>('a' + id)));
  }
}

TEST_F(BuiltRequestsTest, OfAnEmptyBatchAreASuccess) {
  ibv_wr_start(wr_);
  EXPECT_EQ(ibv_wr_complete(wr_), 0);
  EXPECT_TRUE(qp_.performed.empty());
}

TEST_F(BuiltRequestsTest, OfMoreThanTheQueueHoldsAreRefused) {
  begin();
  for (std::uint32_t i = 0; i <= kMost; ++i) {
    ibv_wr_send(wr_);
    ibv_wr_set_sge(wr_, 1, 2, 3);
  }
  expect_refused(ENOMEM);
}

TEST_F(BuiltRequestsTest, AreRefusedAllWhenTheLastOfThemIs) {
  qp_.room = 2;
  begin();
  for (int i = 0; i < 3; ++i) ibv_wr_send(wr_);
  expect_refused(ENOMEM);
}

TEST_F(BuiltRequestsTest, WithMoreSgesThanAllowedAreRefused) {
  const ibv_sge list[kSges + 1] = {};
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge_list(wr_, kSges + 1, list);
  expect_refused(EINVAL);
}

TEST_F(BuiltRequestsTest, WithMoreInlineThanAllowedAreRefused) {
  begin();
  ibv_wr_send(wr_);
  set_inline(std::string(kInline + 1, 'x'));
  expect_refused(EINVAL);
  char bytes[kInline];
  // Nor may the sum of lengths seem small.
  for (const std::size_t more : {std::size_t{1}, ~std::size_t{0} - kInline / 2}) {
    const ibv_data_buf buffers[] = {{bytes, kInline}, {bytes, more}};
    begin();
    ibv_wr_send(wr_);
    ibv_wr_set_inline_data_list(wr_, 2, buffers);
    expect_refused(EINVAL);
  }
}

TEST_F(BuiltRequestsTest, ThatWereNotAskedForAreRefusedWithWhatTheirSettersSay) {
  make(IBV_QP_EX_WITH_SEND);
  begin();
  ibv_wr_send(wr_);
  ibv_wr_rdma_write(wr_, 5, 4096);
  set_inline("bytes");
  expect_refused(EOPNOTSUPP);
}

TEST_F(BuiltRequestsTest, OfSeveralErrorsHaveTheFirst) {
  make(IBV_QP_EX_WITH_SEND);
  begin();
  ibv_wr_send(wr_);
  ibv_wr_set_sge_list(wr_, kSges + 1, nullptr);
  ibv_wr_rdma_read(wr_, 5, 4096);
  expect_refused(EINVAL);
}

TEST_F(BuiltRequestsTest, AreNotWhatSettersBeforeThemSay) {
  ibv_ah ah{};
  begin();
  ibv_wr_set_ud_addr(wr_, &ah, 11, 12);
  set_inline("too early");
  ibv_wr_send(wr_);
  const Performed wr = built();
  EXPECT_EQ(wr.wr.ud.ah, nullptr);
  EXPECT_EQ(wr.num_sge, 0);
}

}  // namespace
}  // namespace verbatim
