// SPDX-License-Identifier: BSD-2-Clause
// Why requests fail, as far as this side of an rxe connection can know: from the completion, the
// slot of the request, what the kernel tells of the queue pair, and the regions of the context.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "runtime/verbs/provider.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

extern "C" const verbatim::ProviderTable verbs_provider_rxe;

namespace verbatim::rxe_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RxeExplain : public ::testing::Test {
 protected:
  void SetUp() override {
    for (rxe::Cq* const cq : {&cq_, &receive_cq_}) cq->plain.context = fake_.context.handle();
    ASSERT_EQ(cq_.ring.map(ring_.fd(), ring_.place(), sizeof(ib_uverbs_wc)), 0);
    ASSERT_EQ(receive_cq_.ring.map(receive_ring_.fd(), receive_ring_.place(), sizeof(ib_uverbs_wc)),
              0);
    fake_.context.table = &verbs_provider_rxe;
    rxe::Qp& qp = *fake_.qp;
    pd_.plain.handle = 5;
    qp.plain.pd = &pd_.plain;
    qp.plain.send_cq = qp.plain.recv_cq = &cq_.plain;
    qp.plain.qp_num = 33;
    qp.number = fake_.context.objects.add(uverbs::Kind::kQp, static_cast<uverbs::Qp*>(&qp));
    fake_.context.objects.name(qp.number, 33);
    fake_.system.state = IBV_QPS_ERR;
    ibv_qp_attr& told = fake_.system.told;
    told.dest_qp_num = 44;
    told.ah_attr.is_global = 1;
    const unsigned char gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    std::memcpy(told.ah_attr.grh.dgid.raw, gid, sizeof gid);
    told.timeout = 14;
    told.retry_cnt = 7;
    told.rnr_retry = 6;
    region(region_, 0x111, 5, IBV_ACCESS_LOCAL_WRITE, 0x1000, 0x400);
  }
  void TearDown() override {
    fake_.context.regions.remove(region_);
    fake_.context.regions.remove(other_);
  }
  void region(uverbs::RegionEntry& entry, std::uint32_t key, std::uint32_t pd, unsigned access,
              std::uint64_t first, std::uint64_t bytes) {
    fake_.context.regions.add(entry, {key, pd, access, first, bytes});
  }
  static ibv_send_wr request(ibv_wr_opcode opcode, ibv_sge& sge) {
    ibv_send_wr wr{};
    wr.wr_id = 7;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma = {0x9000, 0x305};
    return wr;
  }
  /// The driver takes the oldest request, writes how it ended, and completes it.
  void fail(ibv_send_wr wr, ibv_wc_status status) {
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(rxe::post_send(fake_.plain(), &wr, &bad), 0);
    fail_posted(wr.wr_id, status);
  }
  void fail_posted(std::uint64_t wr_id, ibv_wc_status status) {
    unsigned char* const slot = fake_.send.head();
    ASSERT_NE(slot, nullptr);
    const std::uint32_t ended = status;
    std::memcpy(slot + 144, &ended, sizeof ended);
    fake_.send.consume();
    complete(ring_, cq_, wr_id, status);
  }
  void complete(FakeRing& ring, rxe::Cq& cq, std::uint64_t wr_id, ibv_wc_status status) {
    ib_uverbs_wc made{};
    made.wr_id = wr_id;
    made.status = status;
    made.qp_num = 33;
    made.vendor_err = 3;
    ASSERT_TRUE(ring.produce(&made, sizeof made));
    const unit::CapturedStderr captured;
    ASSERT_EQ(rxe::poll_cq(&cq.plain, 1, &wc_), 1);
    log_ += captured.text();
  }
  std::string words() { return words(&wc_); }
  std::string words(const ibv_wc* wc) {
    char line[1024] = {};
    EXPECT_GT(vbt_explain(fake_.plain(), wc, line, sizeof line), 0);
    return line;
  }
  void post_receive(std::uint64_t wr_id, ibv_sge sge) {
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    fake_.qp->plain.state = IBV_QPS_RTS;
    ASSERT_EQ(rxe::post_recv(fake_.plain(), &wr, &bad), 0);
  }

  FakeQp fake_{IBV_QPT_RC, 3, IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE};
  Pd pd_;
  FakeRing ring_{3, 6};
  FakeRing receive_ring_{3, 6};
  rxe::Cq cq_;
  rxe::Cq receive_cq_;
  uverbs::RegionEntry region_;
  uverbs::RegionEntry other_;
  ibv_wc wc_{};
  std::string log_;
};

TEST_F(RxeExplain, TheEndsTheRequestAndItsKeyAreNamedOnceInTheLog) {
  ibv_sge sge{0x1000, 0x600, 0x111};
  fail(request(IBV_WR_RDMA_WRITE, sge), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(
      words(),
      AllOf(HasSubstr("QP 0x000021 (RC, process "), HasSubstr(", state ERR) to QP 0x00002c"),
            HasSubstr(" at GID ::ffff:10.0.0.2: RDMA_WRITE, wr_id 7: local protection"),
            HasSubstr("(vendor_err 3): lkey 0x00000111 of SGE 0 of the request: asked "),
            HasSubstr("[0x1000, 0x1600), the region has LOCAL_WRITE of [0x1000, 0x1400)"),
            HasSubstr("it ends 512 bytes before"), HasSubstr("; fix: ")));
  EXPECT_THAT(log_, HasSubstr(words().substr(0, 60)));
  log_.clear();
  complete(ring_, cq_, 8, IBV_WC_WR_FLUSH_ERR);
  complete(ring_, cq_, 9, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(log_, "") << "once";
  wc_.status = IBV_WC_WR_FLUSH_ERR;
  wc_.wr_id = 8;
  EXPECT_THAT(words(), HasSubstr("wr_id 8: flushed: what came first: RDMA_WRITE, wr_id 7: "));
}

TEST_F(RxeExplain, OfAWindowTheOneCauseThatItWas) {
  Mw mw;
  ibv_mr mr{};
  mw.plain.pd = mr.pd = &pd_.plain;
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.opcode = IBV_WR_BIND_MW;
  const auto says = [&](std::uint32_t lkey, std::uint64_t length, const char* what) {
    mr.lkey = lkey;
    wr.bind_mw = {&mw.plain, 0x401, {&mr, 0x1000, length, IBV_ACCESS_REMOTE_WRITE}};
    fail(wr, IBV_WC_MW_BIND_ERR);
    EXPECT_THAT(words(), HasSubstr(what));
    uverbs::forget_failures(*fake_.qp);
  };
  says(0x111, 8, "window 0x00000401 could not be bound: its region lacks MW_BIND; fix: ");
  says(0x999, 8, "its region is deregistered");
  region(other_, 0x222, 5, IBV_ACCESS_MW_BIND, 0x1000, 0x400);
  says(0x222, 8, "its region lacks LOCAL_WRITE");
  fake_.context.regions.remove(other_);
  region(other_, 0x333, 5, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE, 0x1000, 0x400);
  says(0x333, 0x401, "[0x1000, 0x1401), the region has [0x1000, 0x1400): it ends 1 bytes before");
  says(0x333, 8, "the device does not say why; fix: invalidate a window of type 2 before");
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.invalidate_rkey = 0x401;
  fail(wr, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_THAT(words(), HasSubstr("bound on this queue pair has the key 0x00000401; fix: "));
  fake_.qp->plain.pd = &pd_.plain;
}

TEST_F(RxeExplain, OfEveryFaultOfOurOwnKeys) {
  ibv_sge sge{0x1000, 8, 0x999};
  fail(request(IBV_WR_SEND, sge), IBV_WC_LOC_QP_OP_ERR);
  EXPECT_THAT(words(), HasSubstr("no memory region has this key"));
  uverbs::forget_failures(*fake_.qp);
  region(other_, 0x222, 6, IBV_ACCESS_LOCAL_WRITE, 0x1000, 0x400);
  sge.lkey = 0x222;
  fail(request(IBV_WR_SEND, sge), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), HasSubstr("another protection domain"));
  uverbs::forget_failures(*fake_.qp);
  fake_.context.regions.remove(other_);
  region(other_, 0x222, 5, 0, 0x1000, 0x400);
  fail(request(IBV_WR_RDMA_READ, sge), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("asked LOCAL_WRITE of"), HasSubstr("has no rights of"),
                             HasSubstr("the right LOCAL_WRITE is missing")));
  uverbs::forget_failures(*fake_.qp);
  sge = {UINT64_MAX - 7, 64, 0x111};
  fail(request(IBV_WR_SEND, sge), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), HasSubstr("begins at its byte")) << "no sum of its ends is trusted";
  uverbs::forget_failures(*fake_.qp);
  sge = {0x1000, 64, 0x111};
  fail(request(IBV_WR_SEND, sge), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), HasSubstr("changed or deregistered meanwhile"));
}

TEST_F(RxeExplain, OfThePeersMemoryWhatWasAskedAndWhoKnowsTheRest) {
  ibv_sge sge{0x1000, 0x80, 0x111};
  fail(request(IBV_WR_RDMA_WRITE, sge), IBV_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("rkey 0x00000305 of the peer: asked REMOTE_WRITE of "
                                       "[0x9000, 0x9080)"),
                             HasSubstr("only the peer knows"), Not(HasSubstr("lkey"))));
  uverbs::forget_failures(*fake_.qp);
  ibv_send_wr atomic = request(IBV_WR_ATOMIC_FETCH_AND_ADD, sge);
  atomic.wr.atomic = {0x9004, 1, 0, 0x305};
  fail(atomic, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(words(), HasSubstr("FETCH_AND_ADD, wr_id 7: "));
  EXPECT_THAT(words(), HasSubstr("remote address 0x9004 is no multiple of 8"));
  uverbs::forget_failures(*fake_.qp);
  fail(request(IBV_WR_SEND, sge), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(words(), HasSubstr("the peer refused the message of 128 bytes"));
}

TEST_F(RxeExplain, OfPlacementWhichRightsItNeeds) {
  ibv_qp_ex* const qp = fake_.extended();
  qp->wr_id = 7;
  qp->wr_flags = IBV_SEND_SIGNALED;
  const std::uint64_t value = 1;
  ibv_wr_start(qp);
  ibv_wr_flush(qp, 0x305, 0x9000, 0x80, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  fail_posted(7, IBV_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("FLUSH, wr_id 7: "),
                             HasSubstr("rkey 0x00000305 of the peer: asked FLUSH_PERSISTENT of "
                                       "[0x9000, 0x9080)")));
  uverbs::forget_failures(*fake_.qp);
  ibv_wr_start(qp);
  ibv_wr_atomic_write(qp, 0x305, 0x9004, &value);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  fail_posted(7, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("ATOMIC_WRITE, wr_id 7: "),
                             HasSubstr("remote address 0x9004 is no multiple of 8")));
}

// Linux 6.12's driver asks for address 0 when it repeats one: the word in the slot that it sends.
TEST_F(RxeExplain, OfPlacementThatWasRepeatedWhereItWentThen) {
  ibv_qp_ex* const qp = fake_.extended();
  qp->wr_id = 7;
  qp->wr_flags = IBV_SEND_SIGNALED;
  const std::uint64_t value = 1;
  ibv_wr_start(qp);
  ibv_wr_atomic_write(qp, 0x305, 0x9000, &value);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  std::memset(fake_.send.head() + 152, 0, 8);
  fail_posted(7, IBV_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), HasSubstr("rkey 0x00000305 of the peer: asked REMOTE_WRITE of [0x0, 0x8)"));
}

TEST_F(RxeExplain, OfSilenceHowOftenItWasAsked) {
  ibv_sge sge{0x1000, 0x80, 0x111};
  fail(request(IBV_WR_SEND, sge), IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(words(), HasSubstr("no answer to 8 tries of 67 ms (timeout 14; retry_cnt 7)"));
  uverbs::forget_failures(*fake_.qp);
  fail(request(IBV_WR_SEND, sge), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_THAT(words(), HasSubstr("said to 7 tries that it had no receive posted (rnr_retry 6)"));
}

TEST_F(RxeExplain, ASlotThatIsInUseAgainIsNotTakenForTheRequest) {
  ibv_sge sge{0x1000, 0x80, 0x111};
  fail(request(IBV_WR_RDMA_WRITE, sge), IBV_WC_SUCCESS);
  complete(ring_, cq_, 7, IBV_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("a request, wr_id 7: remote access error"),
                             HasSubstr("nothing more is known"), Not(HasSubstr("0x00000305"))));
}

// ibv_wr_start takes the send queue, and its thread may poll before it ends the batch.
TEST_F(RxeExplain, AQueueThatIsBeingWrittenIsNotWaitedFor) {
  const LockGuard guard(fake_.qp->send_lock);
  complete(ring_, cq_, 7, IBV_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), HasSubstr("wr_id 7: remote access error"));
}

TEST_F(RxeExplain, OfAReceiveItsMemory) {
  post_receive(70, {0x1000, 0x500, 0x111});
  fake_.qp->plain.recv_cq = &receive_cq_.plain;
  complete(receive_ring_, receive_cq_, 70, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("a receive, wr_id 70: "),
                             HasSubstr("lkey 0x00000111 of SGE 0 of the posted receive: asked "
                                       "LOCAL_WRITE of [0x1000, 0x1500)")));
  uverbs::forget_failures(*fake_.qp);
  complete(receive_ring_, receive_cq_, 70, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(words(), HasSubstr("the receive has 1280 bytes; how long the message was"));
  uverbs::forget_failures(*fake_.qp);
  post_receive(70, {0x1000, 0x600, 0x111});
  complete(receive_ring_, receive_cq_, 70, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(words(), HasSubstr("nothing more is known")) << "two of that name, and not alike";
}

TEST_F(RxeExplain, WhatTheRingsSayBeyondTheirSizeIsNotRead) {
  ibv_sge sge{0x1000, 0x80, 0x111};
  ibv_send_wr wr = request(IBV_WR_SEND, sge);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(rxe::post_send(fake_.plain(), &wr, &bad), 0);
  unsigned char* const slot = fake_.send.head();
  const std::uint32_t ended = IBV_WC_LOC_PROT_ERR, many = UINT32_MAX, odd = 77;
  std::memcpy(slot + 144, &ended, sizeof ended);
  std::memcpy(slot + 196, &many, sizeof many);
  std::memcpy(slot + 12, &odd, sizeof odd);
  complete(ring_, cq_, 7, IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), HasSubstr("wr_id 7: local protection error"));
}

TEST_F(RxeExplain, TellsAnOrderFromAFailure) {
  fake_.system.state = IBV_QPS_RTS;
  char line[256];
  EXPECT_EQ(vbt_explain(fake_.plain(), nullptr, line, sizeof line), -ENODATA);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs_provider_rxe.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  fake_.system.state = IBV_QPS_ERR;
  EXPECT_THAT(words(nullptr), HasSubstr("the program moved the queue pair to the error state"));
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(verbs_provider_rxe.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  fake_.system.state = IBV_QPS_RESET;
  EXPECT_EQ(vbt_explain(fake_.plain(), nullptr, line, sizeof line), -ENODATA);
  // The driver has led it to ERR, and the program does it once more.
  fake_.system.state = IBV_QPS_ERR;
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs_provider_rxe.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  EXPECT_THAT(words(nullptr), HasSubstr("what came first has had no completion here"));
}

TEST_F(RxeExplain, AnEventTellsThatThePeerWasRefused) {
  const unit::CapturedStderr captured;
  uverbs::note_event(*fake_.qp, IBV_EVENT_COMM_EST);
  EXPECT_EQ(captured.text(), "");
  uverbs::note_event(*fake_.qp, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_THAT(words(nullptr), HasSubstr("a request of the peer's was refused"));
  EXPECT_THAT(captured.text(), HasSubstr("remote access error"));
}

TEST(Regions, AreFoundByTheirKeysUntilTheyGo) {
  uverbs::RegionTable table;
  uverbs::RegionEntry entries[600];
  for (std::uint32_t i = 0; i < 600; ++i) table.add(entries[i], {i << 8, i, 0, i, 1});
  uverbs::RegionFacts facts;
  for (std::uint32_t i = 0; i < 600; i += 2) EXPECT_TRUE(table.remove(entries[i]));
  EXPECT_FALSE(table.remove(entries[0])) << "twice";
  for (std::uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(table.find(i << 8, facts), i % 2 != 0) << i;
    if (i % 2 == 0) continue;
    EXPECT_EQ(facts.pd, i);
  }
  EXPECT_FALSE(table.find(1, facts));
}

}  // namespace
}  // namespace verbatim::rxe_test
