// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair is made with and what it tells of itself (IBTA 11.2.4.1, 11.2.5.3; man
// ibv_create_qp, ibv_query_qp, ibv_query_ece, ibv_query_qp_data_in_order,
// ibv_modify_qp_rate_limit).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "tests/support/device.hpp"
#include "tests/support/qp_table.hpp"

namespace verbatim::harness {
namespace {

struct Typed {
  const char* device;
  ibv_qp_type type;
};

std::vector<Typed> every_type() {
  std::vector<Typed> all;
  for (const char* device : every_device()) {
    for (const ibv_qp_type type : kQpTypes) all.push_back({device, type});
  }
  return all;
}

/// Of each type.
class Qp : public ::testing::TestWithParam<Typed>, protected DeviceObjects {
 protected:
  Qp() : DeviceObjects(GetParam().device) {}
  ibv_qp_type type() const { return GetParam().type; }
  void query(ibv_qp* of) {
    attr_ = {};
    ASSERT_EQ(ibv_query_qp(of, &attr_, IBV_QP_STATE | IBV_QP_CAP, &init_), 0);
  }
  bool connects() const { return type() != IBV_QPT_UD; }
  ibv_qp_attr attr_{};
  ibv_qp_init_attr init_{};
};
INSTANTIATE_TEST_SUITE_P(, Qp, ::testing::ValuesIn(every_type()),
                         [](const ::testing::TestParamInfo<Typed>& tested) {
                           return std::string(tested.param.device) + '_' +
                                  name_of(tested.param.type);
                         });

TEST_P(Qp, BeginsInReset) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_qp* const made = qp(type(), cq());
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(state(made), IBV_QPS_RESET);
}

TEST_P(Qp, HasTheObjectsThatItWasMadeWith) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_cq* const both = cq();
  ibv_qp* const made = qp(type(), both);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->context, context());
  EXPECT_EQ(made->qp_type, type());
  if (type() == IBV_QPT_XRC_RECV) return;
  EXPECT_EQ(made->pd, pd());
  EXPECT_EQ(made->send_cq, both);
  EXPECT_EQ(made->srq, nullptr);
  if (type() != IBV_QPT_XRC_SEND) {
    EXPECT_EQ(made->recv_cq, both);
  }
}

TEST_P(Qp, NumbersAreOf24BitsAndOneOfAKind) {
  SKIP_IF(lacks_type(context(), type()));
  std::set<std::uint32_t> numbers;
  ibv_cq* const both = cq();
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t number = qp(type(), both)->qp_num;
    EXPECT_GT(number, 1u) << "0 and 1 are the management's (IBTA 10.2.4.1)";
    EXPECT_LE(number, 0xffffffu);
    EXPECT_TRUE(numbers.insert(number).second);
  }
}

TEST_P(Qp, WritesBackAtLeastTheSizesThatWereAskedFor) {
  SKIP_IF(lacks_type(context(), type()));
  if (type() == IBV_QPT_XRC_RECV) GTEST_SKIP() << "an XRC receive queue pair has no queues";
  ibv_qp_init_attr init{};
  init.qp_type = type();
  init.send_cq = init.recv_cq = cq();
  const bool receives = type() != IBV_QPT_XRC_SEND;
  init.cap = {5, receives ? 7u : 0u, 2, receives ? 1u : 0u, 17};
  ibv_qp* const made = ibv_create_qp(pd(), &init);
  ASSERT_NE(made, nullptr);
  EXPECT_GE(init.cap.max_send_wr, 5u);
  EXPECT_GE(init.cap.max_send_sge, 2u);
  EXPECT_GE(init.cap.max_inline_data, 17u);
  if (receives) {
    EXPECT_GE(init.cap.max_recv_wr, 7u);
    EXPECT_GE(init.cap.max_recv_sge, 1u);
  }
  query(made);
  for (const ibv_qp_cap& told : {attr_.cap, init_.cap}) {
    EXPECT_EQ(told.max_send_wr, init.cap.max_send_wr);
    EXPECT_EQ(told.max_recv_wr, init.cap.max_recv_wr);
    EXPECT_EQ(told.max_send_sge, init.cap.max_send_sge);
    EXPECT_EQ(told.max_recv_sge, init.cap.max_recv_sge);
    EXPECT_EQ(told.max_inline_data, init.cap.max_inline_data);
  }
  EXPECT_EQ(init_.qp_type, type());
  EXPECT_EQ(init_.send_cq, init.send_cq);
  EXPECT_EQ(init_.sq_sig_all, 0);
  EXPECT_EQ(ibv_destroy_qp(made), 0);
}

TEST_P(Qp, TellsWhatItWasGivenInEachState) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_qp* const made = qp(type(), cq());
  ASSERT_EQ(lead(made, IBV_QPS_INIT), 0);
  query(made);
  EXPECT_EQ(attr_.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(attr_.port_num, 1);
  EXPECT_EQ(attr_.pkey_index, 0);
  if (connects()) {
    EXPECT_EQ(attr_.qp_access_flags & kAllAccess & ~unsigned{IBV_ACCESS_LOCAL_WRITE},
              kAllAccess & ~unsigned{IBV_ACCESS_LOCAL_WRITE});
  } else {
    EXPECT_EQ(attr_.qkey, kQkey);
  }
  ASSERT_EQ(to_state(made, IBV_QPS_RESET), 0);
  ASSERT_EQ(lead(made, IBV_QPS_RTS), 0);
  query(made);
  EXPECT_EQ(attr_.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr_.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr_.sq_psn, 0x123456u);
  if (!connects()) return;
  EXPECT_EQ(attr_.dest_qp_num, made->qp_num);
  EXPECT_EQ(attr_.rq_psn, 0x123456u);
  EXPECT_EQ(attr_.path_mtu, std::min(IBV_MTU_1024, port().active_mtu));
  EXPECT_EQ(attr_.ah_attr.port_num, 1);
  EXPECT_EQ(attr_.ah_attr.dlid, port().lid);
  if (type() == IBV_QPT_RC || type() == IBV_QPT_XRC_SEND) {
    EXPECT_EQ(attr_.timeout, 14);
    EXPECT_EQ(attr_.retry_cnt, 7);
    EXPECT_EQ(attr_.rnr_retry, 7);
    EXPECT_GE(attr_.max_rd_atomic, 1);
  }
  if (type() == IBV_QPT_RC || type() == IBV_QPT_XRC_RECV) {
    EXPECT_EQ(attr_.min_rnr_timer, 1);
    EXPECT_GE(attr_.max_dest_rd_atomic, 1);
  }
}

TEST_P(Qp, GoesThroughItsStatesAgainAndAgain) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_qp* const made = qp(type(), cq());
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(lead(made, round % 2 == 0 ? IBV_QPS_RTS : IBV_QPS_SQD), 0) << round;
    if (round % 3 == 0) {
      ASSERT_EQ(to_state(made, IBV_QPS_ERR), 0);
    }
    ASSERT_EQ(to_state(made, IBV_QPS_RESET), 0) << round;
  }
}

TEST_P(Qp, CanBeDestroyedInEveryState) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_cq* const both = cq();
  for (const ibv_qp_state last :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    ibv_qp* const made = qp(type(), both);
    ASSERT_EQ(lead(made, last), 0) << last;
    EXPECT_EQ(destroy(made), 0) << last;
  }
}

TEST_P(Qp, HasNoExtendedFormUnlessItWasAskedFor) {
  SKIP_IF(lacks_type(context(), type()));
  // man ibv_wr_post: send_ops_flags make it one.
  EXPECT_EQ(ibv_qp_to_qp_ex(qp(type(), cq())), nullptr);
}

TEST_P(Qp, TellsItsEnhancedConnectionOptions) {
  // man ibv_query_ece, ibv_set_ece: all zeros is to have none, and no device here has any.
  SKIP_IF(lacks_type(context(), type()));
  ibv_qp* const made = qp(type(), cq());
  ibv_ece ece{1, 2, 3};
  ASSERT_EQ(ibv_query_ece(made, &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0u);
  EXPECT_EQ(ece.options, 0u);
  EXPECT_EQ(ece.comp_mask, 0u);
  EXPECT_EQ(ibv_set_ece(made, &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0u);
  EXPECT_EQ(ece.options, 0u);
}

TEST_P(Qp, RefusesTheEnhancedConnectionOptionsOfOthers) {
  SKIP_IF(lacks_type(context(), type()));
  AllowedLog("zeros are all that can be set (EOPNOTSUPP)");
  ibv_qp* const made = qp(type(), cq());
  for (const ibv_ece others : {ibv_ece{0x15b3, 0, 0}, ibv_ece{0, 1, 0}, ibv_ece{0x15b3, 1, 0},
                               ibv_ece{0, 0, 1}, ibv_ece{0, 0, 1u << 31}}) {
    ibv_ece asked = others;
    EXPECT_EQ(ibv_set_ece(made, &asked), EOPNOTSUPP)
        << others.vendor_id << ' ' << others.options << ' ' << others.comp_mask;
  }
}

TEST_P(Qp, TellsWhetherItsDataArrivesInOrder) {
  // man ibv_query_qp_data_in_order: without flags 0 or 1; with RETURN_CAPS, whole messages in order
  // imply that aligned pieces are.
  SKIP_IF(lacks_type(context(), type()));
  expect_complaints();
  ibv_qp* const made = qp(type(), cq());
  for (const ibv_wr_opcode op : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    const int plain = ibv_query_qp_data_in_order(made, op, 0);
    EXPECT_TRUE(plain == 0 || plain == 1) << plain;
    const int caps = ibv_query_qp_data_in_order(made, op, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS);
    EXPECT_GE(caps, 0);
    const bool whole = (caps & IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG) != 0;
    EXPECT_EQ(plain == 1, whole);
    if (whole) {
      EXPECT_NE(caps & IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES, 0);
    }
  }
}

TEST_P(Qp, RefusesARateThatTheDeviceCannotPace) {
  SKIP_IF(lacks_type(context(), type()));
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  if (ibv_is_qpt_supported(extended.packet_pacing_caps.supported_qpts, type())) {
    GTEST_SKIP() << "the device paces this type";
  }
  expect_complaints();
  ibv_qp* const made = qp(type(), cq());
  ASSERT_EQ(lead(made, IBV_QPS_RTS), 0);
  ibv_qp_rate_limit_attr rate{};
  rate.rate_limit = 1000;
  const int error = ibv_modify_qp_rate_limit(made, &rate);
  EXPECT_TRUE(error == EOPNOTSUPP || error == EINVAL) << error;
}

class QpCreation : public OnDevice {
 protected:
  ibv_qp_init_attr_ex sound() {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq();
    init.cap = {1, 1, 1, 1, 0};
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = pd();
    return init;
  }
  void expect_refused(ibv_qp_init_attr_ex init, std::initializer_list<int> errors) {
    expect_complaints();
    errno = 0;
    ibv_qp* const made = ibv_create_qp_ex(context(), &init);
    const int error = errno;
    EXPECT_EQ(made, nullptr);
    if (made != nullptr) ibv_destroy_qp(made);
    EXPECT_TRUE(std::count(errors.begin(), errors.end(), error) != 0) << std::strerror(error);
  }
};
RUN_ON_EVERY_DEVICE(QpCreation);

TEST_P(QpCreation, KeepsTheProgramsOwnPointer) {
  int mine = 0;
  ibv_qp_init_attr_ex init = sound();
  init.qp_context = &mine;
  const QpHandle made(ibv_create_qp_ex(context(), &init));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->qp_context, &mine);
  ibv_qp_attr attr{};
  ibv_qp_init_attr told{};
  ASSERT_EQ(ibv_query_qp(made.get(), &attr, 0, &told), 0);
  EXPECT_EQ(told.qp_context, &mine);
}

TEST_P(QpCreation, WithoutACompletionQueueIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.send_cq = nullptr;
  expect_refused(init, {EINVAL});
  init = sound();
  init.recv_cq = nullptr;
  expect_refused(init, {EINVAL});
}

TEST_P(QpCreation, WithoutAProtectionDomainIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.comp_mask = 0;
  expect_refused(init, {EINVAL});
}

TEST_P(QpCreation, OfATypeThatDoesNotExistIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.qp_type = static_cast<ibv_qp_type>(77);
  expect_refused(init, {EINVAL, EOPNOTSUPP});
}

TEST_P(QpCreation, WithUnknownBitsInItsMaskIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.comp_mask |= 1u << 30;
  expect_refused(init, {EINVAL, EOPNOTSUPP});
}

TEST_P(QpCreation, WithUnknownFlagsIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  init.create_flags = 1u << 30;
  expect_refused(init, {EINVAL, EOPNOTSUPP});
}

TEST_P(QpCreation, WithTheQueueOfAnotherDeviceIsRefused) {
  const Session other(GetParam());
  const CqHandle theirs(ibv_create_cq(other.context.get(), 4, nullptr, nullptr, 0));
  ibv_qp_init_attr_ex init = sound();
  init.send_cq = theirs.get();
  expect_refused(init, {EINVAL});
}

TEST_P(QpCreation, OfMoreThanTheDeviceHasIsRefusedAndAllThatItHasIsTaken) {
  struct Limit {
    const char* name;
    std::uint32_t ibv_qp_cap::*member;
    int most;
  };
  for (const Limit& limit : {Limit{"max_send_wr", &ibv_qp_cap::max_send_wr, attr().max_qp_wr},
                             Limit{"max_recv_wr", &ibv_qp_cap::max_recv_wr, attr().max_qp_wr},
                             Limit{"max_send_sge", &ibv_qp_cap::max_send_sge, attr().max_sge},
                             Limit{"max_recv_sge", &ibv_qp_cap::max_recv_sge, attr().max_sge}}) {
    SCOPED_TRACE(limit.name);
    ibv_qp_init_attr_ex init = sound();
    init.cap.*limit.member = static_cast<std::uint32_t>(limit.most);
    const QpHandle most(ibv_create_qp_ex(context(), &init));
    EXPECT_NE(most, nullptr) << std::strerror(errno);
    EXPECT_GE(init.cap.*limit.member, static_cast<std::uint32_t>(limit.most));
    init = sound();
    init.cap.*limit.member = static_cast<std::uint32_t>(limit.most) + 1;
    expect_refused(init, {EINVAL, ENOMEM});
  }
}

TEST_P(QpCreation, WithAnAbsurdInlineSizeIsRefused) {
  ibv_qp_init_attr_ex init = sound();
  init.cap.max_inline_data = 1u << 24;
  expect_refused(init, {EINVAL, ENOMEM});
}

TEST_P(QpCreation, WithNothingToReceiveIsTaken) {
  ibv_qp_init_attr_ex init = sound();
  init.cap = {1, 0, 1, 0, 0};
  const QpHandle made(ibv_create_qp_ex(context(), &init));
  EXPECT_NE(made, nullptr) << std::strerror(errno);
}

TEST_P(QpCreation, ByThePlainVerbIsTheSameAsByTheExtendedOne) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = cq();
  init.cap = {1, 1, 1, 1, 0};
  const QpHandle made(ibv_create_qp(pd(), &init));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(lead(made.get(), IBV_QPS_RTS), 0);
}

}  // namespace
}  // namespace verbatim::harness
