// SPDX-License-Identifier: BSD-2-Clause
// The plug: a table has no holes, what a provider lacks answers EOPNOTSUPP in each verb's own way
// and says so once, and an opened context has every slot that programs call through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "runtime/verbs/provider.hpp"
#include "tests/support/fake_kernel_provider.hpp"
#include "tests/support/null_provider.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

struct Bare {
  static constexpr const char* kName = "bare";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;
  static int list_devices(DeviceSink&) noexcept { return 0; }
  static int open(Device&, verbatim::Context**) noexcept { return ENODEV; }
  static void close(verbatim::Context&) noexcept {}
};
static_assert(Provider<Bare>);
constinit const ProviderTable kBare = make_provider_table<Bare>();

struct NotAProvider {
  static constexpr const char* kName = "no";
};
static_assert(!Provider<NotAProvider>);

TEST(Plug, ATableHasNoHoles) {
  // A struct of pointers only: read as such, so that a slot that nobody fills is found.
  static_assert(sizeof(ProviderTable) % sizeof(void*) == 0);
  for (const ProviderTable* table : {&kBare, &null::kProvider, &fake::kProvider}) {
    for (std::size_t at = 0; at < sizeof *table; at += sizeof(void*)) {
      void* slot = nullptr;
      std::memcpy(&slot, reinterpret_cast<const char*>(table) + at, sizeof slot);
      EXPECT_NE(slot, nullptr) << table->name << " at byte " << at;
    }
  }
}

TEST(Plug, OwnFunctionsStandInTheTableThemselves) {
  EXPECT_EQ(kBare.list_devices, &Bare::list_devices);
  EXPECT_EQ(kBare.open, &Bare::open);
}

TEST(Plug, SaysOnceWhatAProviderLacks) {
  alignas(Pd) unsigned char nothing[sizeof(Pd)] = {};
  auto& pd = reinterpret_cast<Pd&>(nothing);
  Mw* mw = nullptr;
  const CapturedStderr captured;
  EXPECT_EQ(kBare.alloc_mw(pd, IBV_MW_TYPE_1, &mw), EOPNOTSUPP);
  EXPECT_EQ(kBare.alloc_mw(pd, IBV_MW_TYPE_1, &mw), EOPNOTSUPP);
  EXPECT_EQ(captured.lines(), 1);
  EXPECT_THAT(captured.text(), HasSubstr("bare: alloc_mw"));
  EXPECT_EQ(kBare.dealloc_pd(pd), EOPNOTSUPP);
  EXPECT_EQ(captured.lines(), 2) << "another verb is another line";
}

TEST(Plug, EachMissingHotVerbKeepsItsConvention) {
  const CapturedStderr captured;
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(kBare.hot.post_send(nullptr, &send, &bad_send), EOPNOTSUPP);
  EXPECT_EQ(bad_send, &send);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(kBare.hot.post_recv(nullptr, &receive, &bad_receive), EOPNOTSUPP);
  EXPECT_EQ(bad_receive, &receive);
  bad_receive = nullptr;
  EXPECT_EQ(kBare.hot.post_srq_recv(nullptr, &receive, &bad_receive), EOPNOTSUPP);
  EXPECT_EQ(bad_receive, &receive);
  ibv_wc wc;
  EXPECT_EQ(kBare.hot.poll_cq(nullptr, 1, &wc), -EOPNOTSUPP);
  EXPECT_EQ(kBare.hot.req_notify_cq(nullptr, 0), EOPNOTSUPP);
}

using OpenedSlots = OpenedDevice;

TEST_F(OpenedSlots, AreAllFilledButThePrivateOnes) {
  verbs_context& slots = Context::from(context).extended;
  EXPECT_EQ(slots.sz, sizeof(verbs_context));
  EXPECT_EQ(context->abi_compat, __VERBS_ABI_IS_EXTENDED);
  EXPECT_EQ(verbs_get_ctx(context), &slots);
  for (std::size_t at = 0; at < offsetof(verbs_context, _ABI_placeholder3); at += sizeof(void*)) {
    if (at == offsetof(verbs_context, priv)) continue;
    void* slot = nullptr;
    std::memcpy(&slot, reinterpret_cast<char*>(&slots) + at, sizeof slot);
    EXPECT_NE(slot, nullptr) << "verbs_context at byte " << at;
  }
  for (std::size_t at = 0; at < sizeof(ibv_context_ops); at += sizeof(void*)) {
    void* slot = nullptr;
    std::memcpy(&slot, reinterpret_cast<char*>(&context->ops) + at, sizeof slot);
    EXPECT_NE(slot, nullptr) << "ibv_context.ops at byte " << at;
  }
}

TEST_F(OpenedSlots, TheDataPathIsTheProvidersOwn) {
  EXPECT_EQ(context->ops.post_send, null::kProvider.hot.post_send);
  EXPECT_EQ(context->ops.poll_cq, null::kProvider.hot.poll_cq);
}

TEST_F(OpenedSlots, TheOldTableServesOldPrograms) {
  using OldCreateCq = ibv_cq* (*)(ibv_context*, int, ibv_comp_channel*, int);
  using OldDestroyCq = int (*)(ibv_cq*);
  auto* const create =
      reinterpret_cast<OldCreateCq>(reinterpret_cast<void (*)()>(context->ops._compat_create_cq));
  auto* const destroy =
      reinterpret_cast<OldDestroyCq>(reinterpret_cast<void (*)()>(context->ops._compat_destroy_cq));
  ibv_cq* const cq = create(context, 4, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(destroy(cq), 0);
}

TEST_F(OpenedSlots, WhatNobodyHasAnswersEachInItsWay) {
  const CapturedStderr captured;
  const auto refused_pointer = [](auto* result) {
    const bool as_it_should = result == nullptr && errno == EOPNOTSUPP;
    errno = 0;
    return as_it_should;
  };
  ibv_td_init_attr td{};
  EXPECT_TRUE(refused_pointer(ibv_alloc_td(context, &td)));
  ibv_parent_domain_init_attr parent{};
  parent.pd = pd;
  EXPECT_TRUE(refused_pointer(ibv_alloc_parent_domain(context, &parent)));
  ibv_xrcd_init_attr xrcd{};
  xrcd.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  EXPECT_TRUE(refused_pointer(ibv_open_xrcd(context, &xrcd)));
  EXPECT_TRUE(refused_pointer(ibv_alloc_null_mr(pd)));
  EXPECT_TRUE(refused_pointer(ibv_alloc_mw(pd, IBV_MW_TYPE_1)));
  ibv_alloc_dm_attr dm{};
  EXPECT_TRUE(refused_pointer(ibv_alloc_dm(context, &dm)));
  EXPECT_TRUE(refused_pointer(ibv_reg_dmabuf_mr(pd, 0, 64, 0, 1, 0)));
  ibv_counters_init_attr counters{};
  EXPECT_TRUE(refused_pointer(ibv_create_counters(context, &counters)));
  char queue[64];
  EXPECT_TRUE(refused_pointer(ibv_alloc_user_buf(pd, queue, sizeof queue, -1)));
  ibv_dmah_init_attr dmah{};
  EXPECT_TRUE(refused_pointer(ibv_alloc_dmah(context, &dmah)));
  ibv_comp_cntr_init_attr counter{};
  EXPECT_TRUE(refused_pointer(ibv_create_comp_cntr(context, &counter)));
  ibv_comp_cntr_caps caps{};
  EXPECT_EQ(ibv_query_comp_cntr_caps(context, &caps), EOPNOTSUPP);
  EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0), EOPNOTSUPP);
  ibv_values_ex values{};
  EXPECT_EQ(ibv_query_rt_values_ex(context, &values), EOPNOTSUPP);

  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(qp, &ece), 0);
  EXPECT_EQ(ibv_set_ece(qp, &ece), 0);
  ece.options = 1;
  EXPECT_EQ(ibv_set_ece(qp, &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
  EXPECT_EQ(ibv_resize_cq(cq, 4), EOPNOTSUPP);
  ibv_modify_cq_attr moderate{};
  moderate.attr_mask = IBV_CQ_ATTR_MODERATE;
  EXPECT_EQ(ibv_modify_cq(cq, &moderate), EOPNOTSUPP);
  ibv_qp_rate_limit_attr limit{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(qp, &limit), EOPNOTSUPP);
  ibv_flow_attr flow{};
  EXPECT_TRUE(refused_pointer(ibv_create_flow(qp, &flow)));
  ibv_wq_init_attr wq{};
  wq.wq_type = IBV_WQT_RQ;
  wq.pd = pd;
  wq.cq = cq;
  EXPECT_TRUE(refused_pointer(ibv_create_wq(context, &wq)));
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EOPNOTSUPP);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(OpenedSlots, ExtendedQueuesNeedAProviderThatHasThem) {
  const CapturedStderr captured;
  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 4;
  EXPECT_EQ(ibv_create_cq_ex(context, &cq_attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_cq* const cq = make_cq();
  ibv_qp_init_attr_ex qp_attr{};
  qp_attr.send_cq = qp_attr.recv_cq = cq;
  qp_attr.qp_type = IBV_QPT_RC;
  qp_attr.pd = pd;
  qp_attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  qp_attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  EXPECT_EQ(ibv_create_qp_ex(context, &qp_attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_cq(cq), 0) << "nothing stayed pinned";
}

TEST_F(OpenedSlots, PostedWorkReachesTheProvider) {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_send_wr second{};
  second.wr_id = 2;
  ibv_send_wr first{};
  first.wr_id = 1;
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &first, &bad), 0);
  ibv_wc wc[4];
  ASSERT_EQ(ibv_poll_cq(cq, 4, wc), 2);
  EXPECT_EQ(wc[0].wr_id, 1u);
  EXPECT_EQ(wc[1].wr_id, 2u);
  EXPECT_EQ(wc[1].qp_num, qp->qp_num);
  EXPECT_EQ(ibv_poll_cq(cq, 4, wc), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace verbatim::unit
