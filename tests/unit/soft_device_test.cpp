// SPDX-License-Identifier: BSD-2-Clause
// What a device in software and its port say of themselves, and how it is opened.
#include "runtime/verbs/software/soft_device.hpp"

#include <endian.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>

#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim {
namespace {

TEST(SoftDevice, SaysTheLimitsByWhichItsQueuesAreRefused) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.max_qp_wr, 64);
  EXPECT_EQ(attr.orig_attr.max_srq_wr, 64);
  EXPECT_EQ(attr.orig_attr.max_sge, 4);
  EXPECT_EQ(attr.orig_attr.max_sge_rd, 4);
  EXPECT_EQ(attr.orig_attr.max_srq_sge, 4);
  EXPECT_EQ(attr.orig_attr.max_cqe, 128);
}

TEST(SoftDevice, HasOnePortAndTheAtomicsThatProgramsAskAdaptersFor) {
  ibv_device_attr_ex attr{};
  describe_device({"tiny", 64, 4, 32, 128}, attr);
  EXPECT_EQ(attr.orig_attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.phys_port_cnt_ex, 1u);
  EXPECT_EQ(attr.orig_attr.max_pkeys, 1);
  EXPECT_EQ(attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
}

ibv_port_attr port(bool is_up, bool is_ethernet) {
  ibv_port_attr attr{};
  describe_port(is_up, is_ethernet, attr);
  return attr;
}

TEST(SoftPort, IsActiveWhileOthersAreReachedThroughIt) {
  EXPECT_EQ(port(true, false).state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port(true, false).phys_state, 5) << "LinkUp";
  EXPECT_EQ(port(false, false).state, IBV_PORT_DOWN);
  EXPECT_EQ(port(false, false).phys_state, 2) << "Polling";
  EXPECT_EQ(port(false, true).phys_state, 3) << "Disabled";
}

TEST(SoftPort, HasASubnetManagerOnInfiniBandAlone) {
  EXPECT_EQ(port(true, false).link_layer, IBV_LINK_LAYER_INFINIBAND);
  EXPECT_EQ(port(true, false).sm_lid, 1);
  EXPECT_EQ(port(true, true).link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port(true, true).sm_lid, 0);
}

TEST(SoftPort, HasAsManyRowsInItsTablesAsItSays) {
  Device device;
  Context context(device);
  ASSERT_EQ(port(true, false).pkey_tbl_len, 1);
  EXPECT_EQ(port(true, false).gid_tbl_len, 1);
  __be16 pkey = 0;
  EXPECT_EQ(SoftPortVerbs::query_pkey(context, 1, 0, pkey), 0);
  EXPECT_EQ(pkey, htobe16(0xffff)) << "the default partition, as a full member";
  EXPECT_EQ(SoftPortVerbs::query_pkey(context, 1, 1, pkey), EINVAL);
}

struct Opened : Context {
  using Context::Context;
  SoftEvents events;
};
using Verbs = SoftContextVerbs<Opened>;

bool is_readable(int fd) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

TEST(SoftContext, TellsOfItsEventsByItsDescriptor) {
  Device device;
  Context* context = nullptr;
  ASSERT_EQ(Verbs::open(device, &context), 0);
  const int fd = context->extended.context.async_fd;
  EXPECT_FALSE(is_readable(fd));
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  static_cast<Opened*>(context)->events.raise(event);
  EXPECT_TRUE(is_readable(fd));
  ibv_async_event got{};
  EXPECT_EQ(Verbs::get_async_event(*context, got), 0);
  EXPECT_EQ(got.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(is_readable(fd));
  Verbs::close(*context);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "it goes with the context";
}

TEST(SoftContext, IsNotOpenedWithoutADescriptor) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Device device;
  Context* context = nullptr;
  const int error = Verbs::open(device, &context);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(context, nullptr);
}

}  // namespace
}  // namespace verbatim
