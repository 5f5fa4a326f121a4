// SPDX-License-Identifier: BSD-2-Clause
//
// What a device tells of itself, its ports, its GIDs and its partitions (IBTA 11.2.1, 10.2; man
// ibv_get_device_list, ibv_query_device, ibv_query_device_ex, ibv_query_port, ibv_query_gid,
// ibv_query_gid_ex, ibv_query_gid_table, ibv_query_pkey, ibv_get_pkey_index,
// ibv_query_rt_values_ex, ibv_get_device_index, ibv_get_device_guid).
#include <arpa/inet.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

TEST(Registry, ListsAtLeastOneDevice) { EXPECT_FALSE(every_device().empty()); }

TEST(Registry, CountsWhatItListsAndEndsWithNull) {
  int count = -1;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, static_cast<int>(every_device().size()));
  for (int i = 0; i < count; ++i) EXPECT_NE(list[i], nullptr);
  EXPECT_EQ(list[count], nullptr);
  ibv_free_device_list(list);
}

TEST(Registry, NeedNotBeAskedHowMany) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_free_device_list(list);
}

class Query : public OnDevice {
 protected:
  ibv_device* device() const { return context()->device; }
};
RUN_ON_EVERY_DEVICE(Query);

TEST_P(Query, ADeviceHasTheNameByWhichItIsListed) {
  EXPECT_STREQ(ibv_get_device_name(device()), GetParam());
}

TEST_P(Query, ADeviceStaysOpenAfterItsListIsFreed) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* const opened = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  ASSERT_NE(opened, nullptr);
  ibv_device_attr told{};
  EXPECT_EQ(ibv_query_device(opened, &told), 0);
  EXPECT_NE(ibv_get_device_name(opened->device), nullptr);
  EXPECT_EQ(ibv_close_device(opened), 0);
}

TEST_P(Query, ADeviceHasTheSameGuidByEveryQuestion) {
  EXPECT_NE(ibv_get_device_guid(device()), 0u);
  EXPECT_EQ(ibv_get_device_guid(device()), attr().node_guid);
}

TEST_P(Query, ADeviceHasAnIndexOrSaysThatItHasNone) {
  EXPECT_GE(ibv_get_device_index(device()), -1);
}

TEST_P(Query, ADeviceHasAtLeastWhatEveryProgramNeeds) {
  const ibv_device_attr& a = attr();
  EXPECT_GE(a.phys_port_cnt, 1);
  for (const int limit :
       {a.max_qp, a.max_qp_wr, a.max_sge, a.max_cq, a.max_cqe, a.max_mr, a.max_pd}) {
    EXPECT_GE(limit, 1);
  }
  EXPECT_GE(a.max_pkeys, 1);
  EXPECT_NE(a.max_mr_size, 0u);
  EXPECT_NE(a.page_size_cap, 0u);
  EXPECT_NE(memchr(a.fw_ver, 0, sizeof a.fw_ver), nullptr);
}

// man ibv_query_device, IBTA 11.2.1.2: the vendor is an OUI, which programs print and choose by.
TEST_P(Query, ADeviceNamesItsMaker) { EXPECT_NE(attr().vendor_id, 0u); }

// IBTA 11.2.1.2: atomic among the queue pairs of the adapter. That they are so for the processor too
// is what no adapter says, so programs (UCX) take nothing but HCA for atomics.
TEST_P(Query, ADeviceWithAtomicsSaysThatTheyAreAnAdapters) {
  if (attr().atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "atomic_cap is NONE";
  EXPECT_EQ(attr().atomic_cap, IBV_ATOMIC_HCA);
}

TEST_P(Query, ADeviceWithAtomicsSaysHowManyItAnswers) {
  if (attr().atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "atomic_cap is NONE";
  EXPECT_GE(attr().max_qp_rd_atom, 1);
  EXPECT_GE(attr().max_qp_init_rd_atom, 1);
}

TEST_P(Query, ADeviceWithSharedReceiveQueuesSaysHowLargeTheyAre) {
  if (attr().max_srq == 0) GTEST_SKIP() << "max_srq is 0";
  EXPECT_GE(attr().max_srq_wr, 1);
  EXPECT_GE(attr().max_srq_sge, 1);
}

TEST_P(Query, ADeviceTellsTheSameInItsExtendedAttributes) {
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.node_guid, attr().node_guid);
  EXPECT_EQ(extended.orig_attr.max_qp, attr().max_qp);
  EXPECT_EQ(extended.orig_attr.max_cqe, attr().max_cqe);
  EXPECT_EQ(extended.orig_attr.device_cap_flags, attr().device_cap_flags);
  EXPECT_EQ(extended.orig_attr.phys_port_cnt, attr().phys_port_cnt);
  EXPECT_GE(extended.phys_port_cnt_ex, 1u);
}

TEST_P(Query, TheExtendedAttributesTakeAnEmptyInput) {
  ibv_query_device_ex_input input{};
  ibv_device_attr_ex extended{};
  EXPECT_EQ(ibv_query_device_ex(context(), &input, &extended), 0);
  input.comp_mask = 1;
  expect_complaints();
  EXPECT_EQ(ibv_query_device_ex(context(), &input, &extended), EINVAL);
}

TEST_P(Query, TheClockOfTimestampsIsReadOrRefused) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  SKIP_IF(unless_unsupported("ibv_query_rt_values_ex", ibv_query_rt_values_ex(context(), &values)));
  EXPECT_EQ(values.comp_mask, std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
  const timespec first = values.raw_clock;
  ASSERT_EQ(ibv_query_rt_values_ex(context(), &values), 0);
  EXPECT_GE(values.raw_clock.tv_sec * 1'000'000'000 + values.raw_clock.tv_nsec,
            first.tv_sec * 1'000'000'000 + first.tv_nsec);
}

TEST_P(Query, EachPortTellsWhatItIs) {
  for (std::uint8_t number = 1; number <= attr().phys_port_cnt; ++number) {
    ibv_port_attr told{};
    ASSERT_EQ(ibv_query_port(context(), number, &told), 0);
    EXPECT_GE(told.state, IBV_PORT_DOWN);
    EXPECT_LE(told.state, IBV_PORT_ACTIVE_DEFER);
    EXPECT_GE(told.active_mtu, IBV_MTU_256);
    EXPECT_LE(told.active_mtu, told.max_mtu);
    EXPECT_GE(told.gid_tbl_len, 1);
    EXPECT_GE(told.pkey_tbl_len, 1);
    EXPECT_GE(told.max_msg_sz, 1u);
    EXPECT_NE(told.link_layer, IBV_LINK_LAYER_UNSPECIFIED);
    if (told.link_layer == IBV_LINK_LAYER_INFINIBAND && told.state == IBV_PORT_ACTIVE) {
      EXPECT_NE(told.lid, 0);
      EXPECT_LT(told.lid, 0xC000) << "unicast (IBTA 4.1.3)";
    }
  }
}

TEST_P(Query, APortThatDoesNotExistIsEinval) {
  expect_complaints();
  ibv_port_attr told{};
  EXPECT_EQ(ibv_query_port(context(), 0, &told), EINVAL);
  EXPECT_EQ(ibv_query_port(context(), static_cast<std::uint8_t>(attr().phys_port_cnt + 1), &told),
            EINVAL);
  EXPECT_EQ(ibv_query_port(context(), 255, &told), EINVAL);
}

TEST_P(Query, APortTellsItsSpeed) {
  std::uint64_t speed = 0;
  SKIP_IF(unless_unsupported("ibv_query_port_speed", ibv_query_port_speed(context(), 1, &speed)));
  EXPECT_GT(speed, 0u);
  expect_complaints();
  EXPECT_NE(ibv_query_port_speed(context(), 255, &speed), 0);
}

TEST_P(Query, EachGidOfThePortIsReadAndTheFirstIsNotZero) {
  ibv_gid zero{};
  for (int index = 0; index < port().gid_tbl_len; ++index) {
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(context(), 1, index, &gid), 0);
    if (index == 0) {
      EXPECT_NE(std::memcmp(&gid, &zero, sizeof gid), 0);
    }
  }
}

TEST_P(Query, AGidBeyondTheTableOrOfNoPortIsRefused) {
  expect_complaints();
  ibv_gid gid{};
  EXPECT_NE(ibv_query_gid(context(), 1, port().gid_tbl_len, &gid), 0);
  EXPECT_NE(ibv_query_gid(context(), 1, -1, &gid), 0);
  EXPECT_NE(ibv_query_gid(context(), 0, 0, &gid), 0);
  EXPECT_NE(ibv_query_gid(context(), static_cast<std::uint8_t>(attr().phys_port_cnt + 1), 0, &gid),
            0);
}

TEST_P(Query, AGidEntryTellsTheSameGidAndItsKind) {
  ibv_gid plain{};
  ASSERT_EQ(ibv_query_gid(context(), 1, 0, &plain), 0);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(context(), 1, 0, &entry, 0), 0);
  EXPECT_EQ(std::memcmp(&entry.gid, &plain, sizeof plain), 0);
  EXPECT_EQ(entry.gid_index, 0u);
  EXPECT_EQ(entry.port_num, 1u);
  EXPECT_EQ(entry.gid_type == IBV_GID_TYPE_IB, port().link_layer == IBV_LINK_LAYER_INFINIBAND);
}

TEST_P(Query, AGidEntryOfNothingIsRefused) {
  expect_complaints();
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(context(), 0, 0, &entry, 0), EINVAL);
  EXPECT_NE(
      ibv_query_gid_ex(context(), 1, static_cast<std::uint32_t>(port().gid_tbl_len), &entry, 0), 0);
  const int of_flags = ibv_query_gid_ex(context(), 1, 0, &entry, 1);
  EXPECT_TRUE(of_flags == EINVAL || of_flags == EOPNOTSUPP) << "no flag is defined: " << of_flags;
}

TEST_P(Query, TheTableOfGidsHoldsEachEntryOnce) {
  ibv_gid_entry entries[256] = {};
  const ssize_t count = ibv_query_gid_table(context(), entries, 256, 0);
  ASSERT_GE(count, 1);
  ibv_gid zero{};
  for (ssize_t i = 0; i < count; ++i) {
    EXPECT_NE(std::memcmp(&entries[i].gid, &zero, sizeof zero), 0) << "man: only valid entries";
    ibv_gid_entry one{};
    ASSERT_EQ(ibv_query_gid_ex(context(), entries[i].port_num, entries[i].gid_index, &one, 0), 0);
    EXPECT_EQ(std::memcmp(&one.gid, &entries[i].gid, sizeof zero), 0);
    EXPECT_EQ(one.gid_type, entries[i].gid_type);
  }
}

TEST_P(Query, TheTableOfGidsNeedsRoom) {
  expect_complaints();
  ibv_gid_entry entry{};
  EXPECT_LT(ibv_query_gid_table(context(), &entry, 0, 0), 0);
  EXPECT_LT(ibv_query_gid_table(context(), &entry, 1, 1), 0) << "no flag is defined";
}

TEST_P(Query, EachPartitionKeyIsReadAndTheDefaultIsAmongThem) {
  bool found_default = false;
  for (int index = 0; index < port().pkey_tbl_len; ++index) {
    __be16 pkey = 0;
    ASSERT_EQ(ibv_query_pkey(context(), 1, index, &pkey), 0);
    found_default = found_default || (ntohs(pkey) & 0x7fff) == 0x7fff;
  }
  EXPECT_TRUE(found_default) << "IBTA 10.9.1.2";
}

TEST_P(Query, APartitionKeyBeyondTheTableIsRefused) {
  expect_complaints();
  __be16 pkey = 0;
  EXPECT_NE(ibv_query_pkey(context(), 1, port().pkey_tbl_len, &pkey), 0);
  EXPECT_NE(ibv_query_pkey(context(), 1, -1, &pkey), 0);
  EXPECT_NE(ibv_query_pkey(context(), 0, 0, &pkey), 0);
}

TEST_P(Query, APartitionKeyIsFoundByItsValue) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context(), 1, 0, &pkey), 0);
  EXPECT_EQ(ibv_get_pkey_index(context(), 1, pkey), 0);
  expect_complaints();
  EXPECT_EQ(ibv_get_pkey_index(context(), 1, htons(0x0123)), -1);
}

TEST_P(Query, ADeviceIsOpenedAsOftenAsOneLikes) {
  ibv_context* contexts[8];
  for (auto& each : contexts) {
    each = ibv_open_device(device());
    ASSERT_NE(each, nullptr);
    EXPECT_GE(each->async_fd, 0);
    EXPECT_NE(fcntl(each->async_fd, F_GETFD) & FD_CLOEXEC, 0);
  }
  for (auto& each : contexts) EXPECT_EQ(ibv_close_device(each), 0);
}

TEST_P(Query, AnEthernetAddressIsResolvedFromAGidOrRefused) {
  ibv_ah_attr path = path_to_self(session());
  path.is_global = 1;
  path.grh.dgid = session().gid;
  std::uint8_t mac[6] = {};
  std::uint16_t vlan = 0;
  expect_complaints();
  const int error = ibv_resolve_eth_l2_from_gid(context(), &path, mac, &vlan);
  if (error == EOPNOTSUPP) GTEST_SKIP() << "no Ethernet address belongs to the port's own GID";
  ASSERT_EQ(error, 0);
  EXPECT_EQ(mac[0] & 1, 0) << "a group's address";
  EXPECT_TRUE(vlan < 4096 || vlan == 0xffff) << vlan;
}

}  // namespace
}  // namespace verbatim::harness
