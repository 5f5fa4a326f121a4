// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1: each pitfall is said once for its object; what is sound is not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_pitfalls.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/unit/strict_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

TEST_F(Strict, IsSilentAboutWhatIsSound) {
  EXPECT_EQ(said_of(sound_), "");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "");
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 3;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_EQ(said_of(sound_), "");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "");
}

TEST_F(Strict, WarnsOfATimeoutThatNeverEnds) {
  sound_.timeout = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: timeout 0 waits for ever"));
}

TEST_F(Strict, WarnsOfNoRetries) {
  sound_.retry_cnt = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: retry_cnt 0 ends the connection"));
}

TEST_F(Strict, WarnsOfAnMtuOverThePorts) {
  sound_.path_mtu = IBV_MTU_4096;
  EXPECT_THAT(said_of(sound_), HasSubstr("path_mtu 5 is over the port's active_mtu 3"));
}

TEST_F(Strict, WarnsOfAPathWithoutGidOnEthernet) {
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  // Of an address handle it is no pitfall but refused.
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: ah_attr.is_global is 0 on an Ethernet"));
}

TEST_F(Strict, WarnsOfAPathToNobody) {
  sound_.ah_attr.dlid = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: ah_attr.dlid is 0"));
  EXPECT_THAT(said_of_handles(sound_.ah_attr), HasSubstr("address handle: ah_attr.dlid is 0"));
}

TEST_F(Strict, WarnsOfAGidIndexBehindTheTable) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 4;
  EXPECT_THAT(said_of(sound_), HasSubstr("sgid_index 4, and the port's GID table has 4 entries"));
}

TEST_F(Strict, WarnsOfAPathToNobodysGid) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 3;
  sound_.ah_attr.grh.dgid = {};
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: grh.dgid is ::"));
  EXPECT_THAT(said_of_handles(sound_.ah_attr), HasSubstr("address handle: grh.dgid is ::"));
}

TEST_F(Strict, WarnsOfAGidIndexWithoutAGid) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 2;
  EXPECT_THAT(said_of(sound_), HasSubstr("grh.sgid_index 2 is an empty row"));
}

TEST_F(Strict, WarnsOfGidsThatDoNotReachEachOther) {
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  sound_.ah_attr.is_global = 1;
  EXPECT_THAT(said_of(sound_),
              HasSubstr("sgid_index 0 is a link-local address and grh.dgid an IPv4 address"));
  sound_.ah_attr.grh.dgid = gid_of("ff0e::1");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "") << "a group has members of every kind";
}

/// The queue pair of every test has 8 and 8 requests there already, of the 16 that fit.
TEST_F(Strict, CountsASharedReceiveQueueOnceForACqHoweverManyQueuePairsShareIt) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 3 * 8 + 16;
  const CapturedStderr captured;
  ibv_qp* sharing[4];
  for (int i = 0; i < 3; ++i) sharing[i] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "");
  // Those that go make room again, and so does the queue with the last of them.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing[i]), 0);
  cq_->cqe = 16 + 8 + 16;
  sharing[0] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "");
  sharing[1] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 40 entries takes the completions of queues of 48 "
                                         "requests together, and can overrun; make it that large"));
  sharing[2] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.lines(), 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing[i]), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfASharedReceiveQueueThatOutgrowsItsCq) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 8 + 16;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  const CapturedStderr captured;
  ibv_srq_attr larger{};
  larger.max_wr = 17;
  EXPECT_EQ(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 40 entries takes the completions of queues of 41 "
                                         "requests together"));
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// An XRC domain, and queues in it of four receives that complete in one CQ.
struct XrcQueues {
  XrcQueues(ibv_context* on, ibv_pd* pd, ibv_cq* cq) : context(on) {
    ibv_xrcd_init_attr domain{};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    wish.attr.max_wr = 4;
    wish.attr.max_sge = 1;
    wish.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    wish.srq_type = IBV_SRQT_XRC;
    wish.pd = pd;
    wish.xrcd = ibv_open_xrcd(context, &domain);
    wish.cq = cq;
    EXPECT_NE(wish.xrcd, nullptr);
  }
  ~XrcQueues() { EXPECT_EQ(ibv_close_xrcd(wish.xrcd), 0); }
  ibv_srq* make() {
    ibv_srq* const srq = ibv_create_srq_ex(context, &wish);
    EXPECT_NE(srq, nullptr);
    return srq;
  }
  ibv_context* context;
  ibv_srq_init_attr_ex wish{};
};

TEST_F(Strict, WarnsOfAnXrcQueueThatIsLargerThanItsCq) {
  XrcQueues queues(context, pd, cq_);
  const CapturedStderr captured;
  cq_->cqe = 20;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ibv_destroy_srq(queues.make()), 0);
  EXPECT_EQ(captured.text(), "");
  cq_->cqe = 19;
  ibv_srq* const srq = queues.make();
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 19 entries takes the completions of queues of 20 "
                                         "requests together"));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, CountsAnXrcQueueThatStays) {
  XrcQueues queues(context, pd, cq_);
  cq_->cqe = 20;
  ibv_srq* const srq = queues.make();
  stays = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  stays = false;
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resize_cq(cq_, 20), 0);
  EXPECT_EQ(captured.text(), "");
  EXPECT_EQ(ibv_resize_cq(cq_, 19), 0);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 20 requests together"));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfACqThatIsResizedToLessThanItsQueues) {
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resize_cq(cq_, 32), 0);
  EXPECT_EQ(ibv_resize_cq(cq_, 16), 0);
  EXPECT_EQ(captured.text(), "");
  EXPECT_EQ(ibv_resize_cq(cq_, 15), 0);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 15 entries takes the completions of queues of 16 "
                                         "requests together, and can overrun; make it that large"));
  EXPECT_EQ(ibv_resize_cq(cq_, 14), 0);
  EXPECT_EQ(captured.lines(), 1);
}

TEST_F(Strict, CountsTheQueuesOfAQueuePairThatStays) {
  stays = true;
  EXPECT_EQ(ibv_destroy_qp(qp_), EBUSY);
  stays = false;
  const CapturedStderr captured;
  cq_->cqe = 32;
  ibv_qp* const second = make_qp(cq_);
  EXPECT_EQ(captured.text(), "");
  ibv_qp* const third = make_qp(cq_);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 40 requests together"));
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  EXPECT_EQ(ibv_destroy_qp(third), 0);
}

TEST_F(Strict, CountsTheSharedReceivesOfAQueuePairThatStays) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 2 * 8 + 16;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  const CapturedStderr captured;
  stays = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing), EBUSY);
  stays = false;
  ibv_qp* const second = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "") << "counted once still";
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  ibv_qp* const third = make_qp(cq_);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 56 requests together"));
  for (ibv_qp* qp : {sharing, third}) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// A device need not write a new size where the first one stands.
TEST_F(Strict, CountsASharedReceiveQueueByItsSizeOfNow) {
  ibv_srq* const srq = make_srq(16);
  ibv_srq_attr larger{};
  larger.max_wr = 24;
  EXPECT_EQ(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
  cq_->cqe = 16 + 8 + 24 - 1;
  const CapturedStderr captured;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 48 requests together"));
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// A thread of the parent's waits for the reader of its log, at the counts.
TEST_F(Strict, CountsInAChildThoughAThreadOfItsParentDidWhenItForked) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  ibv_srq* const srq = make_srq(64);
  ibv_cq* const other = make_cq();
  other->cqe = 1000;
  cq_->cqe = 16 + 8;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const char filling[4096] = {};
  while (::write(ends[1], filling, sizeof filling) > 0) continue;
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);
  const int log = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ibv_qp* sharing = nullptr;
  std::thread warned([&] { sharing = make_qp(cq_, IBV_QPT_RC, srq); });
  EXPECT_TRUE(harness::wait_until([&] { return (Cq::from(cq_).strict_told & kSmallCq) != 0; }));
  const int status = harness::run_in_child([&] {
    ::dup2(log, STDERR_FILENO);
    ibv_qp* const own = make_qp(other, IBV_QPT_RC, srq);
    return ibv_destroy_qp(own);
  });
  char read[4096];
  while (::read(ends[0], read, sizeof read) > 0) continue;
  warned.join();
  ::dup2(log, STDERR_FILENO);
  for (const int fd : {log, ends[0], ends[1]}) ::close(fd);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_cq(other), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfUnsignaledRequestsWhenTheyHaveFilledTheQueueNotBefore) {
  const CapturedStderr captured;
  // One in each queue's worth, wherever it stands.
  for (std::uint32_t at = 0; at < 4; ++at) {
    note_posted(Qp::from(qp_), true, 4);
    for (std::uint32_t i = 0; i < 40; ++i) note_posted(Qp::from(qp_), i % 4 == at, 4);
  }
  EXPECT_EQ(captured.text(), "");
  note_posted(Qp::from(qp_), true, 4);
  for (std::uint32_t i = 0; i < 3; ++i) note_posted(Qp::from(qp_), false, 4);
  EXPECT_EQ(captured.text(), "");
  note_posted(Qp::from(qp_), false, 4);
  EXPECT_THAT(captured.text(), HasSubstr("4 unsignaled requests in a row have filled"));
  note_posted(Qp::from(qp_), false, 4);
  EXPECT_EQ(captured.lines(), 1);
}

}  // namespace
}  // namespace verbatim::unit
