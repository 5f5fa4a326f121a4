// SPDX-License-Identifier: BSD-2-Clause
//
// The table of transitions (IBTA 11.2.5.2, tables 95 to 97 of release 1.3; man ibv_modify_qp), cell
// by cell: each pair of states of each type, each attribute that a transition needs, may have, must
// not have, may have to no effect. A refusal is EINVAL and changes nothing.
#include <array>
#include <cerrno>

#include "tests/support/device.hpp"
#include "tests/support/qp_table.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

/// One cell; `attribute` is 0 where a test is about the transition itself.
struct Cell {
  const char* device;
  ibv_qp_type type;
  ibv_qp_state from, to;
  int attribute;
};

void PrintTo(const Cell& cell, std::ostream* out) { *out << cell.device; }

std::string cell_name(const ::testing::TestParamInfo<Cell>& tested) {
  const Cell& cell = tested.param;
  std::string name = std::string(cell.device) + '_' + name_of(cell.type) + '_' +
                     name_of(cell.from) + "_to_" + name_of(cell.to);
  if (cell.attribute != 0) name += '_' + attribute_names().at(cell.attribute).substr(7);
  return name;
}

template <class Pick>
std::vector<Cell> cells(Pick&& pick) {
  std::vector<Cell> all;
  for (const char* device : every_device()) {
    for (const ibv_qp_type type : kQpTypes) {
      const auto table = transitions_of(type);
      for (const ibv_qp_state from : kQpStates) {
        // Only UC and UD have this state at all (IBTA 10.3.1.6).
        if (from == IBV_QPS_SQE && type != IBV_QPT_UC && type != IBV_QPT_UD) continue;
        for (const ibv_qp_state to : kQpStates) {
          const auto found = table.find({from, to});
          const Need* need = found == table.end() ? nullptr : &found->second;
          for (const int attribute : pick(type, need))
            all.push_back({device, type, from, to, attribute});
        }
      }
    }
  }
  return all;
}

std::vector<Cell> allowed() {
  return cells([](ibv_qp_type, const Need* need) {
    return need != nullptr ? std::vector{0} : std::vector<int>{};
  });
}
std::vector<Cell> forbidden() {
  return cells([](ibv_qp_type, const Need* need) {
    return need == nullptr ? std::vector{0} : std::vector<int>{};
  });
}
std::vector<Cell> required() {
  return cells([](ibv_qp_type, const Need* need) {
    return need == nullptr ? std::vector<int>{} : bits_of(need->required);
  });
}
std::vector<Cell> optional() {
  return cells([](ibv_qp_type, const Need* need) {
    return need == nullptr ? std::vector<int>{} : bits_of(need->optional);
  });
}
std::vector<Cell> foreign() {
  return cells([](ibv_qp_type type, const Need* need) {
    std::vector<int> others;
    for (const auto& [bit, name] : attribute_names()) {
      if (need != nullptr && ((need->required | need->optional | ignored_of(type)) & bit) == 0)
        others.push_back(bit);
    }
    return others;
  });
}
std::vector<Cell> ignored() {
  return cells([](ibv_qp_type type, const Need* need) {
    return need == nullptr ? std::vector<int>{} : bits_of(ignored_of(type));
  });
}

class QpTable : public ::testing::TestWithParam<Cell>, protected DeviceObjects {
 protected:
  QpTable() : DeviceObjects(GetParam().device) {}

  /// A queue pair in the cell's first state; `why` it cannot be there otherwise.
  std::string reach() {
    const Cell& cell = GetParam();
    if (std::string why = lacks_type(context(), cell.type); !why.empty()) return why;
    cq_ = cq(16);
    qp_ = qp(cell.type, cq_);
    const ibv_qp_state target = cell.from == IBV_QPS_SQE ? IBV_QPS_RTS : cell.from;
    const int error = lead(qp_, target);
    EXPECT_EQ(error, 0);
    if (cell.from == IBV_QPS_SQE) return fail_a_send();
    EXPECT_EQ(state(qp_), cell.from);
    if (cell.from == IBV_QPS_SQD) {
      EXPECT_TRUE(wait_until([&] { return has_drained(); }));
    }
    need_ = transitions_of(cell.type)[{cell.from, cell.to}];
    // Good values for all that any transition takes.
    attr_ = {};
    attributes_for(cell.type, cell.to, session(), qp_->qp_num, attr_);
    attr_.cur_qp_state = cell.from;
    attr_.alt_ah_attr = attr_.ah_attr;
    attr_.alt_port_num = 1;
    attr_.path_mig_state = IBV_MIG_MIGRATED;
    attr_.en_sqd_async_notify = 0;
    return {};
  }
  int modify(int mask) { return ibv_modify_qp(qp_, &attr_, IBV_QP_STATE | mask); }

  ibv_qp* qp_ = nullptr;
  Need need_;
  ibv_qp_attr attr_{};

 private:
  /// IBTA 10.3.1.5: nothing is to be changed before.
  bool has_drained() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init), 0);
    return attr.sq_draining == 0;
  }
  /// Leads from RTS to SQE: a send with a key that means nothing (IBTA 10.3.1.6).
  std::string fail_a_send() {
    char byte = 0;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(&byte), 1, 0x7fffff00};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (GetParam().type == IBV_QPT_UD) wr.wr.ud = {ah_to_self(), qp_->qp_num, kQkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
    const ibv_wc_status status = poll(cq_, 1)[0].status;
    EXPECT_TRUE(is_status(attr().vendor_id, status, IBV_WC_LOC_PROT_ERR)) << status;
    const ibv_qp_state now = state(qp_);
    if (now == IBV_QPS_ERR) {
      if (std::string why = quirk_of(attr().vendor_id, kNoSendQueueError); !why.empty()) return why;
    }
    EXPECT_EQ(now, IBV_QPS_SQE);
    const Cell& cell = GetParam();
    need_ = transitions_of(cell.type)[{cell.from, cell.to}];
    attr_ = {};
    attributes_for(cell.type, cell.to, session(), qp_->qp_num, attr_);
    attr_.cur_qp_state = cell.from;
    return {};
  }
  ibv_cq* cq_ = nullptr;
};

/// What belongs to path migration, which a device may lack.
constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

class QpStepAllowed : public QpTable {};
TEST_P(QpStepAllowed, TakesJustWhatItNeeds) {
  SKIP_IF(reach());
  EXPECT_EQ(modify(need_.required), 0);
  EXPECT_EQ(state(qp_), GetParam().to);
}
INSTANTIATE_TEST_SUITE_P(, QpStepAllowed, ::testing::ValuesIn(allowed()), cell_name);

class QpStepForbidden : public QpTable {};
TEST_P(QpStepForbidden, IsEinvalAndChangesNothing) {
  SKIP_IF(reach());
  expect_complaints();
  EXPECT_EQ(
      modify(attributes_for(GetParam().type, GetParam().to, session(), 0, attr_) & ~IBV_QP_STATE),
      EINVAL);
  EXPECT_EQ(state(qp_), GetParam().from);
}
INSTANTIATE_TEST_SUITE_P(, QpStepForbidden, ::testing::ValuesIn(forbidden()), cell_name);

class QpStepWithout : public QpTable {};
TEST_P(QpStepWithout, IsEinvalAndChangesNothing) {
  SKIP_IF(reach());
  expect_complaints();
  EXPECT_EQ(modify(need_.required & ~GetParam().attribute), EINVAL);
  EXPECT_EQ(state(qp_), GetParam().from);
  EXPECT_EQ(modify(need_.required), 0) << "the refusal changed something";
}
INSTANTIATE_TEST_SUITE_P(, QpStepWithout, ::testing::ValuesIn(required()), cell_name);

class QpStepWith : public QpTable {};
TEST_P(QpStepWith, IsTaken) {
  SKIP_IF(reach());
  const int error = modify(need_.required | GetParam().attribute);
  if ((GetParam().attribute & kMigration) != 0 &&
      (attr().device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) == 0 && error != 0) {
    expect_complaints();
    EXPECT_TRUE(error == EINVAL || error == EOPNOTSUPP) << error;
    GTEST_SKIP() << "the device has no automatic path migration";
  }
  if (GetParam().attribute == IBV_QP_ALT_PATH && error == EINVAL) {
    SKIP_IF(quirk_of(attr().vendor_id, kNoAlternatePaths));
  }
  if (GetParam().type == IBV_QPT_UC && GetParam().from == IBV_QPS_SQD &&
      GetParam().attribute == IBV_QP_AV && error == EINVAL) {
    SKIP_IF(quirk_of(attr().vendor_id, kNoNewPathOfConnectionsWithoutAnswers));
  }
  EXPECT_EQ(error, 0);
  EXPECT_EQ(state(qp_), GetParam().to);
}
INSTANTIATE_TEST_SUITE_P(, QpStepWith, ::testing::ValuesIn(optional()), cell_name);

class QpStepWithForeign : public QpTable {};
TEST_P(QpStepWithForeign, IsEinvalAndChangesNothing) {
  SKIP_IF(reach());
  expect_complaints();
  const int error = modify(need_.required | GetParam().attribute);
  // A rate that no transition of a device takes is an operation that it lacks.
  const bool lacks = GetParam().attribute == IBV_QP_RATE_LIMIT && error == EOPNOTSUPP;
  EXPECT_TRUE(error == EINVAL || lacks) << error;
  EXPECT_EQ(state(qp_), GetParam().from);
}
INSTANTIATE_TEST_SUITE_P(, QpStepWithForeign, ::testing::ValuesIn(foreign()), cell_name);

class QpStepWithIgnored : public QpTable {
 protected:
  /// What the type has no use for.
  std::array<int, 3> told() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp_, &attr, ignored_of(GetParam().type), &init), 0);
    if (GetParam().type == IBV_QPT_XRC_SEND)
      return {attr.max_dest_rd_atomic, attr.min_rnr_timer, 0};
    return {attr.max_rd_atomic, attr.retry_cnt, attr.rnr_retry};
  }
};
// Linux, drivers/infiniband/core/uverbs_cmd.c: taken out of the mask, so no value is looked at.
TEST_P(QpStepWithIgnored, TakesItWhateverItsValueAndKeepsNothing) {
  SKIP_IF(reach());
  const auto before = told();
  if (GetParam().type == IBV_QPT_XRC_SEND)
    attr_.max_dest_rd_atomic = attr_.min_rnr_timer = 255;
  else
    attr_.max_rd_atomic = attr_.retry_cnt = attr_.rnr_retry = 255;
  EXPECT_EQ(modify(need_.required | GetParam().attribute), 0);
  EXPECT_EQ(state(qp_), GetParam().to);
  if (GetParam().to != IBV_QPS_RESET) {
    EXPECT_EQ(told(), before);
  }
}
INSTANTIATE_TEST_SUITE_P(, QpStepWithIgnored, ::testing::ValuesIn(ignored()), cell_name);

}  // namespace
}  // namespace verbatim::harness
