// SPDX-License-Identifier: BSD-2-Clause
// How the context of a device in software is opened, and tells of its events.
#include "runtime/verbs/software/soft_context.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>

namespace verbatim {
namespace {

struct Opened : Context {
  using Context::Context;
  SoftEvents events;
};
using SoftVerbs = SoftContextVerbs<Opened>;

bool is_readable(int fd) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

TEST(SoftContext, TellsOfItsEventsByItsDescriptor) {
  Device device;
  Context* context = nullptr;
  ASSERT_EQ(SoftVerbs::open(device, &context), 0);
  const int fd = context->extended.context.async_fd;
  EXPECT_FALSE(is_readable(fd));
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  static_cast<Opened*>(context)->events.raise(event);
  EXPECT_TRUE(is_readable(fd));
  ibv_async_event got{};
  EXPECT_EQ(SoftVerbs::get_async_event(*context, got), 0);
  EXPECT_EQ(got.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(is_readable(fd));
  SoftVerbs::close(*context);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "it goes with the context";
}

TEST(SoftContext, IsNotOpenedWithoutADescriptor) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Device device;
  Context* context = nullptr;
  const int error = SoftVerbs::open(device, &context);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(context, nullptr);
}

}  // namespace
}  // namespace verbatim
