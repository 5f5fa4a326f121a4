// SPDX-License-Identifier: BSD-2-Clause
// `verbatim topo`: the same machine in three forms, of this host and of machines that are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/tools/fake_host.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class Topo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!VBT_HAS_HWLOC) GTEST_SKIP() << "built without hwloc";
  }
  Ending topo(const Words& arguments, const Environment& more = {}) {
    Words words{"topo"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run({VERBATIM_TOOL, "verbatim", fabric_.environment(more)}, words);
  }
  /// Of one of the made-up machines.
  static Environment of(const std::string& name) {
    return {{"HWLOC_XMLFILE", std::string(VERBATIM_TOPOLOGIES) + "/" + name}};
  }
  Json json(const Environment& more = {}) {
    const Ending ending = topo({"--json"}, more);
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_EQ(ending.err, "");
    return Json::parse(ending.out);
  }
  PrivateFabric fabric_;
};

/// How often `part` is in `text`.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

/// The title of the innermost frame (a group) that holds, at some depth, what is drawn as `part`,
/// beside that part's own.
std::string frame_around(const std::string& svg, const std::string& part) {
  std::vector<std::string> titles{""};  // of the groups that are open
  const std::size_t end = svg.find(part);
  if (end == std::string::npos) return "not drawn";
  for (std::size_t at = 0; at < end; ++at) {
    if (svg.compare(at, 3, "<g ") == 0) {
      titles.emplace_back();
    } else if (svg.compare(at, 4, "</g>") == 0) {
      titles.pop_back();
    } else if (svg.compare(at, 5, "<text") == 0 && titles.back().empty()) {
      const std::size_t from = svg.find('>', at) + 1;
      titles.back() = svg.substr(from, svg.find('<', from) - from);
    }
  }
  for (titles.pop_back(); !titles.empty(); titles.pop_back())
    if (!titles.back().empty()) return titles.back();
  return "nothing";
}

TEST_F(Topo, TellsThisHostAsTheKernelDoes) {
  const Json all = json();
  EXPECT_EQ(all["machine"]["origin"], "this host");
  std::size_t processors = 0;
  for (const Json& core : all["machine"]["cores"]) processors += core["processors"].size();
  EXPECT_EQ(processors, static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(all["process"]["processors"].size(), std::thread::hardware_concurrency());
  EXPECT_EQ(all["process"]["local_ranks"], nullptr);
  ASSERT_GE(all["devices"].size(), 1u);
  EXPECT_THAT(all["devices"].dump(), HasSubstr(R"({"name":"shm0","node":null})"));
}

TEST_F(Topo, PrintsNodesDistancesAndWhereBuffersGo) {
  const Ending ending = topo({}, of("two_sockets.xml"));
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("machine    HWLOC_XMLFILE: 2 packages, 2 nodes, 4 L3 caches, "
                                    "8 cores, 16 processors\n"));
  EXPECT_THAT(ending.out, HasSubstr("node 1     64 GiB, processors 8-15"));
  EXPECT_THAT(ending.out, HasSubstr("  L3       32 MiB, processors 4-7\n"));
  EXPECT_THAT(ending.out,
              HasSubstr("distances    0   1\n        0   10  21\n        1   21  10\n"));
  EXPECT_THAT(ending.out, HasSubstr("device     shm0: as near to one node as to another\n"));
}

TEST_F(Topo, SaysThatDistancesAreGuessed) {
  EXPECT_THAT(topo({}, {{"HWLOC_SYNTHETIC", "numa:2 pu:2"}}).out, HasSubstr("guesses"));
  EXPECT_THAT(topo({}, of("two_sockets.xml")).out, Not(HasSubstr("guesses")));
}

TEST_F(Topo, OrdersMemoryByDistanceAndLeavesOtherKindsOut) {
  const Json all = json(of("eight_nodes.xml"));
  const Json nodes = all["machine"]["nodes"];
  ASSERT_EQ(nodes.size(), 8u);
  EXPECT_EQ(nodes[5]["distances"], Json({32, 32, 32, 32, 12, 10, 12, 12}));
  for (const Json& node : nodes) EXPECT_EQ(node["allowed"], true) << "limits are this host's";
  EXPECT_EQ(nodes[5]["memory_order"], Json({5, 4, 6, 7, 0, 1, 2, 3}));
  const Json kinds = json(of("high_bandwidth.xml"))["machine"]["nodes"];
  EXPECT_EQ(kinds[1]["kind"], "high bandwidth");
  EXPECT_EQ(kinds[2]["memory_order"], Json({2, 0})) << "the other kind is for those who ask";
}

TEST_F(Topo, TellsFastCoresFromSlowOnes) {
  EXPECT_THAT(topo({}, of("two_kinds_of_cores.xml")).out,
              HasSubstr("kinds      processors 0-1: cores of kind 1, the fastest\n"
                        "           processors 2-5: cores of kind 0\n"));
}

TEST_F(Topo, CountsRanksAgainstCores) {
  const Ending ending = topo({}, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "100000"}});
  EXPECT_THAT(ending.out, HasSubstr("ranks      100000 on this host, more than cores"));
}

TEST_F(Topo, DrawsEveryPartOnce) {
  const std::string path = std::string(fabric_.environment()["XDG_RUNTIME_DIR"]) + "/machine.svg";
  const Ending ending = topo({"--svg", path}, of("two_sockets.xml"));
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.out, "");
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  const std::string svg = read.str();
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(count(svg, "class=\"package\""), 2u);
  EXPECT_EQ(count(svg, ">node "), 2u);
  EXPECT_EQ(count(svg, "class=\"cache\""), 4u);
  EXPECT_EQ(count(svg, "class=\"core\""), 8u);
  EXPECT_EQ(count(svg, "class=\"number\""), 16u);
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  EXPECT_EQ(topo({"--svg", "-"}, of("two_sockets.xml")).out.rfind("<svg ", 0), 0u);
}

TEST_F(Topo, ADeviceIsShownOnTheNodeThatTheKernelSaysItIsOn) {
  FakeHost host;
  // One that says so itself, one whose network device does, one of which nobody says anything, one
  // on a node that this machine does not have.
  host.file("sys/class/infiniband/shm0/device/numa_node", "1\n");
  host.file("sys/class/infiniband/shm1/ports/1/gid_attrs/ndevs/0", "eth7\n");
  host.file("sys/class/net/eth7/device/numa_node", "0\n");
  host.file("sys/class/infiniband/shm2/device/numa_node", "-1\n");
  host.file("sys/class/infiniband/shm3/device/numa_node", "7\n");
  Environment where = of("two_sockets.xml");
  where["SYSFS_PATH"] = host.path("sys");
  where["VERBATIM_SHM_DEVICES"] = "4";

  const Ending ending = topo({}, where);
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("device     shm0: on node 1; threads on processors 8-15; "
                                    "buffers: node 1, then 0\n"));
  EXPECT_THAT(ending.out, HasSubstr("device     shm1: on node 0; threads on processors 0-7; "
                                    "buffers: node 0, then 1\n"));
  for (const char* name : {"shm2", "shm3"})
    EXPECT_THAT(ending.out, HasSubstr(std::string("device     ") + name +
                                      ": as near to one node as to another\n"));

  const Json devices = json(where)["devices"];
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0], Json({{"name", "shm0"}, {"node", 1}}));
  EXPECT_EQ(devices[1], Json({{"name", "shm1"}, {"node", 0}}));
  EXPECT_EQ(devices[2], Json({{"name", "shm2"}, {"node", nullptr}}));

  // Drawn within the frame of its node: behind its title, before the frame is closed.
  const std::string svg = topo({"--svg", "-"}, where).out;
  EXPECT_EQ(count(svg, "class=\"device\""), 4u);
  EXPECT_EQ(frame_around(svg, ">shm0<"), "node 1: 64 GiB");
  EXPECT_EQ(frame_around(svg, ">shm1<"), "node 0: 64 GiB");
  EXPECT_EQ(frame_around(svg, ">shm2<"), "HWLOC_XMLFILE: 16 processors, 2 nodes");
}

TEST_F(Topo, ABrokenDescriptionIsOneLineAndTheRestIsTold) {
  for (const Words& arguments : {Words{}, Words{"--json"}}) {
    const Ending ending = topo(arguments, {{"HWLOC_SYNTHETIC", "numa:x"}});
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(count(ending.err, "\n"), 1u) << ending.err;
    EXPECT_THAT(ending.err, HasSubstr("HWLOC_SYNTHETIC=numa:x"));
    EXPECT_THAT(ending.out, HasSubstr("shm0"));
  }
  const Ending drawn = topo({"--svg", "-"}, {{"HWLOC_SYNTHETIC", "numa:x"}});
  EXPECT_EQ(drawn.status, 1);
  EXPECT_EQ(drawn.out, "");
}

TEST_F(Topo, WhatIsMistypedIsNamed) {
  for (const auto& [arguments, says] :
       {std::pair<Words, const char*>{{"--jason"}, "there is no option '--jason'"},
        {{"extra"}, "'extra' is too much"},
        {{"--svg"}, "'--svg' needs a value"},
        {{"--svg", "/nonexistent/x.svg"}, "cannot write /nonexistent/x.svg: No such file"},
        {{"--json", "--svg", "x"}, "not both"}}) {
    const Ending ending = topo(arguments);
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(ending.out, "");
    EXPECT_EQ(count(ending.err, "\n"), 1u) << ending.err;
    EXPECT_THAT(ending.err, HasSubstr(says));
  }
}

}  // namespace
}  // namespace verbatim::tools
