// SPDX-License-Identifier: BSD-2-Clause
//
// What is said of the transports that do not answer (verbatim/explain.h): UD and UC, whose send
// queue alone stops (IBTA 10.8.2, 10.3.1: SQE). The address handle of another protection domain is
// an error of the request too, IBV_WC_LOC_QP_OP_ERR.
#include <gmock/gmock.h>

#include <unistd.h>

#include <cerrno>

#include "tests/shm/explain_text.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Unanswered {
  Unanswered(Setting setting, ibv_qp_type type)
      : pair(setting, of(type)),
        local(pair.a.allocate(setting.memory, 8192)),
        remote(pair.b.allocate(setting.memory, 8192)) {
    // The processes have met then: who they are is known.
    expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, 0, 64))));
    Request first = type == IBV_QPT_UD ? letter(slice(local, 0, 8)) : send(kId, slice(local, 0, 8));
    expect_posted(pair.a.post_send(pair.qa, first));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], kId, IBV_WC_SEND, pair.qa);
    expect_wc(pair.b.poll_receives(pair.qb, 1)[0], 1, IBV_WC_RECV, pair.qb);
  }
  static PairWish of(ibv_qp_type type) {
    PairWish wish;
    wish.a.type = wish.b.type = type;
    return wish;
  }
  Request letter(const SliceList& from) {
    if (ah < 0) ah = pair.a.call<&Endpoint::create_ah>(pair.qb, 0);
    return datagram(kId, from, ah, pair.qb.qpn, kQkey);
  }
  /// What is said of the first completion, which is in error, and stops the sends alone.
  std::string stopped(ibv_wc_status status) {
    const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
    expect_error(wc, kId, status, pair.qa);
    EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_SQE);
    return pair.a.explain(pair.qa, wc);
  }
  std::string fail(const Request& request, ibv_wc_status status) {
    expect_posted(pair.a.post_send(pair.qa, request));
    return stopped(status);
  }
  auto names(const char* type, const char* request) {
    return AllOf(StartsWith(qp(pair.qa) + " (" + type + ", process "),
                 HasSubstr(" to " + qp(pair.qb) + " (process " +
                           std::to_string(pair.b.is_child() ? pair.b.child().pid() : ::getpid()) +
                           " " + program_invocation_short_name + ")"),
                 HasSubstr(std::string(request) + ", wr_id 4711: "), HasSubstr("; fix: "));
  }

  Pair pair;
  RegionInfo local, remote;
  std::int32_t ah = -1;
};

class ExplainUd : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainUd, each_way());
class ExplainUc : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainUc, each_way());

TEST_P(ExplainUd, AnAddressHandleOfAnotherDomain) {
  Unanswered ud(GetParam(), IBV_QPT_UD);
  Endpoint& here = ud.pair.a.here();
  const PdHandle other(ibv_alloc_pd(here.context()));
  ibv_ah_attr path{};
  path.dlid = ud.pair.qb.lid;
  path.port_num = 1;
  const AhHandle foreign(ibv_create_ah(other.get(), &path));
  ASSERT_NE(foreign, nullptr);
  ibv_sge piece{ud.local.address, 8, ud.local.lkey};
  ibv_send_wr request{}, *bad = nullptr;
  request.wr_id = kId;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud = {foreign.get(), ud.pair.qb.qpn, kQkey};
  ASSERT_EQ(ibv_post_send(here.qp(ud.pair.qa.id), &request, &bad), 0);
  EXPECT_THAT(ud.stopped(IBV_WC_LOC_QP_OP_ERR),
              AllOf(ud.names("UD", "SEND"), HasSubstr("local QP operation error"),
                    HasSubstr("the address handle is of another protection domain; fix: make it "
                              "in that of the queue pair")));
}

TEST_P(ExplainUd, ADatagramLongerThanOneCanBe) {
  Unanswered ud(GetParam(), IBV_QPT_UD);
  EXPECT_THAT(ud.fail(ud.letter(slice(ud.local, 0, 4097)), IBV_WC_LOC_LEN_ERR),
              AllOf(ud.names("UD", "SEND"), HasSubstr("local length error"),
                    HasSubstr("the request has 4097 bytes, at most 4096 can be sent at once")));
}

TEST_P(ExplainUd, ALocalKeyAndWhatWasFlushedBehindIt) {
  Unanswered ud(GetParam(), IBV_QPT_UD);
  Slice wrong = slice(ud.local, 0, 64);
  wrong.lkey = ud.local.lkey ^ 0x80000000u;
  Request behind = ud.letter(slice(ud.local, 0, 8));
  behind.wr_id = 2;
  expect_posted(ud.pair.a.post_send(ud.pair.qa, {ud.letter(wrong), behind}));
  const auto names = AllOf(HasSubstr("lkey " + key(wrong.lkey) + " of SGE 0"),
                           HasSubstr("no memory region has this key"));
  EXPECT_THAT(ud.stopped(IBV_WC_LOC_PROT_ERR), AllOf(ud.names("UD", "SEND"), names));
  const ibv_wc flushed = ud.pair.a.poll_sends(ud.pair.qa, 1)[0];
  expect_error(flushed, 2, IBV_WC_WR_FLUSH_ERR, ud.pair.qa);
  EXPECT_THAT(ud.pair.a.explain(ud.pair.qa, flushed),
              AllOf(HasSubstr("wr_id 2: "), HasSubstr("flushed: what came first: SEND, wr_id 4711"),
                    names));
}

TEST_P(ExplainUd, AGroupByItsAddress) {
  Unanswered ud(GetParam(), IBV_QPT_UD);
  ibv_gid group{};
  group.raw[0] = 0xff;
  group.raw[1] = 0x12;
  group.raw[15] = 0x77;
  Slice wrong = slice(ud.local, 0, 64);
  wrong.lkey = ud.local.lkey ^ 0x80000000u;
  const std::int32_t ah =
      ud.pair.a.call<&Endpoint::create_multicast_ah>(group, std::uint16_t{0xc001});
  EXPECT_THAT(ud.fail(datagram(kId, wrong, ah, 0xffffff, kQkey), IBV_WC_LOC_PROT_ERR),
              HasSubstr(") to GID ff12::77: SEND, wr_id 4711: "));
}

TEST_P(ExplainUd, AReceiveThatIsTooShort) {
  Unanswered ud(GetParam(), IBV_QPT_UD);
  expect_posted(ud.pair.b.post_receive(ud.pair.qb, receive(9, slice(ud.remote, 0, 40 + 32))));
  expect_posted(ud.pair.a.post_send(ud.pair.qa, ud.letter(slice(ud.local, 0, 33))));
  expect_wc(ud.pair.a.poll_sends(ud.pair.qa, 1)[0], kId, IBV_WC_SEND, ud.pair.qa);
  const ibv_wc wc = ud.pair.b.poll_receives(ud.pair.qb, 1)[0];
  expect_error(wc, 9, IBV_WC_LOC_LEN_ERR, ud.pair.qb);
  EXPECT_THAT(ud.pair.b.explain(ud.pair.qb, wc),
              AllOf(StartsWith(qp(ud.pair.qb) + " (UD, process "), HasSubstr(qp(ud.pair.qa)),
                    HasSubstr("a receive, wr_id 9: "),
                    HasSubstr("the message has 33 bytes, the posted receive takes 32; fix: ")));
}

TEST_P(ExplainUc, ALocalKeyThatStopsTheSendsAlone) {
  Unanswered uc(GetParam(), IBV_QPT_UC);
  Slice wrong = slice(uc.local, 0, 64);
  wrong.lkey = uc.local.lkey ^ 0x80000000u;
  EXPECT_THAT(uc.fail(write(kId, wrong, uc.remote), IBV_WC_LOC_PROT_ERR),
              AllOf(uc.names("UC", "RDMA_WRITE"), HasSubstr("lkey " + key(wrong.lkey)),
                    HasSubstr("no memory region has this key")));
  // It receives on, sends again once it was led back, and what is forgotten is not said.
  expect_posted(uc.pair.a.post_receive(uc.pair.qa, receive(5, slice(uc.local, 0, 64))));
  expect_posted(uc.pair.b.post_send(uc.pair.qb, send(6, slice(uc.remote, 0, 8))));
  expect_receive(uc.pair.a.poll_receives(uc.pair.qa, 1)[0], 5, 8, uc.pair.qa);
  ASSERT_EQ(uc.pair.a.to_state(uc.pair.qa, IBV_QPS_RTS), 0);
  expect_posted(uc.pair.a.post_send(uc.pair.qa, write(7, slice(uc.local, 0, 8), uc.remote)));
  expect_wc(uc.pair.a.poll_sends(uc.pair.qa, 1)[0], 7, IBV_WC_RDMA_WRITE, uc.pair.qa);
}

TEST_P(ExplainUc, ARegionThatIsShorterThanTheRequest) {
  Unanswered uc(GetParam(), IBV_QPT_UC);
  EXPECT_THAT(uc.fail(send(kId, slice(uc.local, 8000, 200)), IBV_WC_LOC_PROT_ERR),
              AllOf(uc.names("UC", "SEND"), HasSubstr("ends 8 bytes before the request does")));
}

}  // namespace
}  // namespace verbatim::harness
