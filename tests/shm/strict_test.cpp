// SPDX-License-Identifier: BSD-2-Clause
//
// VERBATIM_STRICT=1: each pitfall is said once for its object; what is sound is not.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <tuple>

#include "tests/shm/lone_sender.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The library reads it once: before the first device is opened.
[[maybe_unused]] const int is_set = setenv("VERBATIM_STRICT", "1", 1);

class Strict : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LogWatch::instance() == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  }
  static std::vector<std::string> said() { return LogWatch::instance()->complaints(); }
  AllowedLog allowed_{"strict: "};
  Setting setting_{Placement::kOneContext, MemoryKind::kMapped};
};

TEST_F(Strict, IsSilentAboutASoundConnection) {
  Pair pair(setting_);
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Strict, WarnsOfACqThatIsTooSmallForItsQueues) {
  Pair pair(setting_);
  QpWish wish;
  wish.send_cq = wish.receive_cq = pair.a.call<&Endpoint::create_cq>(64, 0);
  wish.send_depth = wish.receive_depth = 48;
  pair.a.create_qp(wish);
  pair.a.create_qp(wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("a CQ of 64 entries takes the completions of queues of "
                                            "96 requests")));
}

TEST_F(Strict, WarnsOfACqThatIsTooSmallForTheSharedReceivesOfItsQueues) {
  Pair pair(setting_);
  SrqWish shared;
  shared.depth = 64;
  QpWish wish;
  wish.srq = pair.a.create_srq(shared).id;
  wish.send_depth = 16;
  wish.send_cq = pair.a.call<&Endpoint::create_cq>(64, 0);
  wish.receive_cq = pair.a.call<&Endpoint::create_cq>(64, 0);
  pair.a.create_qp(wish);
  pair.a.create_qp(wish);
  EXPECT_THAT(said(), IsEmpty());
  wish.send_cq = wish.receive_cq;
  pair.a.create_qp(wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("a CQ of 64 entries takes the completions of queues of "
                                            "80 requests together, and can overrun")));
}

TEST_F(Strict, WarnsOfAttributesThatCannotWork) {
  PairWish wish;
  wish.link_a.timeout = 0;
  Pair pair(setting_, wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("timeout 0 waits for ever")));
  const QpInfo qp = pair.a.create_qp();
  QpInfo nobody = pair.qb;
  nobody.lid = 0;
  pair.a.connect(qp, nobody, {});
  EXPECT_THAT(said(), ElementsAre(HasSubstr("timeout 0"), HasSubstr("ah_attr.dlid is 0")));
}

TEST_F(Strict, WarnsOfUnsignaledSendsThatFillTheQueueOnce) {
  PairWish wish;
  wish.a.send_depth = 4;
  Pair pair(setting_, wish);
  const RegionInfo from = pair.a.allocate(setting_.memory, 64);
  const RegionInfo to = pair.b.allocate(setting_.memory, 64);
  const Request request = write(1, slice(from, 0, 8), to).unsignaled();
  for (int i = 0; i < 3; ++i) expect_posted(pair.a.post_send(pair.qa, request));
  EXPECT_THAT(said(), IsEmpty());
  expect_posted(pair.a.post_send(pair.qa, request));
  EXPECT_THAT(said(), ElementsAre(HasSubstr("signal at least one of each queue's worth")));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pair.a.post_send(pair.qa, request).error, ENOMEM);
  EXPECT_EQ(said().size(), 1u);
}

TEST_F(Strict, IsSilentAboutAProgramThatSignalsOncePerQueue) {
  PairWish wish;
  wish.a.send_depth = 4;
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    wish.a.type = wish.b.type = type;
    Pair pair(setting_, wish);
    const RegionInfo from = pair.a.allocate(setting_.memory, 64);
    const RegionInfo to = pair.b.allocate(setting_.memory, 64);
    for (std::uint64_t i = 0; i < 24; ++i) {
      const Request request = write(i, slice(from, 0, 8), to);
      expect_posted(pair.a.post_send(pair.qa, i % 4 == 3 ? request : request.unsignaled()));
      if (i % 4 == 3) expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_RDMA_WRITE, pair.qa);
    }
  }
  EXPECT_THAT(said(), IsEmpty());
}

/// What fails completes: it has its place in the queue back, and so have those before it.
TEST_F(Strict, CountsAnewAfterAnErrorOfAnUnreliableConnection) {
  PairWish wish;
  wish.a.send_depth = 4;
  wish.a.type = wish.b.type = IBV_QPT_UC;
  Pair pair(setting_, wish);
  const RegionInfo from = pair.a.allocate(setting_.memory, 64);
  const RegionInfo to = pair.b.allocate(setting_.memory, 64);
  for (int round = 0; round < 3; ++round) {
    Request request = write(1, slice(from, 0, 8), to).unsignaled();
    for (int i = 0; i < 2; ++i) expect_posted(pair.a.post_send(pair.qa, request));
    request.from.at[0].lkey = 0x12345;
    expect_posted(pair.a.post_send(pair.qa, request));
    EXPECT_EQ(pair.a.poll_sends(pair.qa, 1)[0].status, IBV_WC_LOC_PROT_ERR);
    ASSERT_EQ(pair.a.state(pair.qa), IBV_QPS_SQE);
    ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_RTS), 0);
  }
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Strict, WarnsOfAConnectionWithoutRetries) {
  PairWish wish;
  wish.link_a.retry_count = 0;
  Pair pair(setting_, wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("retry_cnt 0 ends the connection")));
}

TEST_F(Strict, WarnsOfInlineDataOverTheLimit) {
  Pair pair(setting_);
  const RegionInfo from = pair.a.allocate(setting_.memory, 4096);
  EXPECT_EQ(pair.a.post_send(pair.qa, send(1, slice(from, 0, 4096)).with(IBV_SEND_INLINE)).error,
            EINVAL);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("4096 bytes of inline data")));
}

TEST_F(Strict, WarnsOfInlineDataOverTheLimitOfBuiltRequestsToo) {
  const Session session;
  const CqHandle cq(ibv_create_cq(session.context.get(), 8, nullptr, nullptr, 0));
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = cq.get();
  wanted.cap = {4, 4, 1, 1, 64};
  wanted.pd = session.pd.get();
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
  static char bytes[4096];
  const ibv_data_buf pieces[] = {{bytes, 100}, {bytes, 4000}};
  for (const bool listed : {false, true}) {
    const QpHandle made(ibv_create_qp_ex(session.context.get(), &wanted));
    ASSERT_NE(made, nullptr);
    ibv_qp_ex* const qp = ibv_qp_to_qp_ex(made.get());
    const std::size_t before = said().size();
    ibv_wr_start(qp);
    ibv_wr_send(qp);
    if (listed)
      ibv_wr_set_inline_data_list(qp, 2, pieces);
    else
      ibv_wr_set_inline_data(qp, bytes, sizeof bytes);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
    ASSERT_EQ(said().size(), before + 1);
    EXPECT_THAT(said().back(), HasSubstr(listed ? "4100 bytes of inline" : "4096 bytes of inline"));
  }
}

/// Of every transport, posted and built by calls.
class StrictSender : public Strict,
                     public ::testing::WithParamInterface<std::tuple<ibv_qp_type, bool>> {
 protected:
  LoneSender sender_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, StrictSender,
                         ::testing::Combine(::testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
                                                              IBV_QPT_XRC_SEND),
                                            ::testing::Bool()),
                         [](const auto& tested) {
                           return sender_name(std::get<0>(tested.param), std::get<1>(tested.param));
                         });

TEST_P(StrictSender, IsWarnedOnceOfUnsignaledRequestsThatFillTheQueue) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(sender_.post(0), 0);
  EXPECT_THAT(said(), IsEmpty());
  ASSERT_EQ(sender_.post(0), 0);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("4 unsignaled requests in a row have filled")));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sender_.post(0), ENOMEM);
  EXPECT_EQ(said().size(), 1u);
}

TEST_P(StrictSender, IsNotWarnedWhenOneOfEachQueuesWorthIsSignaled) {
  for (unsigned i = 0; i < 12; ++i) {
    ASSERT_EQ(sender_.post(i % 4 == 3 ? unsigned{IBV_SEND_SIGNALED} : 0u), 0);
    if (i % 4 == 3) {
      ASSERT_EQ(sender_.poll(), IBV_WC_SUCCESS);
    }
  }
  EXPECT_THAT(said(), IsEmpty());
}

TEST_P(StrictSender, IsWarnedOnceOfAQueueThatIsFullSinceNobodyPolls) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(sender_.post(IBV_SEND_SIGNALED), 0);
  EXPECT_THAT(said(), IsEmpty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sender_.post(IBV_SEND_SIGNALED), ENOMEM);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("the send queue of 4 requests is full")));
}

TEST_P(StrictSender, IsWarnedOnceOfInlineDataOverTheLimit) {
  ASSERT_EQ(sender_.post(IBV_SEND_SIGNALED | IBV_SEND_INLINE, 64), 0);
  EXPECT_THAT(said(), IsEmpty());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(sender_.post(IBV_SEND_SIGNALED | IBV_SEND_INLINE, 4000), EINVAL);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("4000 bytes of inline data, the limit is " +
                                            std::to_string(sender_.info.cap.max_inline_data))));
}

}  // namespace
}  // namespace verbatim::harness
