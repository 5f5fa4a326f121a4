// SPDX-License-Identifier: BSD-2-Clause
// What comes from elsewhere stays as it came: keys, numbers, states, tables of a provider whose
// kernel owns them.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/support/fake_kernel.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

using fake::Kernel;

class FakeKernel : public OpenedDevice {
 protected:
  FakeKernel() : OpenedDevice("fakek0") {}
  static ibv_gid gid_of(std::uint8_t last) {
    ibv_gid gid{};
    gid.raw[0] = 0x20;
    gid.raw[15] = last;
    return gid;
  }
};

TEST_F(FakeKernel, KeysAndNumbersAreTheKernels) {
  const std::size_t before = Kernel::instance().live_objects();
  char memory[16];
  ibv_mr* const mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
  ASSERT_NE(mr, nullptr);
  EXPECT_GE(mr->lkey, Kernel::kFirstKey);
  EXPECT_EQ(mr->rkey, mr->lkey ^ 0x1000000);
  ibv_cq* const cq = make_cq();
  EXPECT_EQ(cq->cqe, 16);
  ibv_qp* const qp = make_qp(cq);
  EXPECT_GE(qp->qp_num, Kernel::kFirstQpn);
  EXPECT_EQ(Kernel::instance().live_objects(), before + 3);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(Kernel::instance().live_objects(), before);
}

TEST_F(FakeKernel, StatesAreTheKernels) {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0) << "this kernel asks for no attributes";
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL) << "and skips no state";
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  attr.qp_state = IBV_QPS_RTR;
  attr.qkey = 77;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
  // The kernel moves the QP by itself; the handle learns it from the next query.
  ASSERT_EQ(Kernel::instance().modify_qp(
                reinterpret_cast<std::uintptr_t>(qp),
                [] {
                  ibv_qp_attr to_error{};
                  to_error.qp_state = IBV_QPS_ERR;
                  return to_error;
                }(),
                IBV_QP_STATE),
            0);
  EXPECT_EQ(qp->state, IBV_QPS_RTR);
  ibv_qp_attr got;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &got, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(got.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
  EXPECT_EQ(got.qkey, 77u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(FakeKernel, GidTablesHaveHoles) {
  Kernel::instance().set_gids({gid_of(1), ibv_gid{}, gid_of(3), ibv_gid{}});
  ibv_gid gid;
  ASSERT_EQ(ibv_query_gid(context, 1, 2, &gid), 0);
  EXPECT_EQ(gid.raw[15], 3);
  ASSERT_EQ(ibv_query_gid(context, 1, 1, &gid), 0) << "an empty row reads as zeroes";
  constexpr ibv_gid kNoGid{};
  EXPECT_EQ(std::memcmp(&gid, &kNoGid, sizeof gid), 0);
  errno = 0;
  EXPECT_EQ(ibv_query_gid(context, 1, int{fake::Kernel::kGidRows}, &gid), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_query_gid(context, 1, -1, &gid), -1);

  ibv_gid_entry entry;
  ASSERT_EQ(ibv_query_gid_ex(context, 1, 2, &entry, 0), 0);
  EXPECT_EQ(entry.gid_index, 2u);
  EXPECT_EQ(entry.port_num, 1u);
  EXPECT_EQ(entry.gid_type, unsigned{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(entry.ndev_ifindex, 5u);
  EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 0), ENODATA);
  EXPECT_EQ(ibv_query_gid_ex(context, 1, 2, &entry, 1), EOPNOTSUPP);

  ibv_gid_entry entries[4];
  EXPECT_EQ(ibv_query_gid_table(context, entries, 4, 0), 2);
  EXPECT_EQ(entries[0].gid.raw[15], 1);
  EXPECT_EQ(entries[1].gid.raw[15], 3);
  EXPECT_EQ(entries[1].gid_index, 2u);
  EXPECT_EQ(ibv_query_gid_table(context, entries, 1, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context, entries, 4, 1), -EOPNOTSUPP);
}

TEST_F(FakeKernel, EntriesOfOlderAndNewerProgramsAreServed) {
  Kernel::instance().set_gids({gid_of(1), gid_of(2)});
  struct Newer {
    ibv_gid_entry entry;
    std::uint64_t more;
  } newer[2];
  std::memset(newer, 0x5a, sizeof newer);
  ASSERT_EQ(_ibv_query_gid_table(context, &newer[0].entry, 2, 0, sizeof newer[0]), 2);
  EXPECT_EQ(newer[1].entry.gid.raw[15], 2);
  EXPECT_EQ(newer[1].more, 0u) << "what the library does not know reads as nothing";
  unsigned char older[24];
  std::memset(older, 0x5a, sizeof older);
  ASSERT_EQ(_ibv_query_gid_ex(context, 1, 0, reinterpret_cast<ibv_gid_entry*>(older), 0, 20), 0);
  EXPECT_EQ(older[15], 1);
  EXPECT_EQ(older[20], 0x5a) << "nothing is written behind what the program has";
}

TEST_F(FakeKernel, PkeysAreFoundByValue) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context, 1, 1, &pkey), 0);
  EXPECT_EQ(pkey, htons(0x8123));
  EXPECT_EQ(ibv_query_pkey(context, 1, 3, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context, 1, htons(0x0123)), 2);
  EXPECT_EQ(ibv_get_pkey_index(context, 1, htons(0x4444)), -1);
}

TEST_F(FakeKernel, AttributesFitTheCallersSize) {
  ibv_device_attr_ex all;
  ASSERT_EQ(ibv_query_device_ex(context, nullptr, &all), 0);
  EXPECT_EQ(all.orig_attr.max_qp, 17);
  EXPECT_EQ(all.max_dm_size, 4096u);
  ibv_device_attr plain;
  ASSERT_EQ(ibv_query_device(context, &plain), 0);
  EXPECT_EQ(plain.max_qp, 17);

  verbs_context* const slots = verbs_get_ctx(context);
  unsigned char bytes[sizeof(ibv_device_attr_ex) + 16];
  std::memset(bytes, 0x5a, sizeof bytes);
  auto* const as_attr = reinterpret_cast<ibv_device_attr_ex*>(bytes);
  ASSERT_EQ(slots->query_device_ex(context, nullptr, as_attr, sizeof(ibv_device_attr)), 0);
  EXPECT_EQ(bytes[sizeof(ibv_device_attr)], 0x5a);
  ASSERT_EQ(slots->query_device_ex(context, nullptr, as_attr, sizeof bytes), 0);
  EXPECT_EQ(bytes[sizeof bytes - 1], 0);
  EXPECT_EQ(slots->query_device_ex(context, nullptr, as_attr, 8), EINVAL);
  const ibv_query_device_ex_input input{1};
  EXPECT_EQ(slots->query_device_ex(context, &input, as_attr, sizeof bytes), EINVAL);
}

TEST_F(FakeKernel, AnOldPortAttributeIs48Bytes) {
  unsigned char bytes[sizeof(ibv_port_attr)];
  std::memset(bytes, 0x5a, sizeof bytes);
  ASSERT_EQ(
      context->ops._compat_query_port(context, 1, reinterpret_cast<_compat_ibv_port_attr*>(bytes)),
      0);
  EXPECT_EQ(bytes[0], IBV_PORT_ACTIVE);
  EXPECT_EQ(bytes[48], 0x5a);
  ibv_port_attr attr;
  ASSERT_EQ(ibv_query_port(context, 2, &attr), 0);
  EXPECT_EQ(attr.state, IBV_PORT_DOWN);
  EXPECT_EQ(attr.port_cap_flags2, IBV_PORT_SET_NODE_DESC_SUP);
}

TEST_F(FakeKernel, APortsSpeedIsItsLanes) {
  std::uint64_t speed = 0;
  ASSERT_EQ(ibv_query_port_speed(context, 1, &speed), 0);
  EXPECT_EQ(speed, 1000u) << "4 lanes of 25 Gbit/s, in units of 100 Mbit/s";
}

TEST_F(FakeKernel, CompletionVectorsAreTheDevices) {
  ibv_cq* const cq = ibv_create_cq(context, 1, nullptr, nullptr, 1);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  const CapturedStderr captured;
  EXPECT_EQ(ibv_create_cq(context, 1, nullptr, nullptr, 2), nullptr);
}

}  // namespace
}  // namespace verbatim::unit
