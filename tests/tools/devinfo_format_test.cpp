// SPDX-License-Identifier: BSD-2-Clause
// `ibv_devices` and `ibv_devinfo` print what the classic tools print, byte for byte, and exit with
// their statuses: over devices drawn at random, and over failures of each verb they call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/tools/classic.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

Environment device(const std::string& seed, Environment more = {}) {
  more["FAKE_VERBS_SEED"] = seed;
  return more;
}

void expect_same(const std::string& name, const Words& options, const Environment& environment) {
  const Ending theirs = run(classic_tool(name, environment), options);
  const Ending ours = run(fake_tool(name, environment), options);
  ASSERT_TRUE(theirs.in_time && ours.in_time);
  EXPECT_EQ(ours.out, theirs.out);
  EXPECT_EQ(ours.status, theirs.status);
  // Where they say something on stderr, so do we, beginning with the same words.
  const std::string first_words =
      theirs.err.substr(0, std::min<std::size_t>(20, theirs.err.find('\n')));
  EXPECT_THAT(ours.err, StartsWith(first_words));
  EXPECT_EQ(ours.err.empty(), theirs.err.empty()) << ours.err;
}

class Seeds : public ::testing::TestWithParam<int> {};

TEST_P(Seeds, VerboseDevinfoIsByteForByteTheClassicOne) {
  VBT_NEEDS_CLASSIC("ibv_devinfo");
  const int first = GetParam() * 25;  // in groups: 200 processes are many, 200 tests too
  for (int seed = first; seed < first + 25; ++seed) {
    SCOPED_TRACE(seed);
    expect_same("ibv_devinfo", {"-v"}, device(std::to_string(seed)));
    if (HasFatalFailure() || HasNonfatalFailure()) break;
  }
}
INSTANTIATE_TEST_SUITE_P(Devinfo, Seeds, ::testing::Range(0, 4));

TEST(Devinfo, TakesTheClassicOptions) {
  VBT_NEEDS_CLASSIC("ibv_devinfo");
  const std::vector<Words> all = {{},
                                  {"-l"},
                                  {"--list"},
                                  {"-i", "2"},
                                  {"--ib-port=3"},
                                  {"-vi1"},
                                  {"-d", "fake1"},
                                  {"--ib-dev", "fake0", "--verbose"},
                                  {"-ld", "fake1"},
                                  {"--ib-d=fake1"},
                                  {"-v", "-d", "fake1", "-i", "1"},
                                  {"stray"},
                                  {"-i", "0x2"},
                                  {"-i", "9"},
                                  {"-d", "nobody"},
                                  {"-z"},
                                  {"--zzz"},
                                  {"-d"}};
  for (const Words& options : all) {
    SCOPED_TRACE(::testing::PrintToString(options));
    expect_same("ibv_devinfo", options, device("3"));
  }
}

TEST(Devinfo, FailsAsTheClassicToolDoes) {
  VBT_NEEDS_CLASSIC("ibv_devinfo");
  for (const char* verb :
       {"open", "query_device", "query_device_ex", "query_port", "query_gid", "close"}) {
    for (const Words& options : {Words{}, Words{"-v"}, Words{"-v", "-d", "fake1"}}) {
      SCOPED_TRACE(verb + ::testing::PrintToString(options));
      expect_same("ibv_devinfo", options, device("3", {{"FAKE_VERBS_FAIL", verb}}));
    }
  }
}

TEST(Devinfo, CountsDevicesAsTheClassicToolsDo) {
  VBT_NEEDS_CLASSIC("ibv_devinfo");
  for (const char* count : {"-1", "0", "1", "2", "5"}) {
    SCOPED_TRACE(count);
    const Environment environment = device("7", {{"FAKE_VERBS_DEVICES", count}});
    expect_same("ibv_devices", {}, environment);
    expect_same("ibv_devices", {"--anything", "goes"}, environment);
    expect_same("ibv_devinfo", {}, environment);
    expect_same("ibv_devinfo", {"-l"}, environment);
  }
}

TEST(Devinfo, ReadsTheBoardIdFromSysfs) {
  char folder[] = "/tmp/vbt-board-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/board_id";
  for (const std::string& text :
       {std::string("MT_0000000023\n"), std::string(""), std::string("\n\n"),
        std::string("two words\n"), std::string(600, 'b')}) {
    SCOPED_TRACE(text);
    std::ofstream(file) << text;
    const Environment environment = device("3", {{"FAKE_VERBS_SYSFS", folder}});
    const Ending ours = run(fake_tool("ibv_devinfo", environment), {});
    EXPECT_EQ(ours.status, 0);
    if (text.front() == 'M') {
      EXPECT_THAT(ours.out, HasSubstr("\n\tboard_id:\t\t\tMT_0000000023\n\tphys_port_cnt:"));
    }
    if (classic_installed("ibv_devinfo")) expect_same("ibv_devinfo", {}, environment);
  }
  unlink(file.c_str());
  rmdir(folder);
}

TEST(Devinfo, NamesWhatIsWrongAndWhatThereIs) {
  const auto err = [](const Words& options) {
    const Ending ending = run(fake_tool("ibv_devinfo", device("3")), options);
    EXPECT_NE(ending.status, 0);
    EXPECT_THAT(ending.out, Not(HasSubstr("hca_id")));
    return ending.err;
  };
  EXPECT_EQ(err({"-d", "nobody"}), "IB device 'nobody' wasn't found (there is: fake0 fake1)\n");
  EXPECT_THAT(err({"-d", "fake0", "-i", "9"}),
              StartsWith("Invalid port requested for device fake0: it has 3, not 9"));
  for (const char* port : {"0", "-1", "256", "2x", "x", "", "99999999999999999999"}) {
    EXPECT_THAT(err({"-i", port}), HasSubstr("is not a number from 1 to 255 (-i)"));
  }
}

TEST(Devinfo, AsASubcommandHasHelp) {
  const Ending help = run(fake_tool("verbatim", device("3")), {"devinfo", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, StartsWith("Usage: verbatim devinfo "));
  // All that the classic tool says, and what it does not know to ask.
  std::string more = run(fake_tool("verbatim", device("3")), {"devinfo", "-v"}).out;
  for (std::size_t at; (at = more.find("\tpci_atomic_caps")) != std::string::npos;)
    more.erase(at, more.find("\tnum_comp_vectors", at) - at);
  EXPECT_EQ(more, run(fake_tool("ibv_devinfo", device("3")), {"-v"}).out);
  EXPECT_EQ(run(fake_tool("verbatim", device("3")), {"devices"}).out,
            run(fake_tool("/somewhere/else/ibv_devices", device("3")), {}).out);
}

TEST(Verbatim, ExplainsItself) {
  const Ending help = run(fake_tool("verbatim", {}), {"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"devices", "devinfo", "pingpong rc", "pingpong uc", "pingpong ud",
                              "pingpong srq", "pingpong xsrq", "asyncwatch"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
  }
  const Ending version = run(fake_tool("verbatim", {}), {"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("verbatim [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Ending nothing = run(fake_tool("verbatim", {}), {});
  EXPECT_NE(nothing.status, 0);
  EXPECT_THAT(nothing.out, IsEmpty());
  const Ending unknown = run(fake_tool("verbatim", {}), {"pingpong", "xd"});
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.err, StartsWith("verbatim: no command 'pingpong xd' (there are: devices,"));
}

}  // namespace
}  // namespace verbatim::tools
