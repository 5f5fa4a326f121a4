// SPDX-License-Identifier: BSD-2-Clause
// On which nodes vbt_alloc puts a block, decided on machines that are made up.
#include "runtime/memory/node_choice.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/unit_topo/made_machine.hpp"

namespace verbatim {
namespace {

struct Decision {
  int error;
  std::vector<std::uint32_t> nodes;
  std::uint32_t fallbacks;
  std::string reason;
};

Decision decide(const topo::Machine& machine, const topo::ProcessLimits& limits,
                const NodeWish& wish) {
  NodeChoice choice;
  const int error = choose_nodes(machine, limits, wish, choice);
  return {error, {choice.nodes, choice.nodes + choice.count}, choice.fallbacks, choice.reason};
}

using Nodes = std::vector<std::uint32_t>;

/// Two nodes, with the kernel's numbers 0 and 3, as if they were this host's: limits count.
class TwoNodes : public ::testing::Test {
 protected:
  TwoNodes() : made_(topo::made_by_hand()), machine(made_.bytes()) {
    limits.nodes_known = true;
    limits.nodes.add(0);
    limits.nodes.add(3);
  }
  void forbid_node_3() {
    limits.nodes.clear();
    limits.nodes.add(0);
  }

 private:
  topo::Snapshot made_;

 protected:
  topo::Machine machine;
  topo::ProcessLimits limits;
};

TEST_F(TwoNodes, LocalIsTheNodeOfTheThread) {
  for (const std::uint32_t index : {0u, 1u}) {
    const Decision local =
        decide(machine, limits, {.where = VBT_WHERE_LOCAL, .thread_node = index});
    EXPECT_EQ(local.error, 0);
    EXPECT_EQ(local.nodes, Nodes{index * 3});
    EXPECT_EQ(local.fallbacks, 0u);
  }
}

TEST_F(TwoNodes, LocalToANodeThatIsForbiddenIsTheNextOneAndSaysSo) {
  forbid_node_3();
  const Decision local = decide(machine, limits, {.where = VBT_WHERE_LOCAL, .thread_node = 1});
  EXPECT_EQ(local.error, 0);
  EXPECT_EQ(local.nodes, Nodes{0});
  EXPECT_EQ(local.fallbacks, unsigned{VBT_FALLBACK_NODE});
  EXPECT_NE(local.reason.find("cpuset"), std::string::npos);
}

TEST_F(TwoNodes, ANodeHasTheKernelsNumber) {
  EXPECT_EQ(decide(machine, limits, {.where = VBT_WHERE_NODE, .node = 3}).nodes, Nodes{3});
  const Decision impossible = decide(machine, limits, {.where = VBT_WHERE_NODE, .node = 1});
  EXPECT_EQ(impossible.error, EINVAL);
  EXPECT_NE(impossible.reason, "");
  forbid_node_3();
  EXPECT_EQ(decide(machine, limits, {.where = VBT_WHERE_NODE, .node = 3}).error, EINVAL);
}

TEST_F(TwoNodes, ADeviceIsOnItsNodeOrWhereTheThreadIs) {
  NodeWish wish{.where = VBT_WHERE_DEVICE, .device_node = 3, .thread_node = 0};
  EXPECT_EQ(decide(machine, limits, wish).nodes, Nodes{3});
  EXPECT_EQ(decide(machine, limits, wish).fallbacks, 0u);
  wish.device_node = topo::kNone;
  EXPECT_EQ(decide(machine, limits, wish).nodes, Nodes{0});
  EXPECT_EQ(decide(machine, limits, wish).fallbacks, unsigned{VBT_FALLBACK_NODE});
}

TEST_F(TwoNodes, SpreadBeginsNearTheThreadAndLeavesOutWhatIsForbidden) {
  NodeWish wish{.where = VBT_WHERE_SPREAD, .thread_node = 1};
  EXPECT_EQ(decide(machine, limits, wish).nodes, (Nodes{3, 0}));
  forbid_node_3();
  EXPECT_EQ(decide(machine, limits, wish).nodes, Nodes{0});
  wish.where = VBT_WHERE_INTERLEAVED;
  EXPECT_EQ(decide(machine, limits, wish).nodes, Nodes{0});
}

TEST(NodeChoice, APlaceThatIsNoneIsRefused) {
  const Decision none = decide(topo::Machine(), {}, {.where = VBT_WHERE_SPREAD + 1});
  EXPECT_EQ(none.error, EINVAL);
}

TEST(NodeChoice, OnAnUnknownMachineTheKernelIsAskedOrLeftAlone) {
  const topo::Machine unknown;
  topo::ProcessLimits limits;
  const Decision local = decide(unknown, limits, {.where = VBT_WHERE_LOCAL});
  EXPECT_EQ(local.error, 0);
  EXPECT_TRUE(local.nodes.empty());
  EXPECT_EQ(local.fallbacks, unsigned{VBT_FALLBACK_UNKNOWN});
  limits.nodes_known = true;
  limits.nodes.add(2);
  limits.nodes.add(5);
  EXPECT_EQ(decide(unknown, limits, {.where = VBT_WHERE_NODE, .node = 5}).nodes, Nodes{5});
  EXPECT_EQ(decide(unknown, limits, {.where = VBT_WHERE_NODE, .node = 4}).error, EINVAL);
  EXPECT_EQ(decide(unknown, limits, {.where = VBT_WHERE_NODE, .node = 1u << 31}).error, EINVAL);
  EXPECT_EQ(decide(unknown, limits, {.where = VBT_WHERE_INTERLEAVED}).nodes, (Nodes{2, 5}));
}

TEST(NodeChoice, EightNodesAreTakenByDistanceAllOfThem) {
  if (!topo::has_reader()) GTEST_SKIP() << "built without hwloc";
  const topo::PrivateRuntime runtime;
  const auto eight = topo::Described::text("numa:8 core:2 pu:1");
  const Decision spread = decide(eight.machine, {}, {.where = VBT_WHERE_SPREAD, .thread_node = 5});
  ASSERT_EQ(spread.nodes.size(), 8u);
  EXPECT_EQ(spread.nodes[0], 5u);
  EXPECT_EQ(decide(eight.machine, {}, {.where = VBT_WHERE_NODE, .node = 7}).nodes, Nodes{7});
  EXPECT_EQ(decide(eight.machine, {}, {.where = VBT_WHERE_NODE, .node = 8}).error, EINVAL);
}

}  // namespace
}  // namespace verbatim
