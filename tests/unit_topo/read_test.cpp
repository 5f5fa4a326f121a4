// SPDX-License-Identifier: BSD-2-Clause
// What hwloc's descriptions become: recorded shapes of machines, and descriptions that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "runtime/topo/synthetic_size.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_topo/made_machine.hpp"

#ifdef VBT_UNDER_SANITIZER
// hwloc forgets an object of a file that it gives up; a process reads at most one such file.
extern "C" const char* __lsan_default_suppressions() { return "leak:hwloc_alloc_setup_object\n"; }
#endif

namespace verbatim::topo {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Read : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_reader()) GTEST_SKIP() << "built without hwloc";
  }
  PrivateRuntime runtime_;
};

TEST_F(Read, TwoSocketsAreTwoNodesFarApart) {
  const Described two = Described::file("two_sockets.xml");
  const Machine& machine = two.machine;
  ASSERT_TRUE(machine.known());
  EXPECT_EQ(machine.head().origin, Origin::kXml);
  ASSERT_THAT(machine.nodes(), SizeIs(2));
  EXPECT_THAT(machine.groups(), SizeIs(4));
  EXPECT_THAT(machine.cores(), SizeIs(8));
  EXPECT_THAT(machine.pus(), SizeIs(16));
  for (std::uint32_t node = 0; node < 2; ++node) {
    EXPECT_EQ(machine.nodes()[node].number, node);
    EXPECT_EQ(machine.nodes()[node].package, node);
    EXPECT_EQ(machine.nodes()[node].memory_bytes, std::uint64_t{64} << 30);
    EXPECT_EQ(machine.nodes()[node].cpu_count, 8u);
    EXPECT_EQ(machine.cpus_of_node(node)[0], node == 0 ? 0xffu : 0xff00u);
    EXPECT_EQ(machine.distance(node, node), 10u);
    EXPECT_EQ(machine.distance(node, 1 - node), 21u);
  }
  EXPECT_EQ(machine.head().distances_told, 1u);
  for (std::uint32_t cpu = 0; cpu < 16; ++cpu) {
    EXPECT_EQ(machine.node_of_cpu(cpu), cpu / 8);
    EXPECT_EQ(machine.group_of_cpu(cpu), cpu / 4);
    EXPECT_EQ(machine.pus()[machine.pu_of_cpu(cpu)].core, cpu / 2);
  }
  EXPECT_EQ(machine.groups()[3].cache_bytes, 32u << 20);
  EXPECT_EQ(machine.groups()[3].node, 1u);
}

TEST_F(Read, WhatTheMachineDoesNotHaveIsNowhere) {
  const Described two = Described::file("two_sockets.xml");
  for (const std::uint32_t cpu : {16u, 64u, 65536u, kNone}) {
    EXPECT_EQ(two.machine.node_of_cpu(cpu), kNone);
    EXPECT_EQ(two.machine.group_of_cpu(cpu), kNone);
  }
  EXPECT_EQ(two.machine.distance(0, 2), kNone);
  EXPECT_EQ(two.machine.distance(kNone, 0), kNone);
  EXPECT_EQ(two.machine.node_by_number(2), kNone);
  EXPECT_TRUE(two.machine.cpus_of_node(2).empty());
}

TEST_F(Read, EightNodesInTwoPackagesAreOrderedByDistance) {
  const Described eight = Described::file("eight_nodes.xml");
  ASSERT_THAT(eight.machine.nodes(), SizeIs(8));
  std::array<std::uint32_t, 8> order{};
  ASSERT_EQ(eight.machine.nodes_by_distance(6, order), 8u);
  EXPECT_THAT(order, ::testing::ElementsAre(6, 4, 5, 7, 0, 1, 2, 3));
  for (std::uint32_t node = 0; node < 8; ++node)
    EXPECT_EQ(eight.machine.nodes()[node].package, node / 4);
}

TEST_F(Read, HighBandwidthMemoryIsNobodysOwnAndComesLast) {
  const Described machine = Described::file("high_bandwidth.xml");
  ASSERT_THAT(machine.machine.nodes(), SizeIs(4));
  EXPECT_EQ(machine.machine.nodes()[0].kind, NodeKind::kMain);
  EXPECT_EQ(machine.machine.nodes()[1].kind, NodeKind::kHighBandwidth);
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu)
    EXPECT_EQ(machine.machine.node_of_cpu(cpu), cpu / 4 * 2);
  std::array<std::uint32_t, 4> order{};
  ASSERT_EQ(machine.machine.nodes_by_distance(2, order), 4u);
  EXPECT_THAT(order, ::testing::ElementsAre(2, 0, 3, 1));
}

TEST_F(Read, CoresOfTwoKindsAreTold) {
  const Described machine = Described::file("two_kinds_of_cores.xml");
  ASSERT_THAT(machine.machine.cores(), SizeIs(6));
  for (std::uint32_t core = 0; core < 6; ++core)
    EXPECT_EQ(machine.machine.cores()[core].efficiency, core < 2 ? 1u : 0u);
  const Described alike = Described::file("two_sockets.xml");
  for (const Core& core : alike.machine.cores()) EXPECT_EQ(core.efficiency, kNone);
}

TEST_F(Read, AMachineWithoutNumaIsOneNode) {
  const Described machine = Described::file("no_numa.xml");
  ASSERT_THAT(machine.machine.nodes(), SizeIs(1));
  EXPECT_EQ(machine.machine.distance(0, 0), 10u);
  EXPECT_EQ(machine.machine.head().distances_told, 0u);
  EXPECT_THAT(machine.machine.groups(), SizeIs(0));
  for (std::uint32_t cpu = 0; cpu < 4; ++cpu) {
    EXPECT_EQ(machine.machine.node_of_cpu(cpu), 0u);
    EXPECT_EQ(machine.machine.group_of_cpu(cpu), kNone);
  }
}

TEST_F(Read, ADescriptionWithoutCoresHasOnePerProcessor) {
  const Described machine = Described::text("numa:2 pu:4");
  ASSERT_THAT(machine.machine.cores(), SizeIs(8));
  EXPECT_EQ(machine.machine.head().origin, Origin::kSynthetic);
  for (const Core& core : machine.machine.cores()) EXPECT_EQ(core.pu_count, 1u);
}

TEST_F(Read, TheLargestMachineFitsAndALargerOneIsRefused) {
  const Described largest = Described::text("numa:64 core:128 pu:2");
  EXPECT_THAT(largest.machine.pus(), SizeIs(kMaxPus));
  unit::CapturedStderr spoken;
  const Described larger = Described::text("numa:64 core:129 pu:2");
  EXPECT_FALSE(larger.machine.known());
  EXPECT_THAT(spoken.text(), HasSubstr("larger than any machine"));
}

TEST_F(Read, AMachineThatNobodyHasIsNotMade) {
  const unit::CapturedStderr spoken;
  for (const char* text :
       {"node:1000000 pu:1000000", "4096 4096 4096", "l3:0x7fffffff l2:9999 1", "pack:-1 pu:1",
        "[numa(memory=1)] pack:65536(indexes=0) [numa] pu:65536", "99999999999999999999999 1"}) {
    EXPECT_EQ(synthetic_objects(text) > kMaxSyntheticObjects, true) << text;
    Snapshot snapshot;
    ::setenv("HWLOC_SYNTHETIC", text, 1);
    EXPECT_FALSE(find_machine(snapshot)) << text;
  }
  EXPECT_EQ(synthetic_objects("pack:2 [numa(memory=4096)] l3:2(size=99999999) core:4 pu:2"),
            1u + 2 + 4 + 16 + 32);
  EXPECT_EQ(synthetic_objects("2 3"), 1u + 2 + 6);
  EXPECT_EQ(synthetic_objects(""), 1u);
  EXPECT_LE(synthetic_objects("pu:1 [("), kMaxSyntheticObjects);
}

TEST_F(Read, ThisHostIsReadWhole) {
  Snapshot snapshot;
  ASSERT_TRUE(find_machine(snapshot));
  const Machine machine(snapshot.bytes());
  EXPECT_EQ(machine.head().origin, Origin::kThisHost);
  EXPECT_EQ(machine.pus().size(), static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_LT(machine.node_of_this_thread(), machine.nodes().size());
}

TEST_F(Read, WhatIsNoMachineIsSaidInOneLineAndUnknown) {
  const std::string folder = runtime_.root();
  std::ofstream(folder + "/empty.xml");
  std::ofstream(folder + "/other.xml") << "<html><body>hello</body></html>\n";
  const std::pair<const char*, std::string> wrong[] = {
      {"HWLOC_SYNTHETIC", "pack:2 numa:x"},
      {"HWLOC_SYNTHETIC", "pu:-1"},
      {"HWLOC_SYNTHETIC", "nonsense"},
      {"HWLOC_XMLFILE", folder + "/missing.xml"},
      {"HWLOC_XMLFILE", folder},
      {"HWLOC_XMLFILE", folder + "/empty.xml"},
      {"HWLOC_XMLFILE", folder + "/other.xml"},
  };
  for (const auto& [variable, value] : wrong) {
    unit::CapturedStderr spoken;
    const Described machine(variable, value);
    EXPECT_FALSE(machine.machine.known()) << value;
    EXPECT_THAT(machine.machine.nodes(), SizeIs(0));
    EXPECT_EQ(machine.machine.node_of_this_thread(), kNone);
    EXPECT_EQ(spoken.lines(), 1) << spoken.text();
    EXPECT_THAT(spoken.text(), HasSubstr(value.substr(0, 60)));
    EXPECT_THAT(spoken.text(), HasSubstr(variable));
  }
}

TEST_F(Read, ABrokenFileNeverEndsTheProgram) {
  std::ifstream whole(std::string(VERBATIM_TOPOLOGIES) + "/two_sockets.xml");
  std::stringstream read;
  read << whole.rdbuf();
  const std::string text = read.str();
  const std::string path = runtime_.root() + "/broken.xml";
  int refused = 0;
  int tried = 0;
  const auto look = [&](const std::string& broken) {
    std::ofstream(path) << broken;
    unit::CapturedStderr spoken;
    const Described machine("HWLOC_XMLFILE", path);
    ++tried;
    refused += !machine.machine.known();
    EXPECT_EQ(spoken.lines(), machine.machine.known() ? 0 : 1) << spoken.text();
  };
  for (std::size_t cut = 0; cut < text.size(); cut += 97) look(text.substr(0, cut));
  // One byte after the other turned into what a parser stumbles over.
  for (std::size_t at = 0; at < text.size(); at += 41) {
    std::string broken = text;
    broken[at] = "\"<>9f\n"[at / 41 % 6];
    look(broken);
  }
  EXPECT_GT(refused, tried / 4);
  EXPECT_TRUE(Described::file("two_sockets.xml").machine.known()) << "hwloc was given up";
}

}  // namespace
}  // namespace verbatim::topo
