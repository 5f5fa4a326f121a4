// SPDX-License-Identifier: BSD-2-Clause
// The questions, on machines without hwloc: one made by hand, and the unknown one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/topo/device_node.hpp"
#include "runtime/topo/launcher.hpp"
#include "tests/unit_topo/made_machine.hpp"

namespace verbatim::topo {
namespace {

TEST(Machine, AnswersWithIndicesToNumbersOfTheKernel) {
  const Snapshot made = made_by_hand();
  const Machine machine(made.bytes());
  EXPECT_EQ(machine.node_of_cpu(1), 0u);
  EXPECT_EQ(machine.node_of_cpu(69), 1u);
  EXPECT_EQ(machine.node_of_cpu(2), kNone) << "a hole in the numbers";
  EXPECT_EQ(machine.node_by_number(3), 1u);
  EXPECT_EQ(machine.node_by_number(1), kNone);
  EXPECT_EQ(machine.cpus_of_node(1)[1], 0x30u);
}

TEST(Machine, GivesAsManyOfTheNearestNodesAsAreAskedFor) {
  const Snapshot made = made_by_hand();
  const Machine machine(made.bytes());
  std::array<std::uint32_t, 3> order{7, 7, 7};
  EXPECT_EQ(machine.nodes_by_distance(1, order), 2u);
  EXPECT_THAT(order, ::testing::ElementsAre(1, 0, 7));
  EXPECT_EQ(machine.nodes_by_distance(1, std::span(order).first(1)), 1u);
  EXPECT_EQ(order[0], 1u);
  EXPECT_EQ(machine.nodes_by_distance(0, {}), 0u);
  EXPECT_EQ(machine.nodes_by_distance(2, order), 0u);
}

TEST(Machine, OfWhichNothingIsKnownAnswersNothing) {
  const Machine machine;
  EXPECT_FALSE(machine.known());
  EXPECT_EQ(machine.node_of_cpu(0), kNone);
  EXPECT_EQ(machine.group_of_cpu(0), kNone);
  EXPECT_EQ(machine.node_of_this_thread(), kNone);
  EXPECT_EQ(machine.node_by_number(0), kNone);
  EXPECT_EQ(machine.distance(0, 0), kNone);
  EXPECT_TRUE(machine.nodes().empty() && machine.cores().empty() &&
              machine.cpus_of_node(0).empty());
}

TEST(Launcher, TellsTheRanksOfThisHost) {
  EXPECT_EQ(local_ranks().count, kNone);
  EXPECT_FALSE(cores_are_short(local_ranks(), 1)) << "nobody said how many there are";
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
  EXPECT_EQ(local_ranks().count, 4u);
  EXPECT_EQ(local_ranks().rank, 3u);
  EXPECT_TRUE(cores_are_short(local_ranks(), 3));
  EXPECT_FALSE(cores_are_short(local_ranks(), 4));
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

/// A device tree of its own. (Where it is, the library reads once.)
class DeviceNode : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static char name[] = "/tmp/vbt-sysfs-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root = name;
    ::setenv("SYSFS_PATH", name, 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(root); }
  static void file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root / "class" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  static inline std::filesystem::path root;
};

TEST_F(DeviceNode, OfADeviceThatTheKernelDoesNotHaveIsUnknown) {
  for (const char* name : {"shm0", "", ".", "..", "../../block/sda", "a/b"})
    EXPECT_EQ(node_number_of_device(name), kNone) << name;
}

TEST_F(DeviceNode, IsWhereTheDeviceIsAttached) {
  file("infiniband/mlx5_0/device/numa_node", "3\n");
  EXPECT_EQ(node_number_of_device("mlx5_0"), 3u);
  for (const char* text : {"-1\n", "", "x\n", "99999999999999999999\n"}) {
    file("infiniband/mlx5_0/device/numa_node", text);
    EXPECT_EQ(node_number_of_device("mlx5_0"), kNone) << text;
  }
}

TEST_F(DeviceNode, OfADeviceMadeOfSoftwareIsThatOfItsNetworkDevice) {
  file("net/eth0/device/numa_node", "1\n");
  file("infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
  EXPECT_EQ(node_number_of_device("rxe0"), 1u);
  for (const char* network : {"eth1\n", "", "..\n", "../net/eth0\n", "eth0/.\n"}) {
    file("infiniband/rxe0/ports/1/gid_attrs/ndevs/0", network);
    EXPECT_EQ(node_number_of_device("rxe0"), kNone) << network;
  }
}

}  // namespace
}  // namespace verbatim::topo
