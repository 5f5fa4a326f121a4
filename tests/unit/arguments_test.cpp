// SPDX-License-Identifier: BSD-2-Clause
// What the runtime refuses before a provider is asked, with the errno and the words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <climits>

#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

class Arguments : public OpenedDevice {
 protected:
  /// A creation that must fail with `code`, saying `why`.
  template <class Call>
  void expect_refused(int code, const char* why, Call&& create) {
    const CapturedStderr captured;
    errno = 0;
    EXPECT_EQ(create(), nullptr) << why;
    EXPECT_EQ(errno, code) << why;
    EXPECT_THAT(captured.text(), HasSubstr(why));
  }
  char memory[4096];
};

TEST_F(Arguments, RemoteWritersNeedLocalWrite) {
  for (const int rights : {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC},
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}) {
    expect_refused(EINVAL, "LOCAL_WRITE",
                   [&] { return ibv_reg_mr(pd, memory, sizeof memory, rights); });
  }
  for (const int rights :
       {0, int{IBV_ACCESS_REMOTE_READ}, int{IBV_ACCESS_LOCAL_WRITE},
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC}) {
    ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, rights);
    ASSERT_NE(mr, nullptr) << rights;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
}

TEST_F(Arguments, UnknownAccessIsRefusedButTheOptionalRangeIsNot) {
  expect_refused(EINVAL, "unknown access",
                 [&] { return ibv_reg_mr(pd, memory, sizeof memory, 1 << 14); });
  ibv_mr* const mr =
      ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Arguments, ARegionIsARangeOfTheAddressSpace) {
  expect_refused(EINVAL, "0 bytes", [&] { return ibv_reg_mr(pd, memory, 0, 0); });
  expect_refused(EINVAL, "address space", [&] { return ibv_reg_mr(pd, memory, SIZE_MAX - 16, 0); });
  expect_refused(EINVAL, "iova",
                 [&] { return ibv_reg_mr_iova(pd, memory, sizeof memory, UINT64_MAX - 16, 0); });
}

TEST_F(Arguments, AFailedReregistrationLeavesTheRegion) {
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  const CapturedStderr captured;
  errno = 0;
  EXPECT_EQ(ibv_rereg_mr(mr, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_rereg_mr(mr, 8, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
      IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(mr->addr, memory);
  EXPECT_EQ(mr->length, sizeof memory);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory + 8, 16, 0), 0);
  EXPECT_EQ(mr->addr, memory + 8);
  EXPECT_EQ(mr->length, 16u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Arguments, ACqHoldsSomethingAndHasAVector) {
  for (const int cqe : {0, -1, INT_MIN}) {
    expect_refused(EINVAL, "cqe", [&] { return ibv_create_cq(context, cqe, nullptr, nullptr, 0); });
  }
  for (const int vector : {1, -1}) {
    expect_refused(EINVAL, "comp_vector",
                   [&] { return ibv_create_cq(context, 1, nullptr, nullptr, vector); });
  }
  ibv_cq* const cq = make_cq();
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resize_cq(cq, 0), EINVAL);
  ibv_modify_cq_attr attr{};
  attr.attr_mask = 1 << 5;
  EXPECT_EQ(ibv_modify_cq(cq, &attr), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Arguments, ACqOfTheExtendedKindHasKnownFlagsOnly) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 1;
  attr.comp_mask = 1 << 9;
  expect_refused(EINVAL, "comp_mask", [&] { return ibv_create_cq_ex(context, &attr); });
  attr.comp_mask = 0;
  attr.wc_flags = 1ull << 40;
  expect_refused(EOPNOTSUPP, "wc_flags", [&] { return ibv_create_cq_ex(context, &attr); });
  attr.wc_flags = 0;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  expect_refused(EINVAL, "parent domain", [&] { return ibv_create_cq_ex(context, &attr); });
}

TEST_F(Arguments, ObjectsOfAnotherContextDoNotMix) {
  ibv_context* const other = open_by_name("null0");
  ASSERT_NE(other, nullptr);
  ibv_comp_channel* const foreign_channel = ibv_create_comp_channel(other);
  expect_refused(EINVAL, "another context",
                 [&] { return ibv_create_cq(context, 1, nullptr, foreign_channel, 0); });
  ibv_cq* const foreign_cq = ibv_create_cq(other, 1, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = foreign_cq;
  init.qp_type = IBV_QPT_RC;
  expect_refused(EINVAL, "different contexts", [&] { return ibv_create_qp(pd, &init); });
  EXPECT_EQ(ibv_destroy_cq(foreign_cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(foreign_channel), 0);
  EXPECT_EQ(ibv_close_device(other), 0);
}

TEST_F(Arguments, AQpNeedsItsParts) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.recv_cq = cq;
  expect_refused(EINVAL, "send_cq", [&] { return ibv_create_qp(pd, &init); });
  init.send_cq = cq;
  init.recv_cq = nullptr;
  expect_refused(EINVAL, "recv_cq", [&] { return ibv_create_qp(pd, &init); });
  init.recv_cq = cq;
  init.qp_type = static_cast<ibv_qp_type>(0);
  expect_refused(EINVAL, "qp_type", [&] { return ibv_create_qp(pd, &init); });

  ibv_qp_init_attr_ex extended{};
  extended.send_cq = extended.recv_cq = cq;
  extended.qp_type = IBV_QPT_RC;
  expect_refused(EINVAL, "protection domain", [&] { return ibv_create_qp_ex(context, &extended); });
  extended.pd = pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 20;
  expect_refused(EINVAL, "comp_mask", [&] { return ibv_create_qp_ex(context, &extended); });
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  extended.create_flags = 1u << 30;
  expect_refused(EOPNOTSUPP, "create_flags", [&] { return ibv_create_qp_ex(context, &extended); });
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  extended.create_flags = 0;
  extended.send_ops_flags = 1ull << 40;
  expect_refused(EOPNOTSUPP, "send_ops", [&] { return ibv_create_qp_ex(context, &extended); });
  extended.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  extended.qp_type = IBV_QPT_XRC_RECV;
  expect_refused(EINVAL, "XRC domain", [&] { return ibv_create_qp_ex(context, &extended); });
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Arguments, MembersThatTheMaskLeavesOutAreNotRead) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr_ex extended{};
  extended.send_cq = extended.recv_cq = cq;
  extended.qp_type = IBV_QPT_RC;
  extended.pd = pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  extended.send_ops_flags = ~0ull;
  extended.xrcd = reinterpret_cast<ibv_xrcd*>(8);
  extended.rwq_ind_tbl = reinterpret_cast<ibv_rwq_ind_table*>(8);
  ibv_qp* const qp = ibv_create_qp_ex(context, &extended);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr) << "not made for ibv_wr_*";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Arguments, AnSrqHoldsSomething) {
  ibv_srq_init_attr init{};
  expect_refused(EINVAL, "max_wr", [&] { return ibv_create_srq(pd, &init); });
  ibv_srq_init_attr_ex extended{};
  extended.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  extended.pd = pd;
  extended.attr.max_wr = 1;
  extended.srq_type = IBV_SRQT_XRC;
  expect_refused(EINVAL, "XRC", [&] { return ibv_create_srq_ex(context, &extended); });
  extended.srq_type = IBV_SRQT_TM;
  expect_refused(EINVAL, "tag-matching", [&] { return ibv_create_srq_ex(context, &extended); });
  extended.srq_type = static_cast<ibv_srq_type>(3);
  expect_refused(EINVAL, "srq_type", [&] { return ibv_create_srq_ex(context, &extended); });
}

TEST_F(Arguments, PortsStartAtOneAndEnd) {
  const CapturedStderr captured;
  ibv_port_attr port;
  EXPECT_EQ(ibv_query_port(context, 0, &port), EINVAL);
  EXPECT_EQ(ibv_query_port(context, 2, &port), EINVAL);
  EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
  ibv_gid gid;
  __be16 pkey;
  EXPECT_EQ(ibv_query_gid(context, 2, 0, &gid), -1);
  EXPECT_EQ(ibv_query_pkey(context, 2, 0, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context, 2, 0xffff), -1);
  ibv_ah_attr path{};
  EXPECT_EQ(ibv_create_ah(pd, &path), nullptr);
  EXPECT_EQ(errno, EINVAL);
  path.port_num = 1;
  path.sl = 16;
  EXPECT_EQ(ibv_create_ah(pd, &path), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Arguments, OnlyDatagramQpsJoinGroups) {
  ibv_cq* const cq = make_cq();
  ibv_qp* const rc = make_qp(cq, IBV_QPT_RC);
  ibv_qp* const ud = make_qp(cq, IBV_QPT_UD);
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  const CapturedStderr captured;
  EXPECT_EQ(ibv_attach_mcast(rc, &gid, 0), EINVAL);
  EXPECT_EQ(ibv_detach_mcast(rc, &gid, 0), EINVAL);
  gid.raw[0] = 0xfe;
  EXPECT_EQ(ibv_attach_mcast(ud, &gid, 0), EINVAL);
  // ::ffff:239.1.2.3 is a group of IPv4, ::ffff:10.1.2.3 is not, nor are their compatible forms.
  gid = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3}};
  EXPECT_EQ(ibv_attach_mcast(ud, &gid, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(ud, &gid, 0), 0);
  gid.raw[12] = 10;
  EXPECT_EQ(ibv_attach_mcast(ud, &gid, 0), EINVAL);
  gid.raw[10] = gid.raw[11] = 0;
  gid.raw[12] = 239;
  EXPECT_EQ(ibv_attach_mcast(ud, &gid, 0), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(rc), 0);
  EXPECT_EQ(ibv_destroy_qp(ud), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace verbatim::unit
