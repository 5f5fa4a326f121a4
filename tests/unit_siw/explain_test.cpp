// SPDX-License-Identifier: BSD-2-Clause
// Why requests fail, as far as this side of a siw connection can know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <string>

#include "providers/siw/hot.hpp"
#include "providers/uverbs/failures.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SiwExplain : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.context.table = &verbs_provider_siw;
    ASSERT_EQ(fake_.make_qp(), 0);
    fake_.qp->plain.pd = &fake_.pd->plain;
    fake_.connect();
    fake_.context.regions.add(region_, {0x111, fake_.pd->plain.handle, 0, 0x1000, 0x400});
  }
  void TearDown() override { fake_.context.regions.remove(region_); }
  /// Posted, taken by the kernel as it does, and completed.
  void fail(Request request, unsigned opcode, unsigned status) {
    ASSERT_EQ(post(fake_, request.wr).error, 0);
    const unsigned slot = posted_++ % 8;
    fake_.sent(slot).flags = 0;
    ASSERT_TRUE(fake_.complete(request.wr.wr_id, opcode, status));
    const unit::CapturedStderr captured;
    ASSERT_EQ(fake_.poll(1), 1);
    log_ += captured.text();
  }
  static Request request(ibv_wr_opcode opcode, std::uint64_t wr_id) {
    Request made(opcode, 0x500);
    made.wr.wr_id = wr_id;
    made.sge = {0x1000, 0x500, 0x111};
    made.wr.wr.rdma = {0x9000, 0x305};
    return made;
  }
  std::string words() {
    char line[1024] = {};
    EXPECT_GT(vbt_explain(&fake_.qp->plain, &fake_.wc[0], line, sizeof line), 0);
    return line;
  }

  FakeSiw fake_;
  uverbs::RegionEntry region_;
  unsigned posted_ = 0;
  std::string log_;
};

TEST_F(SiwExplain, NamesTheRequestItsKeyAndTheDriversStatus) {
  fail(request(IBV_WR_SEND, 7), SIW_OP_SEND, SIW_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("QP 0x000011 (RC, process "),
                             HasSubstr(", state ERR): SEND, wr_id 7: local protection error "
                                       "(vendor_err 2): lkey 0x00000111 of SGE 0"),
                             HasSubstr("the region has no rights of [0x1000, 0x1400)")));
  EXPECT_THAT(log_, HasSubstr("lkey 0x00000111"));
}

TEST_F(SiwExplain, OfThePeersMemoryWhatWasAsked) {
  fail(request(IBV_WR_RDMA_READ, 8), SIW_OP_READ, SIW_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), HasSubstr("rkey 0x00000305 of the peer: asked REMOTE_READ of "
                                 "[0x9000, 0x9500)"));
}

TEST_F(SiwExplain, RequestsOfOneNumberThatDifferAreNotTakenForEachOther) {
  Request earlier = request(IBV_WR_RDMA_WRITE, 7);
  ASSERT_EQ(post(fake_, earlier.wr).error, 0);
  fake_.sent(posted_++).flags = 0;
  fail(request(IBV_WR_RDMA_READ, 7), SIW_OP_READ, SIW_WC_REM_ACCESS_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("wr_id 7: remote access error"), Not(HasSubstr("0x305"))));
}

TEST_F(SiwExplain, BytesInTheElementAreNoMemoryOfOurs) {
  unsigned char byte = 0;
  Request made = request(IBV_WR_SEND, 7);
  made.sge = {reinterpret_cast<std::uintptr_t>(&byte), 1, 0};
  made.wr.send_flags = IBV_SEND_INLINE;
  fail(made, SIW_OP_SEND, SIW_WC_LOC_PROT_ERR);
  EXPECT_THAT(words(), AllOf(HasSubstr("SEND, wr_id 7: "), Not(HasSubstr("lkey 0x"))));
}

TEST_F(SiwExplain, OfAReceiveItsMemory) {
  ibv_sge sge{0x1000, 64, 0x111};
  ibv_recv_wr wr{70, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(siw::post_recv(&fake_.qp->plain, &wr, &bad), 0);
  ASSERT_TRUE(fake_.complete(70, SIW_OP_RECEIVE, SIW_WC_LOC_PROT_ERR));
  const unit::CapturedStderr captured;
  ASSERT_EQ(fake_.poll(1), 1);
  EXPECT_THAT(words(), AllOf(HasSubstr("a receive, wr_id 70: "),
                             HasSubstr("the right LOCAL_WRITE is missing")));
}

TEST_F(SiwExplain, AnEventTellsThatThePeerWasRefused) {
  const unit::CapturedStderr captured;
  uverbs::note_event(*fake_.qp, IBV_EVENT_QP_ACCESS_ERR);
  char line[512];
  ASSERT_GT(vbt_explain(&fake_.qp->plain, nullptr, line, sizeof line), 0);
  EXPECT_THAT(line, AllOf(HasSubstr("a request of the peer's was refused"), HasSubstr("state ERR")))
      << "not what the driver says of it, which is RESET always";
  EXPECT_THAT(captured.text(), AllOf(HasSubstr("remote access error"), HasSubstr("state ERR")));
}

TEST_F(SiwExplain, TellsAnOrderFromAFailure) {
  char line[512];
  EXPECT_EQ(vbt_explain(&fake_.qp->plain, nullptr, line, sizeof line), -ENODATA);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs_provider_siw.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  ASSERT_GT(vbt_explain(&fake_.qp->plain, nullptr, line, sizeof line), 0);
  EXPECT_THAT(line, HasSubstr("the program moved the queue pair"));
}

}  // namespace
}  // namespace verbatim::siw_test
