// SPDX-License-Identifier: BSD-2-Clause
// Room for descriptors is made when a process joins the fabric. The kernel makes it by steps, and
// each time that a process with several threads outgrows its table it waits until all processors
// have passed a point of rest (RCU): milliseconds, among many busy processes seconds, in which our
// service thread would meet nobody and answer nobody.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/support/child.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

/// How many descriptors the table of this process has room for now.
rlim_t table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    rlim_t size = 0;
    if (word == "FDSize:" && status >> size) return size;
  }
  return 0;
}

struct Room {
  rlim_t before;
  rlim_t after;
  rlim_t limit_after;
  bool last_is_open;
};

/// A fresh process: no test before has made the table grow.
VBT_ROLE(starts_under_limit) {
  const auto limit = control.receive_value<rlim_t>();
  rlimit limits{};
  if (getrlimit(RLIMIT_NOFILE, &limits) != 0) return 1;
  limits.rlim_cur = std::min(limit, limits.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limits) != 0) return 2;
  Room room{};
  room.before = table_size();
  const RunningProcess process;
  room.after = table_size();
  if (getrlimit(RLIMIT_NOFILE, &limits) != 0) return 3;
  room.limit_after = limits.rlim_cur;
  const rlim_t last = std::min<rlim_t>(1024, limits.rlim_cur) - 1;
  room.last_is_open = fcntl(static_cast<int>(last), F_GETFD) >= 0;
  control.send_value(room);
  return 0;
}

Room room_under(rlim_t limit) {
  harness::Child child("starts_under_limit");
  child.control().send_value(limit);
  const auto room = child.control().receive_value<Room>();
  EXPECT_EQ(child.wait().exit_status, 0);
  return room;
}

TEST(DescriptorTable, HasRoomForPeersBeforeTheServiceThreadMeetsThem) {
  const Room room = room_under(4096);
  if (room.limit_after < 1024) GTEST_SKIP() << "'ulimit -Hn' is less than 1024";
  if (room.before >= 1024) GTEST_SKIP() << "a process begins with this much room here";
  EXPECT_GE(room.after, 1024u);
  EXPECT_LT(room.after, 4096u) << "memory of each process for what few need";
  EXPECT_FALSE(room.last_is_open);
}

TEST(DescriptorTable, UnderALimitHasRoomForWhatTheLimitAllows) {
  const Room room = room_under(300);
  if (room.before >= 300) GTEST_SKIP() << "a process begins with this much room here";
  EXPECT_GE(room.after, 300u);
  EXPECT_EQ(room.limit_after, 300u);
  EXPECT_FALSE(room.last_is_open);
}

}  // namespace
}  // namespace verbatim::shm
