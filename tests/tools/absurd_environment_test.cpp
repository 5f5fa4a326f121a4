// SPDX-License-Identifier: BSD-2-Clause
// The tool where its environment or its output is absurd: it ends, soon, with a line that says
// what is wrong and a status that says that something is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/tools/fake_host.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds kSoon{20'000};

class Absurd : public ::testing::Test {
 protected:
  Ending tool(const Words& words, const Environment& more = {}) {
    Environment environment = fabric_.environment();
    for (const auto& [name, value] : more) environment[name] = value;
    return run({VERBATIM_TOOL, "verbatim", environment}, words, kSoon);
  }
  /// With its output led elsewhere by a shell.
  Ending into(const std::string& redirection, const std::string& command) {
    return run({"/bin/sh", "sh", fabric_.environment()},
               {"-c", std::string("exec '") + VERBATIM_TOOL + "' " + command + ' ' + redirection},
               kSoon);
  }
  /// It has ended by itself, and neither well nor silently.
  static void expect_said(const Ending& ending, const std::string& where) {
    EXPECT_TRUE(ending.in_time) << where;
    EXPECT_EQ(ending.signal, 0) << where;
    EXPECT_GT(ending.status, 0) << where;
    EXPECT_NE(ending.err, "") << where;
  }

  PrivateFabric fabric_;
  FakeHost files_;
};

TEST_F(Absurd, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* command :
       {"topo", "topo --json", "topo --svg=-", "doctor", "doctor --json", "top", "top --json",
        "top --count=1000 --interval=0.001", "devices", "devinfo", "devinfo -l", "--help",
        "--version", "topo --help", "doctor --help", "top --help"}) {
    for (const char* redirection : {">/dev/full", ">&-"}) {
      const Ending ending = into(redirection, command);
      expect_said(ending, std::string(command) + redirection);
      EXPECT_THAT(ending.err, HasSubstr("cannot write")) << command << redirection;
    }
    const Ending full = into(">/dev/full", command);
    EXPECT_THAT(full.err, AnyOf(HasSubstr("No space left on device"), HasSubstr("disk full")))
        << command;
    EXPECT_EQ(std::count(full.err.begin(), full.err.end(), '\n'), 1) << command << full.err;
  }
}

TEST_F(Absurd, ADescriptionOfTheMachineThatIsNoneIsNamed) {
  if (!VBT_HAS_HWLOC) GTEST_SKIP() << "built without hwloc";
  files_.file("empty", "").file("text", "hello\n").file("directory/x", "");
  ASSERT_EQ(mkfifo(files_.path("fifo").c_str(), 0600), 0);
  files_.file("sparse", "");
  std::filesystem::resize_file(files_.path("sparse"), std::uintmax_t{10} << 30);
  for (const std::string& file :
       {std::string("/dev/zero"), std::string("/dev/full"), std::string("/nonexistent/x"),
        files_.path("fifo"), files_.path("directory"), files_.path("sparse"), files_.path("empty"),
        files_.path("text")}) {
    const Ending ending = tool({"topo"}, {{"HWLOC_XMLFILE", file}});
    expect_said(ending, file);
    EXPECT_THAT(ending.err, HasSubstr("HWLOC_XMLFILE=")) << file;
    EXPECT_TRUE(tool({"doctor"}, {{"HWLOC_XMLFILE", file}}).in_time) << file;
  }
  for (const char* text : {"nonsense", "node:1000000 pu:1000000", "pu:0", "%s%n%s", "pack:2 [",
                           "node:-1 pu:1", "99999999999999999999 1"}) {
    const Ending ending = tool({"topo"}, {{"HWLOC_SYNTHETIC", text}});
    expect_said(ending, text);
    EXPECT_THAT(ending.err, HasSubstr(std::string("HWLOC_SYNTHETIC=") + text));
  }
}

TEST_F(Absurd, APlaceToMeetThatIsNoneIsNamed) {
  ASSERT_EQ(mkfifo(files_.path("fifo").c_str(), 0600), 0);
  files_.file("sparse", "");
  std::filesystem::resize_file(files_.path("sparse"), std::uintmax_t{10} << 30);
  for (const std::string& place :
       {std::string("../x"), std::string("a/b"), std::string("/"), std::string("/dev/null"),
        std::string("/dev/zero"), std::string("/proc"), files_.path("fifo"), files_.path("sparse"),
        '/' + std::string(4000, 'c')}) {
    const Ending ending = tool({"devinfo"}, {{"VERBATIM_FABRIC", place}});
    expect_said(ending, place.substr(0, 40));
    EXPECT_THAT(ending.err,
                AnyOf(HasSubstr("VERBATIM_FABRIC"), HasSubstr("cannot use the folder /c")));
    const Ending found = tool({"doctor"}, {{"VERBATIM_FABRIC", place}});
    EXPECT_EQ(found.status, 1) << place.substr(0, 40);
    EXPECT_THAT(found.out, HasSubstr("fabric folder"));
  }
}

TEST_F(Absurd, ATreeOfPipesIsNoTreeOfDevices) {
  files_.device("rxe0", "uverbs0", "231:192");
  for (const std::string& file : files_.files()) {
    std::filesystem::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  }
  for (const Words& words : {Words{"devices"}, Words{"devinfo"}, Words{"doctor"}}) {
    const Ending ending = tool(words, {{"SYSFS_PATH", files_.path("sys")}});
    EXPECT_TRUE(ending.in_time) << words[0];
    EXPECT_THAT(ending.err, HasSubstr("couldn't read uverbs ABI version")) << words[0];
  }
}

TEST_F(Absurd, WhatTheEnvironmentOfRdmaCoreAsksForAndCannotHaveIsTold) {
  const Ending drivers = tool({"devices"}, {{"RDMAV_DRIVERS", "mlx5"}});
  EXPECT_EQ(drivers.status, 0);
  EXPECT_THAT(drivers.err, HasSubstr("couldn't load driver 'mlx5'"));
  const Ending tree = tool({"devices"}, {{"SYSFS_PATH", "/nonexistent/sys"}});
  EXPECT_EQ(tree.status, 0);
  EXPECT_THAT(tree.err, HasSubstr("unset SYSFS_PATH"));
  files_.device("rxe0", "uverbs0", "231:192");
  files_.file("sys/class/infiniband_verbs/abi_version", "99\n");
  const Ending abi = tool({"devices"}, {{"SYSFS_PATH", files_.path("sys")}});
  EXPECT_THAT(abi.err, HasSubstr("kernel ABI version 99 doesn't match library version"));
}

}  // namespace
}  // namespace verbatim::tools
