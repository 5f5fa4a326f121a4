// SPDX-License-Identifier: BSD-2-Clause
//
// Devices, domains and regions that another part of a program has made, by descriptor and handle
// (man ibv_import_device, ibv_import_pd, ibv_import_mr, ibv_import_dm). "Once destroy is done no
// other process can touch the object except for unimport": so it is of the handles of one process.
// Man ibv_import_mr: addr of an imported region is not applicable; here it is the region's.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/support/child.hpp"
#include "tests/support/device.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

class Import : public OnDevice {
 protected:
  int duplicate() const { return ::fcntl(context()->cmd_fd, F_DUPFD_CLOEXEC, 0); }
  ibv_context* imported_device() const { return ibv_import_device(duplicate()); }
};
RUN_ON_EVERY_DEVICE(Import);

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// An uverbs device is ready at once whenever it is polled, as is a file.
TEST_P(Import, TheCommandDescriptorIsRealAndNotInheritedAcrossExec) {
  const int fd = context()->cmd_fd;
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  pollfd readable{fd, POLLIN, 0};
  EXPECT_GE(::poll(&readable, 1, 0), 0);
  EXPECT_EQ(readable.revents & (POLLERR | POLLHUP | POLLNVAL), 0);
}

TEST_P(Import, ADeviceIsImportedByADuplicateAndKeepsIt) {
  const int fd = duplicate();
  ibv_context* const imported = ibv_import_device(fd);
  ASSERT_NE(imported, nullptr) << errno;
  ibv_device_attr known;
  EXPECT_EQ(ibv_query_device(imported, &known), 0);
  EXPECT_TRUE(is_open(fd));
  EXPECT_EQ(ibv_close_device(imported), 0);
  EXPECT_FALSE(is_open(fd)) << "which man ibv_import_device says close_device closes";
  EXPECT_EQ(ibv_query_device(context(), &known), 0) << "the device is open still";
}

TEST_P(Import, TheDeviceStaysOpenUntilItsLastHandleIsClosed) {
  ibv_context* const opened = ibv_open_device(context()->device);
  ASSERT_NE(opened, nullptr);
  ibv_context* const imported = ibv_import_device(::fcntl(opened->cmd_fd, F_DUPFD_CLOEXEC, 0));
  ASSERT_NE(imported, nullptr) << errno;
  ASSERT_NE(imported->cmd_fd, context()->cmd_fd) << "of another context of the same device";
  ibv_pd* const domain = ibv_alloc_pd(opened);
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(ibv_close_device(opened), 0);
  ibv_pd* const same = ibv_import_pd(imported, domain->handle);
  ASSERT_NE(same, nullptr) << errno;
  char bytes[64];
  ibv_mr* const region = ibv_reg_mr(same, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr) << errno;
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  ibv_unimport_pd(same);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_close_device(imported), 0);
}

TEST_P(Import, ADomainAndARegionServeThoseWhoImportThem) {
  char bytes[64] = "told";
  ibv_mr* const region = mr(bytes, sizeof bytes, kAllAccess);
  ibv_context* const imported = imported_device();
  ASSERT_NE(imported, nullptr) << errno;
  ibv_pd* const domain = ibv_import_pd(imported, pd()->handle);
  ASSERT_NE(domain, nullptr) << errno;
  ibv_mr* const same = ibv_import_mr(domain, region->handle);
  ASSERT_NE(same, nullptr) << errno;
  EXPECT_EQ(same->lkey, region->lkey);
  EXPECT_EQ(same->rkey, region->rkey);
  ibv_cq* const both = cq();
  const auto [one, other] = connected(IBV_QPT_RC, both);
  ASSERT_EQ(post_receive(other, 1, bytes + 32, 32, same->lkey), 0);
  ASSERT_EQ(post_send(one, 2, bytes, 5, same->lkey), 0);
  for (const ibv_wc& wc : poll(both, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(bytes + 32, "told");
  ibv_unimport_mr(same);
  ibv_unimport_pd(domain);
  EXPECT_EQ(ibv_close_device(imported), 0);
}

TEST_P(Import, WhatOneHandleDestroysTheOthersOnlyUnimport) {
  char bytes[64];
  ibv_pd* const made = ibv_alloc_pd(context());
  ASSERT_NE(made, nullptr);
  ibv_mr* const region = ibv_reg_mr(made, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  ibv_pd* const domain = ibv_import_pd(context(), made->handle);
  ibv_mr* const same = ibv_import_mr(made, region->handle);
  ASSERT_TRUE(domain != nullptr && same != nullptr) << errno;
  expect_complaints();
  EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY) << "it has a region";
  EXPECT_EQ(ibv_dereg_mr(same), 0);
  errno = 0;
  EXPECT_EQ(ibv_import_mr(made, region->handle), nullptr);
  EXPECT_EQ(errno, ENOENT);
  ibv_unimport_mr(region);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_reg_mr(made, bytes, sizeof bytes, 0), nullptr) << "nothing is left of the domain";
  ibv_unimport_pd(made);
}

TEST_P(Import, DeviceMemoryServesThoseWhoImportIt) {
  ibv_alloc_dm_attr asked{};
  asked.length = 64;
  ibv_dm* const memory = ibv_alloc_dm(context(), &asked);
  if (memory == nullptr) SKIP_IF(unless_unsupported("device memory", errno));
  ibv_dm* const same = ibv_import_dm(context(), memory->handle);
  ASSERT_NE(same, nullptr) << errno;
  char told[8] = "told";
  char heard[8] = "";
  EXPECT_EQ(ibv_memcpy_to_dm(memory, 0, told, sizeof told), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(heard, same, 0, sizeof heard), 0);
  EXPECT_STREQ(heard, told);
  ibv_unimport_dm(memory);
  EXPECT_EQ(ibv_free_dm(same), 0);
}

TEST_P(Import, WhatWasNotImportedStaysAsItWas) {
  char bytes[64];
  ibv_mr* const region = ibv_reg_mr(pd(), bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  expect_complaints();
  ibv_unimport_mr(region);
  ibv_unimport_pd(pd());
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_NE(mr(bytes, sizeof bytes, 0), nullptr);
}

TEST_P(Import, HandlesThatTheDeviceDoesNotHaveAreRefused) {
  constexpr std::uint32_t kNone = 0xfffffff0;
  expect_complaints();
  errno = 0;
  EXPECT_EQ(ibv_import_pd(context(), kNone), nullptr);
  EXPECT_EQ(std::exchange(errno, 0), ENOENT);
  EXPECT_EQ(ibv_import_mr(pd(), kNone), nullptr);
  EXPECT_EQ(std::exchange(errno, 0), ENOENT);
  EXPECT_EQ(ibv_import_dm(context(), kNone), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST_P(Import, DescriptorsOfNoDeviceAreRefusedAndLeftOpen) {
  expect_complaints();
  errno = 0;
  EXPECT_EQ(ibv_import_device(-1), nullptr);
  EXPECT_EQ(std::exchange(errno, 0), EBADF);
  const int stranger = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(ibv_import_device(stranger), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_TRUE(is_open(stranger));
  ::close(stranger);
}

struct Name {
  char text[64];
};

VBT_ROLE(passes_its_device) {
  const Session session(control.receive_value<Name>().text);
  char byte = 0;
  iovec payload{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &session.context->cmd_fd, sizeof(int));
  if (::sendmsg(control.fd(), &message, 0) != 1) return 1;
  (void)control.receive_value<int>();
  return 0;
}

TEST_P(Import, ADeviceOfAnotherProcessIsRefused) {
  expect_complaints();
  Child child("passes_its_device");
  Name name{};
  std::strncpy(name.text, GetParam(), sizeof name.text - 1);
  child.control().send_value(name);
  char byte;
  iovec payload{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  ASSERT_EQ(::recvmsg(child.control().fd(), &message, MSG_CMSG_CLOEXEC), 1);
  int fd = -1;
  ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  errno = 0;
  EXPECT_EQ(ibv_import_device(fd), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
  child.control().send_value(0);
  EXPECT_EQ(child.wait().exit_status, 0);
}

}  // namespace
}  // namespace verbatim::harness
