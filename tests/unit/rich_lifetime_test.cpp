// SPDX-License-Identifier: BSD-2-Clause
// The dependency rules of the objects that no witness has, through the C functions, over a provider
// that makes handles and nothing else. Each test ends with as many handles as it began with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/forked_child.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"
#include "tests/unit/rich_provider.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

class RichLifetime : public OpenedDevice {
 protected:
  RichLifetime() : OpenedDevice("rich0") {}
  void TearDown() override {
    OpenedDevice::TearDown();
    EXPECT_EQ(rich_handles(), 0);
  }
  template <class Call>
  static void expect_busy(const char* verb, Call&& destroy) {
    const CapturedStderr captured;
    EXPECT_EQ(destroy(), EBUSY) << verb;
    EXPECT_THAT(captured.text(), HasSubstr(verb));
  }
  ibv_xrcd* open_xrcd() {
    ibv_xrcd_init_attr attr{};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    return ibv_open_xrcd(context, &attr);
  }
  Providers only_{&kRich};
};

TEST_F(RichLifetime, AParentDomainPinsItsDomains) {
  ibv_td_init_attr td_attr{};
  ibv_td* const td = ibv_alloc_td(context, &td_attr);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(context, &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(Pd::from(parent).original, &Pd::from(pd));
  EXPECT_EQ(Pd::from(parent).thread_domain, &Td::from(td));
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  expect_busy("ibv_dealloc_td", [&] { return ibv_dealloc_td(td); });

  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 4;
  cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_attr.parent_domain = parent;
  ibv_cq_ex* const cq = ibv_create_cq_ex(context, &cq_attr);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_start_poll(cq, nullptr), ENOENT);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(parent); });
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

/// One of each, as far as they depend on each other; and how each is destroyed.
TEST_F(RichLifetime, WhateverIsLeftEndsWithItsContextInTheOrderOfItsDependence) {
  ibv_td_init_attr td_attr{};
  ibv_td* const td = ibv_alloc_td(context, &td_attr);
  ibv_parent_domain_init_attr parent_attr{};
  parent_attr.pd = pd;
  parent_attr.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(context, &parent_attr);
  ibv_xrcd* const xrcd = open_xrcd();
  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 4;
  cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_attr.parent_domain = parent;
  ibv_cq* const cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &cq_attr));
  ibv_alloc_dm_attr dm_attr{};
  dm_attr.length = 64;
  ibv_dm* const dm = ibv_alloc_dm(context, &dm_attr);
  ibv_mr* const mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
  ibv_mw* const mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
  ibv_wq_init_attr wq_attr{};
  wq_attr.wq_type = IBV_WQT_RQ;
  wq_attr.pd = pd;
  wq_attr.cq = cq;
  ibv_wq* const wq = ibv_create_wq(context, &wq_attr);
  ibv_wq* queues[] = {wq};
  ibv_rwq_ind_table_init_attr table_attr{};
  table_attr.ind_tbl = queues;
  ibv_rwq_ind_table* const table = ibv_create_rwq_ind_table(context, &table_attr);
  ibv_qp_init_attr_ex qp_attr{};
  qp_attr.qp_type = IBV_QPT_RAW_PACKET;
  qp_attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
  qp_attr.pd = pd;
  qp_attr.rwq_ind_tbl = table;
  ibv_qp* const qp = ibv_create_qp_ex(context, &qp_attr);
  ibv_flow_attr flow_attr{};
  ibv_flow* const flow = ibv_create_flow(qp, &flow_attr);
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(ibv_close_device(context), 0);
  EXPECT_EQ(rich_handles(), 0) << "the provider has ended each";
  context = nullptr;

  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
}

TEST_F(RichLifetime, AForkedChildThatClosesItsParentsContextEndsNothingOfIt) {
  // The two have one file in the kernel: what the child ended there, the parent would miss.
  ibv_cq* const cq = make_cq();
  const int handles = rich_handles();
  EXPECT_EQ(harness::run_in_child([&] {
              if (ibv_close_device(context) != 0) return 1;
              if (rich_handles() != handles - 1) return 2;  // the context
              return ibv_destroy_cq(cq) == 0 && rich_handles() == handles - 1 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(RichLifetime, AnXrcDomainOutlivesItsQueues) {
  ibv_xrcd* const xrcd = open_xrcd();
  ASSERT_NE(xrcd, nullptr);
  ibv_cq* const cq = make_cq();
  ibv_srq_init_attr_ex srq_attr{};
  srq_attr.attr.max_wr = 4;
  srq_attr.comp_mask =
      IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  srq_attr.srq_type = IBV_SRQT_XRC;
  srq_attr.pd = pd;
  srq_attr.xrcd = xrcd;
  srq_attr.cq = cq;
  ibv_srq* const srq = ibv_create_srq_ex(context, &srq_attr);
  ASSERT_NE(srq, nullptr);
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
  EXPECT_EQ(number, 99u);
  expect_busy("ibv_close_xrcd", [&] { return ibv_close_xrcd(xrcd); });
  expect_busy("ibv_destroy_cq", [&] { return ibv_destroy_cq(cq); });
  EXPECT_EQ(ibv_destroy_srq(srq), 0);

  ibv_qp_init_attr_ex qp_attr{};
  qp_attr.qp_type = IBV_QPT_XRC_RECV;
  qp_attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  qp_attr.xrcd = xrcd;
  ibv_qp* const target = ibv_create_qp_ex(context, &qp_attr);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->pd, nullptr);
  ibv_qp_open_attr open_attr{};
  open_attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  open_attr.qp_num = 12;
  open_attr.xrcd = xrcd;
  open_attr.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* const shared = ibv_open_qp(context, &open_attr);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->qp_num, 12u);
  EXPECT_EQ(ibv_destroy_qp(target), 0);
  expect_busy("ibv_close_xrcd", [&] { return ibv_close_xrcd(xrcd); });
  EXPECT_EQ(ibv_destroy_qp(shared), 0);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(RichLifetime, DeviceMemoryOutlivesItsRegions) {
  ibv_alloc_dm_attr attr{};
  attr.length = 64;
  ibv_dm* const dm = ibv_alloc_dm(context, &attr);
  ASSERT_NE(dm, nullptr);
  ibv_mr* const mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(mr, nullptr);
  expect_busy("ibv_free_dm", [&] { return ibv_free_dm(dm); });
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(RichLifetime, ABoundRegionIsNotDeregistered) {
  char memory[64];
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_MW_BIND);
  ibv_mw* const mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  EXPECT_EQ(mw->type, IBV_MW_TYPE_1);
  EXPECT_EQ(mw->pd, pd);
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_mw_bind bind{};
  bind.bind_info.mr = mr;
  EXPECT_EQ(ibv_bind_mw(qp, mw, &bind), 0);
  EXPECT_EQ(mw->rkey, 0x42u);
  expect_busy("ibv_dereg_mr", [&] { return ibv_dereg_mr(mr); });
  Mr::from(mr).uses.fetch_sub(1);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(RichLifetime, WorkQueuesOutliveTheirTables) {
  ibv_cq* const cq = make_cq();
  ibv_wq_init_attr wq_attr{};
  wq_attr.wq_type = IBV_WQT_RQ;
  wq_attr.pd = pd;
  wq_attr.cq = cq;
  ibv_wq* const one = ibv_create_wq(context, &wq_attr);
  ibv_wq* const two = ibv_create_wq(context, &wq_attr);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  expect_busy("ibv_destroy_cq", [&] { return ibv_destroy_cq(cq); });

  ibv_wq* queues[] = {one, two};
  ibv_rwq_ind_table_init_attr table_attr{};
  table_attr.log_ind_tbl_size = 1;
  table_attr.ind_tbl = queues;
  ibv_rwq_ind_table* const table = ibv_create_rwq_ind_table(context, &table_attr);
  ASSERT_NE(table, nullptr);
  expect_busy("ibv_destroy_wq", [&] { return ibv_destroy_wq(two); });

  ibv_qp_init_attr_ex qp_attr{};
  qp_attr.qp_type = IBV_QPT_RAW_PACKET;
  qp_attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
  qp_attr.pd = pd;
  qp_attr.rwq_ind_tbl = table;
  ibv_qp* const qp = ibv_create_qp_ex(context, &qp_attr);
  ASSERT_NE(qp, nullptr) << "such a QP needs no queues of its own";
  expect_busy("ibv_destroy_rwq_ind_table", [&] { return ibv_destroy_rwq_ind_table(table); });
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_wq(one), 0);
  EXPECT_EQ(ibv_destroy_wq(two), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(RichLifetime, AQpOutlivesItsFlows) {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq, IBV_QPT_RAW_PACKET);
  ibv_flow_attr attr{};
  ibv_flow* const flow = ibv_create_flow(qp, &attr);
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(flow->context, context);
  expect_busy("ibv_destroy_qp", [&] { return ibv_destroy_qp(qp); });
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(RichLifetime, CountersHoldTheirContext) {
  ibv_counters_init_attr attr{};
  ibv_counters* const counters = ibv_create_counters(context, &attr);
  ASSERT_NE(counters, nullptr);
  EXPECT_EQ(counters->context, context);
  EXPECT_EQ(Context::from(context).uses.load(), 2u) << "the domain and the counters";
  EXPECT_EQ(ibv_destroy_counters(counters), 0);
}

TEST_F(RichLifetime, BuffersAreRegisteredWithinTheirBounds) {
  ibv_buf* buf = nullptr;
  auto* const memory = static_cast<char*>(ibv_alloc_buf(pd, 64, &buf));
  ASSERT_NE(memory, nullptr);
  expect_busy("ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd); });
  ibv_mr* const mr = ibv_reg_buf_mr(pd, buf, memory + 32, 32, 0);
  ASSERT_NE(mr, nullptr);
  {
    const CapturedStderr captured;
    EXPECT_EQ(ibv_reg_buf_mr(pd, buf, memory + 32, 33, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_reg_buf_mr(pd, buf, memory - 1, 1, 0), nullptr);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ibv_free_buf(buf);
}

TEST_F(RichLifetime, BuffersAreRegisteredByAttributesToo) {
  ibv_buf* buf = nullptr;
  auto* const memory = static_cast<char*>(ibv_alloc_buf(pd, 64, &buf));
  ASSERT_NE(memory, nullptr);
  ibv_mr_init_attr attr{};
  attr.length = 32;
  attr.addr = memory + 32;
  attr.buf = buf;
  attr.comp_mask = IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR;
  ibv_mr* const mr = ibv_reg_mr_ex(pd, &attr);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory + 32);
  const CapturedStderr captured;
  const auto error_of = [&](std::uint64_t mask) {
    attr.comp_mask = mask;
    errno = 0;
    EXPECT_EQ(ibv_reg_mr_ex(pd, &attr), nullptr) << mask;
    return errno;
  };
  EXPECT_EQ(error_of(IBV_REG_MR_MASK_BUF), EINVAL) << "where in it?";
  EXPECT_EQ(error_of(IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD), EINVAL);
  attr.length = 33;
  EXPECT_EQ(error_of(IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR), EINVAL) << "past its end";
  errno = 0;
  EXPECT_EQ(ibv_export_buf_dmabuf_fd(buf), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ibv_free_buf(buf);
}

TEST_F(RichLifetime, ARegionIsDescribedByItsMask) {
  char memory[64];
  ibv_mr_init_attr attr{};
  attr.length = sizeof memory;
  attr.addr = memory;
  attr.iova = 0x1000;
  attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA;
  ibv_mr* const moved = ibv_reg_mr_ex(pd, &attr);
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(moved->lkey, 0x1000u);
  attr.comp_mask = IBV_REG_MR_MASK_ADDR;
  ibv_mr* const in_place = ibv_reg_mr_ex(pd, &attr);
  ASSERT_NE(in_place, nullptr);
  EXPECT_EQ(in_place->lkey, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(memory)));
  attr.access = IBV_ACCESS_ZERO_BASED;
  ibv_mr* const from_zero = ibv_reg_mr_ex(pd, &attr);
  ASSERT_NE(from_zero, nullptr);
  EXPECT_EQ(from_zero->lkey, 0u);
  {
    const CapturedStderr captured;
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD;
    EXPECT_EQ(ibv_reg_mr_ex(pd, &attr), nullptr) << "an address or a descriptor, not both";
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | 1ull << 40;
    EXPECT_EQ(ibv_reg_mr_ex(pd, &attr), nullptr);
    attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH;
    EXPECT_EQ(ibv_reg_mr_ex(pd, &attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(ibv_dereg_mr(moved), 0);
  EXPECT_EQ(ibv_dereg_mr(in_place), 0);
  EXPECT_EQ(ibv_dereg_mr(from_zero), 0);
}

TEST_F(RichLifetime, AQpMadeForWorkCallsIsOneOfTheExtendedKind) {
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* const extended = ibv_create_qp_ex(context, &attr);
  ASSERT_NE(extended, nullptr);
  EXPECT_EQ(&ibv_qp_to_qp_ex(extended)->qp_base, extended);
  ibv_qp* const plain = make_qp(cq);
  EXPECT_EQ(ibv_qp_to_qp_ex(plain), nullptr);
  EXPECT_EQ(ibv_destroy_qp(extended), 0);
  EXPECT_EQ(ibv_destroy_qp(plain), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace verbatim::unit
