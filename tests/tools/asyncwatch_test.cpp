// SPDX-License-Identifier: BSD-2-Clause
// `ibv_asyncwatch` prints what the classic program prints for every event there is, answers its
// options, and ends by a signal; over the fake library, and over shm0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "tests/tools/classic.hpp"
#include "tests/tools/pattern.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const Environment kEvents{{"FAKE_VERBS_RC", "1"}, {"FAKE_VERBS_EVENTS", "1"}};

std::string without_number(const std::string& out) {
  static const Pattern kNumber("async event FD [0-9]+");
  return kNumber.replace_all(out, "async event FD #");
}

TEST(Asyncwatch, NamesEachEventAsTheClassicProgramDoes) {
  VBT_NEEDS_CLASSIC("ibv_asyncwatch");
  const Ending theirs = run(classic_tool("ibv_asyncwatch", kEvents), {"-d", "fake1"});
  const Ending ours = run(fake_tool("ibv_asyncwatch", kEvents), {"--ib-dev=fake1"});
  EXPECT_EQ(without_number(ours.out), without_number(theirs.out));
  EXPECT_THAT(ours.out, HasSubstr("IBV_EVENT_GID_CHANGE (18), port 1\n"));
  EXPECT_EQ(ours.status, theirs.status);
  EXPECT_THAT(ours.err, StartsWith("Couldn't read the events of fake1"));
}

TEST(Asyncwatch, PrintsTheClassicUsage) {
  VBT_NEEDS_CLASSIC("ibv_asyncwatch");
  for (const char* option : {"-h", "--help", "-x"}) {
    const Ending theirs = run(classic_tool("ibv_asyncwatch", kEvents), {option});
    const Ending ours = run(fake_tool("ibv_asyncwatch", kEvents), {option});
    EXPECT_EQ(ours.out, theirs.out);
    EXPECT_EQ(ours.status, theirs.status);
    EXPECT_EQ(ours.err.empty(), theirs.err.empty()) << ours.err;
  }
}

TEST(Asyncwatch, SaysWhyThereIsNothingToWatch) {
  VBT_NEEDS_CLASSIC("ibv_asyncwatch");
  Environment none = kEvents;
  none["FAKE_VERBS_DEVICES"] = "0";
  EXPECT_EQ(run(fake_tool("ibv_asyncwatch", none), {}).err, "No IB devices found\n");
  EXPECT_EQ(run(fake_tool("ibv_asyncwatch", none), {}).status,
            run(classic_tool("ibv_asyncwatch", none), {}).status);
  const Ending nobody = run(fake_tool("ibv_asyncwatch", kEvents), {"-d", "nobody"});
  EXPECT_EQ(nobody.err, "IB device nobody not found (there is: fake0 fake1)\n");
  EXPECT_EQ(nobody.status, 1);
}

TEST(Asyncwatch, PrintsThatThePortOfShmWentAndCameBack) {
  const PrivateFabric fabric;
  Environment environment = fabric.environment();
  const std::string folder = environment["VERBATIM_FABRIC"] += "/fabric";
  ToolProcess watcher(real_tool("verbatim", environment), {"asyncwatch"});
  ASSERT_TRUE(watcher.wait_for_output("shm0: async event FD "));
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(watcher.wait_for_output("  event_type IBV_EVENT_PORT_ERR (10), port 1\n"));
  EXPECT_TRUE(watcher.wait_for_output("  event_type IBV_EVENT_PORT_ACTIVE (9), port 1\n"));
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  watcher.signal(SIGTERM);
  const Ending ending = watcher.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_THAT(ending.err, HasSubstr("The port is down"));
  EXPECT_THAT(ending.err, HasSubstr("the port is active"));
}

TEST(Asyncwatch, WatchesShmUntilASignal) {
  const PrivateFabric fabric;
  for (const int signal : {SIGINT, SIGTERM}) {
    ToolProcess watcher(real_tool("verbatim", fabric.environment()), {"asyncwatch"});
    ASSERT_TRUE(watcher.wait_for_output("shm0: async event FD "));
    watcher.signal(signal);
    const Ending ending = watcher.finish();
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.signal, signal);
    EXPECT_EQ(ending.err, "");
  }
  EXPECT_THAT(fabric.sockets(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace verbatim::tools
