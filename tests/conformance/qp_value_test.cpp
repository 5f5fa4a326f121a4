// SPDX-License-Identifier: BSD-2-Clause
//
// Values of attributes (IBTA 11.2.5.2; man ibv_modify_qp): what is out of range is EINVAL and
// changes nothing, the ends of each range are taken.
#include <cerrno>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

/// One value of one attribute on the way into `to`.
struct Value {
  const char* name;
  ibv_qp_type type;
  ibv_qp_state to;
  bool good;
  void (*set)(ibv_qp_attr&, const DeviceObjects&, int& mask);
};

const Value kValues[] = {
    {"PortZero", IBV_QPT_RC, IBV_QPS_INIT, false, [](auto& a, auto&, int&) { a.port_num = 0; }},
    {"PortBeyondTheLast", IBV_QPT_RC, IBV_QPS_INIT, false,
     [](auto& a, auto& d, int&) {
       a.port_num = static_cast<std::uint8_t>(d.attr().phys_port_cnt + 1);
     }},
    {"PkeyIndexBeyondTheTable", IBV_QPT_RC, IBV_QPS_INIT, false,
     [](auto& a, auto& d, int&) { a.pkey_index = d.port().pkey_tbl_len; }},
    {"PkeyIndexAtTheEndOfTheTable", IBV_QPT_RC, IBV_QPS_INIT, true,
     [](auto& a, auto& d, int&) {
       a.pkey_index = static_cast<std::uint16_t>(d.port().pkey_tbl_len - 1);
     }},
    {"NoRightsAtAll", IBV_QPT_RC, IBV_QPS_INIT, true,
     [](auto& a, auto&, int&) { a.qp_access_flags = 0; }},
    {"EveryRemoteRight", IBV_QPT_RC, IBV_QPS_INIT, true,
     [](auto& a, auto&, int&) { a.qp_access_flags = kAllAccess; }},
    // Linux looks at none (uverbs_cmd.c, modify_qp), and programs pass those of their regions.
    {"RightsThatOnlyRegionsHave", IBV_QPT_RC, IBV_QPS_INIT, true,
     [](auto& a, auto&, int&) {
       a.qp_access_flags = kAllAccess | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                           IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
     }},
    {"UnknownRights", IBV_QPT_RC, IBV_QPS_INIT, false,
     [](auto& a, auto&, int&) { a.qp_access_flags = 1u << 14; }},
    {"QkeyOfUsers", IBV_QPT_UD, IBV_QPS_INIT, true,
     [](auto& a, auto&, int&) { a.qkey = 0x7fffffff; }},
    {"MtuZero", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) { a.path_mtu = static_cast<ibv_mtu>(0); }},
    {"MtuThatDoesNotExist", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) { a.path_mtu = static_cast<ibv_mtu>(6); }},
    {"MtuOfThePort", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto& d, int&) { a.path_mtu = d.port().active_mtu; }},
    {"Mtu256", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto&, int&) { a.path_mtu = IBV_MTU_256; }},
    {"DestinationOfMoreThan24Bits", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) { a.dest_qp_num = 0x1000000; }},
    {"PsnOf24Bits", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto&, int&) { a.rq_psn = 0xffffff; }},
    {"RnrTimer0", IBV_QPT_RC, IBV_QPS_RTR, true, [](auto& a, auto&, int&) { a.min_rnr_timer = 0; }},
    {"RnrTimer31", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto&, int&) { a.min_rnr_timer = 31; }},
    {"RnrTimer32", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) { a.min_rnr_timer = 32; }},
    {"ReadsAnsweredAtMost", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto& d, int&) {
       a.max_dest_rd_atomic = static_cast<std::uint8_t>(d.attr().max_qp_rd_atom);
     }},
    {"ReadsAnsweredBeyondThat", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto& d, int&) {
       a.max_dest_rd_atomic = static_cast<std::uint8_t>(d.attr().max_qp_rd_atom + 1);
     }},
    {"ReadsAnsweredNone", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto&, int&) { a.max_dest_rd_atomic = 0; }},
    {"PathByPortZero", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) { a.ah_attr.port_num = 0; }},
    {"PathByPortBeyondTheLast", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto& d, int&) {
       a.ah_attr.port_num = static_cast<std::uint8_t>(d.attr().phys_port_cnt + 1);
     }},
    {"PathFromAGidBeyondTheTable", IBV_QPT_RC, IBV_QPS_RTR, false,
     [](auto& a, auto&, int&) {
       a.ah_attr.is_global = 1;
       a.ah_attr.grh.sgid_index = 255;
     }},
    {"PathByGid", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto& d, int&) {
       a.ah_attr.is_global = 1;  // from the row that paths take here; one may not suit another
       ibv_query_gid(d.context(), 1, a.ah_attr.grh.sgid_index, &a.ah_attr.grh.dgid);
       a.ah_attr.grh.hop_limit = 1;
     }},
    {"PathOfServiceLevel15", IBV_QPT_RC, IBV_QPS_RTR, true,
     [](auto& a, auto&, int&) { a.ah_attr.sl = 15; }},
    {"Timeout0", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.timeout = 0; }},
    {"Timeout31", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.timeout = 31; }},
    {"Timeout32", IBV_QPT_RC, IBV_QPS_RTS, false, [](auto& a, auto&, int&) { a.timeout = 32; }},
    {"Retries0", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.retry_cnt = 0; }},
    {"Retries7", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.retry_cnt = 7; }},
    {"Retries8", IBV_QPT_RC, IBV_QPS_RTS, false, [](auto& a, auto&, int&) { a.retry_cnt = 8; }},
    {"RnrRetries0", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.rnr_retry = 0; }},
    {"RnrRetries7", IBV_QPT_RC, IBV_QPS_RTS, true, [](auto& a, auto&, int&) { a.rnr_retry = 7; }},
    {"RnrRetries8", IBV_QPT_RC, IBV_QPS_RTS, false, [](auto& a, auto&, int&) { a.rnr_retry = 8; }},
    {"ReadsAskedAtMost", IBV_QPT_RC, IBV_QPS_RTS, true,
     [](auto& a, auto& d, int&) {
       a.max_rd_atomic = static_cast<std::uint8_t>(d.attr().max_qp_init_rd_atom);
     }},
    {"ReadsAskedBeyondThat", IBV_QPT_RC, IBV_QPS_RTS, false,
     [](auto& a, auto& d, int&) {
       a.max_rd_atomic = static_cast<std::uint8_t>(d.attr().max_qp_init_rd_atom + 1);
     }},
    {"ReadsAskedNone", IBV_QPT_RC, IBV_QPS_RTS, true,
     [](auto& a, auto&, int&) { a.max_rd_atomic = 0; }},
    {"TheStateThatItIsIn", IBV_QPT_RC, IBV_QPS_RTS, true,
     [](auto& a, auto&, int& mask) {
       a.cur_qp_state = IBV_QPS_RTR;
       mask |= IBV_QP_CUR_STATE;
     }},
    {"AStateThatItIsNotIn", IBV_QPT_RC, IBV_QPS_RTS, false,
     [](auto& a, auto&, int& mask) {
       a.cur_qp_state = IBV_QPS_SQD;
       mask |= IBV_QP_CUR_STATE;
     }},
    {"AStateThatDoesNotExist", IBV_QPT_RC, IBV_QPS_INIT, false,
     [](auto& a, auto&, int&) { a.qp_state = IBV_QPS_UNKNOWN; }},
    {"AMaskOfBitsThatNobodyKnows", IBV_QPT_RC, IBV_QPS_INIT, false,
     [](auto&, auto&, int& mask) { mask |= 1 << 30; }},
};

struct Asked {
  const char* device;
  const Value* value;
};

std::vector<Asked> all_values() {
  std::vector<Asked> all;
  for (const char* device : every_device()) {
    for (const Value& value : kValues) all.push_back({device, &value});
  }
  return all;
}

class QpValue : public ::testing::TestWithParam<Asked>, protected DeviceObjects {
 protected:
  QpValue() : DeviceObjects(GetParam().device) {}
};

TEST_P(QpValue, IsTakenOrRefused) {
  const Value& value = *GetParam().value;
  SKIP_IF(lacks_type(context(), value.type));
  ibv_qp* const tested = qp(value.type, cq());
  const auto before = static_cast<ibv_qp_state>(value.to - 1);
  ASSERT_EQ(lead(tested, before), 0);
  ibv_qp_attr attr{};
  int mask = attributes_for(value.type, value.to, session(), tested->qp_num, attr);
  const ibv_qp_attr sound = attr;
  const int sound_mask = mask;
  value.set(attr, *this, mask);
  if (value.good) {
    EXPECT_EQ(ibv_modify_qp(tested, &attr, mask), 0);
    EXPECT_EQ(state(tested), value.to);
    return;
  }
  expect_complaints();
  EXPECT_EQ(ibv_modify_qp(tested, &attr, mask), EINVAL);
  EXPECT_EQ(state(tested), before);
  attr = sound;
  EXPECT_EQ(ibv_modify_qp(tested, &attr, sound_mask), 0) << "the refusal changed something";
}

INSTANTIATE_TEST_SUITE_P(, QpValue, ::testing::ValuesIn(all_values()),
                         [](const ::testing::TestParamInfo<Asked>& tested) {
                           return std::string(tested.param.device) + '_' + tested.param.value->name;
                         });

}  // namespace
}  // namespace verbatim::harness
