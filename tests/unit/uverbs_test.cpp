// SPDX-License-Identifier: BSD-2-Clause
// The objects of kernel devices, over a kernel that is newer or older. Spec: the headers
// <rdma/*.h>, and what providers/uverbs promises in its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "abi/kernel/placement.hpp"
#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/node.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/verbs/provider.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/over_kernel.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_FOR_EACH_KERNEL(EachKernel);

TEST_P(EachKernel, IsSpokenToInTheNewestWayThatItHas) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
  const Age age = GetParam();
  EXPECT_EQ(kernel.methods_called != 0, age == Age::kMethods);
  EXPECT_EQ(kernel.invokes != 0, age != Age::kWrite);
  EXPECT_EQ(kernel.writes != 0, age == Age::kWrite);
}

TEST_P(EachKernel, TellsWhatTheDeviceIs) {
  EXPECT_EQ(context->extended.context.num_comp_vectors, 3);
  ibv_device_attr_ex attr{};
  ASSERT_EQ(uverbs::query_device(*context, attr), 0);
  EXPECT_EQ(attr.orig_attr.max_qp, 99);
  EXPECT_EQ(attr.orig_attr.max_pkeys, 0xffff);
  EXPECT_EQ(attr.phys_port_cnt_ex, 1u);
  EXPECT_EQ(attr.max_dm_size, 0u) << "beyond the answer's length";
  ibv_port_attr port{};
  ASSERT_EQ(uverbs::query_port(*context, 1, port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.gid_tbl_len, 16);
  EXPECT_EQ(port.port_cap_flags2, GetParam() == Age::kMethods ? 7 : 0);
}

TEST_P(EachKernel, MakesAndEndsEveryKindOfObject) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  verbatim::Mr* mr = nullptr;
  char memory[64];
  ASSERT_EQ(uverbs::reg_mr(*pd, memory, sizeof memory, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  mr->plain.context = context->handle();
  EXPECT_EQ(mr->plain.lkey, 0x1234u);
  EXPECT_EQ(mr->plain.rkey, 0x5678u);
  Mw* mw = nullptr;
  ASSERT_EQ(uverbs::alloc_mw(*pd, IBV_MW_TYPE_2, &mw), 0);
  mw->plain.context = context->handle();
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq, channel), 0);
  EXPECT_EQ(cq.plain.cqe, 15) << "what the kernel made of it";
  EXPECT_EQ(uverbs::req_notify_cq(cq, true), 0);
  uverbs::Qp qp;
  std::array<unsigned char, 16> reply{};
  kernel.set_driver_reply({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  ASSERT_EQ(make_qp(qp, *pd, cq, kernel::DriverData::reply(reply)), 0);
  EXPECT_EQ(reply[0], 1);
  EXPECT_EQ(reply[15], 16);
  EXPECT_EQ(qp.plain.qp_num, 0x11u);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(uverbs::modify_qp(qp, attr, IBV_QP_STATE), 0);
  EXPECT_EQ(qp.plain.state, IBV_QPS_INIT);
  ibv_qp_init_attr init{};
  EXPECT_EQ(uverbs::query_qp(qp, attr, IBV_QP_STATE | IBV_QP_QKEY, init), 0);
  EXPECT_EQ(attr.qkey, 0x77u);
  EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS) << "of which the driver says nothing";
  EXPECT_EQ(qp.plain.state, IBV_QPS_RTS);
  uverbs::Srq srq;
  ibv_srq_init_attr_ex srq_attr{};
  srq_attr.pd = &pd->plain;
  srq_attr.attr = {20, 2, 0};
  ASSERT_EQ(uverbs::create_srq(*context, srq_attr, srq, {}), 0);
  EXPECT_EQ(srq.attributes.max_wr, 31u);
  ibv_srq_attr queried{};
  EXPECT_EQ(uverbs::query_srq(srq, queried), 0);
  EXPECT_EQ(queried.srq_limit, 4u);
  Ah ah;
  ASSERT_EQ(uverbs::create_ah(*pd, {}, ah, {}), 0);
  EXPECT_EQ(kernel.living(), 7u);

  EXPECT_EQ(uverbs::destroy_ah(ah), 0);
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_srq(srq), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
  EXPECT_EQ(uverbs::dealloc_mw(*mw), 0);
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
  EXPECT_EQ(kernel.living(), 0u);
}

// rxe of Linux 6.12.
TEST_P(EachKernel, ARegionThatCannotBeMadeWritableIsReplacedByOneThatIs) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  alignas(64) char memory[64];
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(uverbs::reg_mr(*pd, memory, sizeof memory, 0x1000, 0, &mr), 0);
  mr->plain.context = context->handle();
  mr->plain.addr = memory;
  mr->plain.length = sizeof memory;
  const auto gets = [&](unsigned access) {
    return uverbs::rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access);
  };
  ASSERT_EQ(gets(IBV_ACCESS_REMOTE_READ), 0);
  const std::uint32_t first = mr->plain.handle;
  const std::size_t living = kernel.living();
  kernel.pins_for_reading = true;
  uverbs::RegionFacts facts;

  // The first one stays when it cannot be replaced.
  kernel.undying = first;
  EXPECT_EQ(gets(IBV_ACCESS_LOCAL_WRITE), EBUSY);
  EXPECT_EQ(mr->plain.handle, first);
  EXPECT_EQ(kernel.living(), living);
  EXPECT_FALSE(context->regions.find(0x1234, facts));
  EXPECT_TRUE(context->regions.find(0x4321, facts));
  kernel.undying = ~0u;
  kernel.refused_access = IBV_ACCESS_LOCAL_WRITE;
  EXPECT_EQ(gets(IBV_ACCESS_LOCAL_WRITE), EINVAL);
  EXPECT_EQ(mr->plain.handle, first);
  EXPECT_TRUE(context->regions.find(0x4321, facts));
  kernel.refused_access = 0;

  EXPECT_EQ(gets(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), 0);
  EXPECT_NE(mr->plain.handle, first);
  EXPECT_EQ(mr->plain.lkey, 0x1234u);
  EXPECT_EQ(mr->plain.rkey, 0x5678u);
  EXPECT_EQ(kernel.living(), living);
  EXPECT_FALSE(context->regions.find(0x4321, facts)) << "the old key is nobody's";
  ASSERT_TRUE(context->regions.find(0x1234, facts));
  EXPECT_EQ(facts.access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(facts.pd, pd->plain.handle);
  EXPECT_EQ(facts.first, 0x1000u);
  EXPECT_EQ(facts.bytes, sizeof memory);

  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
  EXPECT_EQ(kernel.living(), 0u);
}

TEST_P(EachKernel, ChangesARegionInWhatWasAskedForAndKeepsTheRest) {
  Pd* pd = nullptr;
  Pd* other = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  ASSERT_EQ(make_pd(&other), 0);
  alignas(64) char memory[256];
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(uverbs::reg_mr(*pd, memory, 64, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  mr->plain.context = context->handle();
  uverbs::RegionFacts facts;
  ASSERT_TRUE(context->regions.find(0x1234, facts));
  const std::uint64_t at_first = facts.first;

  ASSERT_EQ(uverbs::rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
            0);
  EXPECT_EQ(kernel.changed.handle, mr->plain.handle);
  EXPECT_EQ(kernel.changed.flags, unsigned{IBV_REREG_MR_CHANGE_ACCESS});
  EXPECT_EQ(kernel.changed.access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(mr->plain.lkey, 0x4321u) << "the kernel may give other keys";
  EXPECT_EQ(mr->plain.rkey, 0x8765u);
  EXPECT_FALSE(context->regions.find(0x1234, facts)) << "the old key is nobody's";
  ASSERT_TRUE(context->regions.find(0x4321, facts));
  EXPECT_EQ(facts.access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(facts.pd, pd->plain.handle);
  EXPECT_EQ(facts.first, at_first);
  EXPECT_EQ(facts.bytes, 64u);

  constexpr int kMoves = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD;
  ASSERT_EQ(uverbs::rereg_mr(*mr, kMoves, other, memory + 64, 128, 0), 0);
  EXPECT_EQ(kernel.changed.flags, unsigned{kMoves});
  EXPECT_EQ(kernel.changed.start, base + 64);
  EXPECT_EQ(kernel.changed.address, base + 64);
  EXPECT_EQ(kernel.changed.length, 128u);
  EXPECT_EQ(kernel.changed.pd, other->plain.handle);
  ASSERT_TRUE(context->regions.find(0x4321, facts));
  EXPECT_EQ(facts.first, base + 64);
  EXPECT_EQ(facts.bytes, 128u);
  EXPECT_EQ(facts.pd, other->plain.handle);
  EXPECT_EQ(facts.access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});

  // Refused: all of it stays.
  kernel.refusal = EINVAL;
  EXPECT_EQ(uverbs::rereg_mr(*mr, kMoves, pd, memory, 8, 0), EINVAL);
  kernel.refusal = ENOSYS;
  EXPECT_EQ(uverbs::rereg_mr(*mr, kMoves, pd, memory, 8, 0), EOPNOTSUPP);
  kernel.refusal = 0;
  ASSERT_TRUE(context->regions.find(0x4321, facts));
  EXPECT_EQ(facts.first, base + 64);
  EXPECT_EQ(facts.pd, other->plain.handle);

  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_FALSE(context->regions.find(0x4321, facts));
  EXPECT_EQ(uverbs::dealloc_pd(*other), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

/// What limits are asked through.
constexpr ProviderTable limits_alone() {
  ProviderTable table{};
  table.query_device = uverbs::query_device;
  table.query_port = uverbs::query_port;
  return table;
}
constinit const ProviderTable kKernelTable = limits_alone();

TEST_P(EachKernel, ValuesThatCannotBeAreNotAskedFor) {
  context->table = &kKernelTable;
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  const auto refused = [&](int mask, auto set, const char* says) {
    ibv_qp_attr attr{};
    set(attr);
    const CapturedStderr said;
    const unsigned invoked = kernel.invokes + kernel.writes;
    EXPECT_EQ(uverbs::modify_qp(qp, attr, mask), EINVAL) << says;
    EXPECT_THAT(said.text(), HasSubstr(says));
    return kernel.invokes + kernel.writes - invoked;
  };
  EXPECT_EQ(refused(
                IBV_QP_RETRY_CNT, [](auto& a) { a.retry_cnt = 8; }, "IBV_QP_RETRY_CNT is 8"),
            0u);
  EXPECT_EQ(refused(
                IBV_QP_RNR_RETRY, [](auto& a) { a.rnr_retry = 8; }, "IBV_QP_RNR_RETRY is 8"),
            0u);
  EXPECT_EQ(refused(
                IBV_QP_DEST_QPN, [](auto& a) { a.dest_qp_num = 1 << 24; }, "IBV_QP_DEST_QPN"),
            0u);
  refused(
      IBV_QP_PATH_MTU, [](auto& a) { a.path_mtu = ibv_mtu(0); }, "IBV_QP_PATH_MTU is 0");
  refused(
      IBV_QP_MAX_QP_RD_ATOMIC, [](auto& a) { a.max_rd_atomic = 255; }, "from 0 to 0");
  // A row that is in the table and empty: the kernel's word for it is none of ibv_modify_qp's.
  ibv_qp_attr attr{};
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = 15;
  const CapturedStderr said;
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  kernel.refusal = ENODATA;
  EXPECT_EQ(uverbs::modify_qp(qp, state, IBV_QP_STATE), EINVAL);
  EXPECT_THAT(said.text(), HasSubstr("GID table is empty"));
  kernel.refusal = 0;
  EXPECT_EQ(uverbs::modify_qp(qp, attr, IBV_QP_AV), 0) << "within the table";
  attr.ah_attr.grh.sgid_index = 16;
  EXPECT_EQ(uverbs::modify_qp(qp, attr, IBV_QP_AV), EINVAL);
  EXPECT_THAT(said.text(), HasSubstr("sgid_index"));
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

// Of a queue pair only what it allows its peer means anything, and rxe of Linux 6.12 refuses others.
TEST_P(EachKernel, RightsThatOnlyRegionsHaveAreNotAskedForOfQueuePairs) {
  context->table = &kKernelTable;
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_LOCAL_WRITE |
                         IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
  EXPECT_EQ(uverbs::modify_qp(qp, attr, IBV_QP_ACCESS_FLAGS), 0);
  EXPECT_EQ(kernel.qp_access, unsigned{IBV_ACCESS_REMOTE_READ | IBV_ACCESS_FLUSH_GLOBAL});
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

TEST_P(EachKernel, PagingOnDemandThatTheDeviceLacksIsNoWrongArgument) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  verbatim::Mr* mr = nullptr;
  char memory[64];
  kernel.refused_access = IBV_ACCESS_ON_DEMAND;
  EXPECT_EQ(uverbs::reg_mr(*pd, memory, sizeof memory, 0, IBV_ACCESS_ON_DEMAND, &mr), EOPNOTSUPP);
  kernel.pages_on_demand = true;  // and refuses something else
  EXPECT_EQ(uverbs::reg_mr(*pd, memory, sizeof memory, 0, IBV_ACCESS_ON_DEMAND, &mr), EINVAL);
  EXPECT_EQ(mr, nullptr);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

// Linux 6.1 does not know these rights, a later one refuses them where the device has them not.
TEST_P(EachKernel, MemoryThatCannotBeFlushedIsUnsupportedByTheDeviceNotAWrongArgument) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  char memory[64];
  const auto reg = [&](unsigned access) {
    verbatim::Mr* mr = nullptr;
    const int error = uverbs::reg_mr(*pd, memory, sizeof memory, 0, access, &mr);
    if (mr == nullptr) return error;
    mr->plain.context = context->handle();
    EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
    return error;
  };
  constexpr unsigned kBoth = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
  EXPECT_EQ(reg(kBoth), 0) << "they are for the kernel to judge";
  kernel.refused_access = kBoth;
  EXPECT_EQ(reg(IBV_ACCESS_FLUSH_GLOBAL), EOPNOTSUPP);
  kernel.device_flags = kernel::kDeviceFlushGlobal;
  EXPECT_EQ(reg(IBV_ACCESS_FLUSH_GLOBAL), EINVAL) << "it refuses something else";
  EXPECT_EQ(reg(kBoth), EOPNOTSUPP);
  kernel.device_flags |= kernel::kDeviceFlushPersistent;
  EXPECT_EQ(reg(kBoth), EINVAL);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

TEST_P(EachKernel, WhatTheKernelKeepsStays) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  kernel.refusal = EBUSY;
  EXPECT_EQ(uverbs::dealloc_pd(*pd), EBUSY);
  kernel.refusal = 0;
  kernel.lie = Lie::kHandleInUse;
  Pd* other = nullptr;
  EXPECT_EQ(make_pd(&other), EPROTO) << "its handle is still in use";
  kernel.lie = Lie::kNone;
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

TEST(Gids, AreAskedByMethod) {
  OverKernel over(Age::kMethods);
  ASSERT_EQ(uverbs::start_context(*over.context), 0);
  ibv_gid_entry entry{};
  ASSERT_EQ(uverbs::query_gid(*over.context, 1, 1, entry), 0);
  EXPECT_EQ(entry.gid.global.interface_id, 2u);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(uverbs::query_gid(*over.context, 1, 2, entry), ENODATA);
  over.kernel.lie = Lie::kWideNumbers;
  EXPECT_EQ(uverbs::query_gid(*over.context, 1, 1, entry), EPROTO);
}

TEST(Gids, AreAllTakenAtOnce) {
  OverKernel over(Age::kMethods);
  ASSERT_EQ(uverbs::start_context(*over.context), 0);
  over.context->port_count = 1;
  ibv_gid_entry rows[4] = {};
  std::size_t count = 77;
  const unsigned before = over.kernel.methods_called;
  ASSERT_EQ(uverbs::query_gid_table(*over.context, rows, 4, count), 0);
  EXPECT_EQ(over.kernel.methods_called, before + 1);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(rows[1].gid_index, 5u);
  EXPECT_EQ(rows[1].ndev_ifindex, 3u);
  EXPECT_EQ(rows[1].gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(uverbs::query_gid_table(*over.context, rows, 1, count), EINVAL) << "no room";
  EXPECT_EQ(uverbs::query_gid_table(*over.context, rows, 0, count), EOPNOTSUPP)
      << "whether there is any, rows tell";
  for (const Lie lie : {Lie::kNothingWritten, Lie::kTooMany, Lie::kWideNumbers}) {
    over.kernel.lie = lie;
    count = 77;
    EXPECT_EQ(uverbs::query_gid_table(*over.context, rows, 4, count), EPROTO);
    EXPECT_EQ(count, 77u);
  }
}

// More than an ioctl can name: it is asked for what it can.
TEST(Gids, OfALargeRoomAreTakenAtOnceToo) {
  OverKernel over(Age::kMethods);
  ASSERT_EQ(uverbs::start_context(*over.context), 0);
  over.context->port_count = 1;
  std::vector<ibv_gid_entry> rows(5000);
  std::size_t count = 0;
  ASSERT_EQ(uverbs::query_gid_table(*over.context, rows.data(), rows.size(), count), 0);
  EXPECT_EQ(count, 2u);
}

TEST(Gids, OlderKernelsAreAskedRowByRow) {
  for (const Age age : {Age::kInvokeWrite, Age::kWrite}) {
    OverKernel over(age);
    ASSERT_EQ(uverbs::start_context(*over.context), 0);
    ibv_gid_entry rows[4] = {};
    std::size_t count = 0;
    EXPECT_EQ(uverbs::query_gid_table(*over.context, rows, 4, count), EOPNOTSUPP);
  }
}

TEST(Node, IsTheDevicesOwn) {
  UniqueFd fd;
  {
    const CapturedStderr said;
    EXPECT_EQ(uverbs::open_node_at("/dev/null", "rxe0", uverbs::node_number(231, 192), fd), ENXIO);
    EXPECT_THAT(said.text(), HasSubstr("rxe0: /dev/null is not the node of this device"));
    EXPECT_THAT(said.text(), HasSubstr("231:192"));
  }
  {
    const CapturedStderr said;
    EXPECT_EQ(uverbs::open_node_at("/dev/infiniband/uverbs-none", "rxe0", 0, fd), ENOENT);
    EXPECT_THAT(said.text(), HasSubstr("was removed, or its node is not in this container"));
  }
  EXPECT_FALSE(fd.valid());
}

}  // namespace
}  // namespace verbatim::unit
