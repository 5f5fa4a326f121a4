// SPDX-License-Identifier: BSD-2-Clause
// The QP state machine of software providers, whole: every pair of states of every type, every
// attribute of every transition, against the table of tests/support/qp_table.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "runtime/verbs/software/qp_states.hpp"
#include "runtime/verbs/software/qp_transitions.hpp"
#include "tests/support/qp_table.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC,       IBV_QPT_UC,       IBV_QPT_UD,
                                  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET};

TEST(QpTransitions, AreThoseOfTheSpecification) {
  for (const ibv_qp_type type : kTypes) {
    const auto expected = harness::transitions_of(type);
    for (const ibv_qp_state from : harness::kQpStates) {
      for (const ibv_qp_state to : harness::kQpStates) {
        const std::string where = "type " + std::to_string(type) + ": " + qp_state_name(from) +
                                  " to " + qp_state_name(to);
        const auto need = expected.find({from, to});
        const QpTransition* const row = find_qp_transition(type, from, to);
        if (need == expected.end()) {
          EXPECT_EQ(row, nullptr) << where;
        } else if (row == nullptr) {
          ADD_FAILURE() << where << " is missing";
        } else {
          EXPECT_EQ(row->required, need->second.required) << where;
          EXPECT_EQ(row->optional, need->second.optional) << where;
        }
      }
    }
  }
}

TEST(QpTransitions, NoTypeHasTwoRowsForOneStep) {
  for (const QpTransition& row : qp_transitions()) {
    for (const QpTransition& other : qp_transitions()) {
      if (&row == &other || row.from != other.from || row.to != other.to) continue;
      EXPECT_EQ(row.types & other.types, 0u) << qp_state_name(row.from);
    }
  }
}

class QpStates : public OpenedDevice {
 protected:
  void SetUp() override {
    OpenedDevice::SetUp();
    cq = make_cq();
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    OpenedDevice::TearDown();
  }
  /// XRC and raw packet QPs want parts that the witness has not: its machine is asked about them
  /// with an RC QP that is told to be one.
  ibv_qp* qp_of(ibv_qp_type type) {
    ibv_qp* const qp = make_qp(cq, IBV_QPT_RC);
    qp->qp_type = type;
    return qp;
  }
  /// Values that suit null0.
  static ibv_qp_attr good_values() {
    ibv_qp_attr attr{};
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = 5;
    attr.ah_attr.dlid = 1;
    attr.ah_attr.port_num = 1;
    attr.alt_ah_attr = attr.ah_attr;
    attr.port_num = attr.alt_port_num = 1;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.qkey = 0x11111111;
    attr.rq_psn = 0xabcdef;
    attr.sq_psn = 0x123456;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    return attr;
  }
  ibv_cq* cq = nullptr;
};

TEST_F(QpStates, EveryTransitionTakesWhatItNeedsAndWhatItMay) {
  for (const ibv_qp_type type : kTypes) {
    ibv_qp* const qp = qp_of(type);
    for (const auto& [step, need] : harness::transitions_of(type)) {
      const auto [from, to] = step;
      ibv_qp_attr attr = good_values();
      attr.qp_state = to;
      attr.cur_qp_state = from;
      for (const int mask : {need.required, need.required | need.optional}) {
        qp->state = from;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0)
            << type << ": " << qp_state_name(from) << " to " << qp_state_name(to);
        EXPECT_EQ(qp->state, to);
      }
    }
    qp->qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
}

TEST_F(QpStates, EachMissingAttributeIsRefusedAndNamed) {
  int refusals = 0;
  for (const ibv_qp_type type : kTypes) {
    ibv_qp* const qp = qp_of(type);
    for (const auto& [step, need] : harness::transitions_of(type)) {
      const auto [from, to] = step;
      for (const int missing : harness::bits_of(need.required)) {
        ibv_qp_attr attr = good_values();
        attr.qp_state = to;
        qp->state = from;
        const CapturedStderr captured;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | (need.required & ~missing)), EINVAL);
        EXPECT_THAT(captured.text(), HasSubstr(harness::attribute_names().at(missing)));
        EXPECT_EQ(captured.lines(), 1);
        EXPECT_EQ(qp->state, from) << "a refusal changes nothing";
        ++refusals;
      }
    }
    qp->qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  EXPECT_EQ(refusals, 14 + 8 + 4 + 12 + 11 + 1) << "RC, UC, UD, XRC send and receive, raw";
}

TEST_F(QpStates, EachForeignAttributeIsRefusedAndNamed) {
  for (const ibv_qp_type type : kTypes) {
    ibv_qp* const qp = qp_of(type);
    for (const auto& [step, need] : harness::transitions_of(type)) {
      const auto [from, to] = step;
      for (const auto& [bit, name] : harness::attribute_names()) {
        if (((need.required | need.optional | harness::ignored_of(type)) & bit) != 0) continue;
        ibv_qp_attr attr = good_values();
        attr.qp_state = to;
        attr.cur_qp_state = from;
        qp->state = from;
        const CapturedStderr captured;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | need.required | bit), EINVAL) << name;
        EXPECT_THAT(captured.text(), HasSubstr(name));
        EXPECT_EQ(qp->state, from);
      }
    }
    qp->qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
}

TEST_F(QpStates, ForbiddenStepsAreRefusedAndNameBothStates) {
  for (const ibv_qp_type type : kTypes) {
    const auto expected = harness::transitions_of(type);
    ibv_qp* const qp = qp_of(type);
    for (const ibv_qp_state from : harness::kQpStates) {
      for (const ibv_qp_state to : harness::kQpStates) {
        if (expected.count({from, to}) != 0) continue;
        ibv_qp_attr attr = good_values();
        attr.qp_state = to;
        qp->state = from;
        const CapturedStderr captured;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
        EXPECT_THAT(captured.text(), HasSubstr(std::string("from ") + qp_state_name(from) + " to " +
                                               qp_state_name(to)));
        EXPECT_THAT(captured.text(), HasSubstr("IBV_QP_STATE"));
      }
    }
    qp->state = IBV_QPS_RESET;
    qp->qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
}

TEST_F(QpStates, AQueryTellsWhatWasSet) {
  ibv_qp* const qp = make_qp(cq);
  ibv_qp_attr attr = good_values();
  attr.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_RTR;
  attr.rq_psn = 0xff123456;  // what a program takes from a random generator
  ASSERT_EQ(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
  ibv_qp_attr got;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &got, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(got.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(got.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(got.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(got.port_num, 1);
  EXPECT_EQ(got.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(got.dest_qp_num, 5u);
  EXPECT_EQ(got.ah_attr.dlid, 1);
  EXPECT_EQ(got.rq_psn, 0x123456u);
  EXPECT_EQ(got.sq_psn, 0x123456u);
  EXPECT_EQ(got.max_rd_atomic, 1);
  EXPECT_EQ(got.max_dest_rd_atomic, 1);
  EXPECT_EQ(got.min_rnr_timer, 12);
  EXPECT_EQ(got.timeout, 14);
  EXPECT_EQ(got.retry_cnt, 7);
  EXPECT_EQ(got.rnr_retry, 7);
  EXPECT_EQ(got.qkey, 0u) << "named by no mask";
  EXPECT_EQ(got.cap.max_send_wr, 8u);
  EXPECT_EQ(init.cap.max_inline_data, 7u);

  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_query_qp(qp, &got, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(got.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(got.dest_qp_num, 0u) << "RESET forgets";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(QpStates, AMaskWithoutAStateStaysInIt) {
  ibv_qp* const qp = make_qp(cq);
  ibv_qp_attr attr = good_values();
  attr.qp_state = IBV_QPS_ERR;  // not in the mask, so not read
  qp->state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(QpStates, AWrongIdeaOfTheCurrentStateIsRefused) {
  ibv_qp* const qp = make_qp(cq);
  qp->state = IBV_QPS_RTS;
  ibv_qp_attr attr = good_values();
  attr.cur_qp_state = IBV_QPS_SQD;
  const CapturedStderr captured;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_CUR_STATE), EINVAL);
  EXPECT_THAT(captured.text(), HasSubstr("IBV_QP_CUR_STATE"));
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(QpStates, BitsThatNobodyKnowsAreRefused) {
  ibv_qp* const qp = make_qp(cq);
  ibv_qp_attr attr = good_values();
  const CapturedStderr captured;
  for (const int bit : {21, 24, 26, 30}) {
    EXPECT_EQ(ibv_modify_qp(qp, &attr, 1 << bit), EINVAL) << bit;
  }
  EXPECT_EQ(captured.lines(), 4);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

/// One value out of range, and the name that the log must give it.
struct BadValue {
  const char* name;
  ibv_qp_state from;
  int mask;
  void (*spoil)(ibv_qp_attr&);
};

TEST_F(QpStates, ValuesOutOfRangeAreRefusedAndNamed) {
  const BadValue bad[] = {
      {"IBV_QP_PORT", IBV_QPS_INIT, IBV_QP_PORT, [](ibv_qp_attr& a) { a.port_num = 2; }},
      {"IBV_QP_PORT", IBV_QPS_INIT, IBV_QP_PORT, [](ibv_qp_attr& a) { a.port_num = 0; }},
      {"IBV_QP_PKEY_INDEX", IBV_QPS_SQD, IBV_QP_PKEY_INDEX | IBV_QP_PORT,
       [](ibv_qp_attr& a) { a.pkey_index = 1; }},
      {"IBV_QP_ACCESS_FLAGS", IBV_QPS_SQD, IBV_QP_ACCESS_FLAGS,
       [](ibv_qp_attr& a) { a.qp_access_flags = 1u << 14; }},
      {"IBV_QP_TIMEOUT", IBV_QPS_SQD, IBV_QP_TIMEOUT, [](ibv_qp_attr& a) { a.timeout = 32; }},
      {"IBV_QP_RETRY_CNT", IBV_QPS_SQD, IBV_QP_RETRY_CNT, [](ibv_qp_attr& a) { a.retry_cnt = 8; }},
      {"IBV_QP_RNR_RETRY", IBV_QPS_SQD, IBV_QP_RNR_RETRY, [](ibv_qp_attr& a) { a.rnr_retry = 8; }},
      {"IBV_QP_MIN_RNR_TIMER", IBV_QPS_SQD, IBV_QP_MIN_RNR_TIMER,
       [](ibv_qp_attr& a) { a.min_rnr_timer = 32; }},
      {"IBV_QP_MAX_QP_RD_ATOMIC", IBV_QPS_SQD, IBV_QP_MAX_QP_RD_ATOMIC,
       [](ibv_qp_attr& a) { a.max_rd_atomic = 5; }},
      {"IBV_QP_MAX_DEST_RD_ATOMIC", IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC,
       [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 5; }},
      {"IBV_QP_AV (port_num)", IBV_QPS_SQD, IBV_QP_AV,
       [](ibv_qp_attr& a) { a.ah_attr.port_num = 2; }},
      {"IBV_QP_AV (sl)", IBV_QPS_SQD, IBV_QP_AV, [](ibv_qp_attr& a) { a.ah_attr.sl = 16; }},
      {"IBV_QP_AV (sgid_index)", IBV_QPS_SQD, IBV_QP_AV | IBV_QP_PORT,
       [](ibv_qp_attr& a) {
         a.ah_attr.is_global = 1;
         a.ah_attr.grh.sgid_index = 1;
       }},
      {"IBV_QP_ALT_PATH", IBV_QPS_SQD, IBV_QP_ALT_PATH, [](ibv_qp_attr& a) { a.alt_timeout = 32; }},
      {"IBV_QP_PATH_MIG_STATE", IBV_QPS_SQD, IBV_QP_PATH_MIG_STATE,
       [](ibv_qp_attr& a) { a.path_mig_state = static_cast<ibv_mig_state>(3); }},
  };
  ibv_qp* const qp = make_qp(cq);
  for (const BadValue& value : bad) {
    qp->state = value.from;
    ibv_qp_attr attr = good_values();
    EXPECT_EQ(ibv_modify_qp(qp, &attr, value.mask), 0) << value.name;
    value.spoil(attr);
    const CapturedStderr captured;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, value.mask), EINVAL) << value.name;
    EXPECT_THAT(captured.text(), HasSubstr(value.name));
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(QpStates, PathMtuAndDestinationAreCheckedOnTheWayToRtr) {
  ibv_qp* const qp = make_qp(cq);
  constexpr int kMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ibv_qp_attr attr = good_values();
  attr.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_RTR;
  {
    const CapturedStderr captured;
    for (const int mtu : {0, int{IBV_MTU_4096}, 6}) {  // the port's is 2048
      attr.path_mtu = static_cast<ibv_mtu>(mtu);
      EXPECT_EQ(ibv_modify_qp(qp, &attr, kMask), EINVAL) << mtu;
    }
    attr.path_mtu = IBV_MTU_2048;
    attr.dest_qp_num = 0x1000000;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, kMask), EINVAL);
    EXPECT_THAT(captured.text(), HasSubstr("IBV_QP_PATH_MTU"));
    EXPECT_THAT(captured.text(), HasSubstr("IBV_QP_DEST_QPN"));
  }
  attr.dest_qp_num = 0xffffff;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, kMask), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace verbatim::unit
