// SPDX-License-Identifier: BSD-2-Clause
//
// `verbatim perf scaling`: curves against how many objects there are, and what becomes of the many
// processes that it starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/records.hpp"
#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;

const Program kScalingTool = {VERBATIM_TOOL, "verbatim", {}};

TEST(PerfScaling, FitsASlopeToEachClaim) {
  const TestFolder folder;
  const Ending ending =
      run(kScalingTool, {"perf", "scaling", "--quick", "--rounds", "2", "--block-us", "300",
                         "--seconds", "2", "--jsonl", folder.path("s")});
  ASSERT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.err, "");
  EXPECT_THAT(ending.out, HasSubstr("Claims of O(1)"));
  std::istringstream lines(folder.read("s"));
  std::size_t polls = 0, writes = 0, threads = 0;
  std::map<std::string, std::vector<unsigned>> among_peers;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    polls += record["name"] == "empty poll" && record["parameter"] == "qps";
    writes += record["parameter"] == "mrs";
    threads += record["parameter"] == "threads";
    EXPECT_FALSE(record.contains("missing")) << line;
    EXPECT_GT(record["median"].get<double>(), 0) << line;
    EXPECT_EQ(record["seed"], 0) << "nothing is in a random order";
    if (record["parameter"] != "peers") continue;
    among_peers[record["name"]].push_back(record["at"]);
    const bool is_memory = record["name"] == "memory of the hub for each peer";
    EXPECT_EQ(record["unit"], is_memory ? "KiB" : "ns");
  }
  EXPECT_EQ(among_peers.size(), 4u);
  for (const auto& [name, numbers] : among_peers) {
    EXPECT_EQ(numbers, (std::vector<unsigned>{1, 2, 4, 8})) << name;
    EXPECT_THAT(ending.out, HasSubstr("\n" + name)) << "and a slope";
  }
  EXPECT_EQ(polls, 5u);
  EXPECT_EQ(writes, 3u);
  EXPECT_EQ(threads, 3u);
}

TEST(PerfScaling, AWrongArgumentIsNamed) {
  const Ending ending = run(kScalingTool, {"perf", "scaling", "--most-qps", "many"});
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, HasSubstr("'many' is not a number from 1 to 10000 (--most-qps)"));
  const Ending peers = run(kScalingTool, {"perf", "scaling", "--most-peers", "65"});
  EXPECT_THAT(peers.err, HasSubstr("'65' is not a number from 1 to 64 (--most-peers)"));
  const Ending seed = run(kScalingTool, {"perf", "scaling", "--seed", "7"});
  EXPECT_EQ(seed.status, 1);
  EXPECT_THAT(seed.err, HasSubstr("unknown option --seed"));
  EXPECT_EQ(run(kScalingTool, {"perf", "scaling", "--jsonl", "/nowhere/f"}).status, 1);
  const Ending full = run(kScalingTool, {"perf", "scaling", "--quick", "--rounds", "1", "--seconds",
                                         "1", "--most-qps", "1", "--csv", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write all of '/dev/full': No space left on device"));
}

/// The processes of a run that has come to its peers: a hub and at least four of them.
std::vector<pid_t> peers_of(const ToolProcess& process) {
  const auto end = std::chrono::steady_clock::now() + kEnding;
  while (std::chrono::steady_clock::now() < end) {
    const std::vector<pid_t> children = children_of(process.pid());
    if (children.size() >= 5) return children;
    if (access(("/proc/" + std::to_string(process.pid()) + "/exe").c_str(), F_OK) != 0) break;
    sched_yield();
  }
  return {};
}

class ManyPeers : public ::testing::Test {
 protected:
  ManyPeers()
      : process_(kScalingTool,
                 {"perf", "scaling", "--quick", "--most-qps", "1", "--rounds", "2", "--block-us",
                  "300", "--seconds", "3", "--jsonl", folder_.path("f")}),
        peers_(peers_of(process_)) {}

  void expect_all_are_gone() const {
    EXPECT_GE(peers_.size(), 5u);
    for (const pid_t peer : peers_) EXPECT_EQ(kill(peer, 0), -1) << peer;
  }

  TestFolder folder_;
  ToolProcess process_;
  std::vector<pid_t> peers_;
};

TEST_F(ManyPeers, EndWithCtrlCAndWhatWasMeasuredIsWritten) {
  process_.signal(SIGINT);
  const Ending ending = process_.finish();
  EXPECT_EQ(ending.status, 128 + SIGINT);
  EXPECT_EQ(ending.err, "");
  EXPECT_THAT(ending.out, HasSubstr("interrupted: what was measured till then"));
  EXPECT_THAT(folder_.read("f"), HasSubstr("\"parameter\":\"peers\""));
  expect_all_are_gone();
}

TEST_F(ManyPeers, OfWhichOneDiesAreSaidAndTheRestIsMeasured) {
  ASSERT_GE(peers_.size(), 5u);
  kill(peers_.back(), SIGKILL);
  const Ending ending = process_.finish();
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, HasSubstr("verbatim perf scaling: not all is measured: "));
  EXPECT_THAT(ending.err, HasSubstr("process"));
  EXPECT_THAT(ending.out, HasSubstr("send mapped"));
  expect_all_are_gone();
}

}  // namespace
}  // namespace verbatim::tools
