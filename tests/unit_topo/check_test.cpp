// SPDX-License-Identifier: BSD-2-Clause
// Bytes that claim to be a machine: each rule broken once, with a checksum that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit_topo/made_machine.hpp"

namespace verbatim::topo {
namespace {

using ::testing::StrEq;

const char* check(const Snapshot& made) { return check_machine(made.bytes(), made.size()); }

/// Breaks a good machine, makes its checksum right, and says what the check says.
const char* broken(const std::function<void(Snapshot&, const MachineTables&)>& breaking) {
  Snapshot made = made_by_hand();
  breaking(made, MachineTables(made.head()));
  made.head().checksum = machine_checksum(made.bytes(), made.size());
  return check(made);
}

TEST(Check, AGoodMachineIsAccepted) { EXPECT_EQ(check(made_by_hand()), nullptr); }

TEST(Check, EveryByteIsCovered) {
  const Snapshot made = made_by_hand();
  for (std::size_t at = 0; at < made.size(); ++at) {
    made.bytes()[at] ^= 0x40;
    EXPECT_NE(check(made), nullptr) << "byte " << at;
    made.bytes()[at] ^= 0x40;
  }
}

TEST(Check, EveryLengthButItsOwnIsRefused) {
  const Snapshot made = made_by_hand();
  for (std::size_t size = 0; size < made.size(); ++size)
    EXPECT_NE(check_machine(made.bytes(), size), nullptr) << size;
}

TEST(Check, CountsAreWithinReason) {
  using Head = MachineHead;
  const std::pair<std::uint32_t Head::*, const char*> counts[] = {
      {&Head::node_count, "no sane number of nodes"},
      {&Head::group_count, "no sane number of L3 caches"},
      {&Head::core_count, "no sane number of cores"},
      {&Head::pu_count, "no sane number of processors"},
      {&Head::package_count, "no sane number of packages"},
      {&Head::cpu_end, "no sane highest processor"}};
  for (const auto& [count, answer] : counts) {
    for (const std::uint32_t value : {kNone, kNone - 63, 0x80000000u})
      EXPECT_THAT(
          broken([&, member = count](Snapshot& made, auto&) { made.head().*member = value; }),
          StrEq(answer));
  }
  EXPECT_THAT(broken([](Snapshot& made, auto&) { made.head().node_count = 0; }),
              StrEq("no sane number of nodes"));
  EXPECT_THAT(broken([](Snapshot& made, auto&) { made.head().node_count = 3; }),
              StrEq("its size is wrong"));
  EXPECT_THAT(broken([](Snapshot& made, auto&) { made.head().cpu_end = 3; }),
              StrEq("no sane highest processor"));
  EXPECT_THAT(broken([](Snapshot& made, auto&) { made.head().origin = static_cast<Origin>(9); }),
              StrEq("it comes from nowhere known"));
  EXPECT_THAT(broken([](Snapshot& made, auto&) { made.head().version = kLayoutVersion + 1; }),
              StrEq("it has another version"));
}

TEST(Check, IndicesLeadIntoTheirTables) {
  using At = const MachineTables&;
  const auto node = [](auto member, auto value) {
    return broken([=](Snapshot& made, At at) { made.table<Node>(at.nodes)[1].*member = value; });
  };
  EXPECT_THAT(node(&Node::package, 2u), StrEq("a node is wrong"));
  EXPECT_THAT(node(&Node::number, 0u), StrEq("a node is wrong")) << "the number of the node before";
  EXPECT_THAT(node(&Node::kind, static_cast<NodeKind>(2)), StrEq("a node is wrong"));
  EXPECT_THAT(node(&Node::cpu_count, 3u), StrEq("a node has another number of processors"));
  EXPECT_EQ(node(&Node::package, kNone), nullptr);

  const auto group = [](auto member, std::uint32_t value) {
    return broken([=](Snapshot& made, At at) { made.table<Group>(at.groups)[1].*member = value; });
  };
  for (const auto member : {&Group::package, &Group::node, &Group::pu_count})
    EXPECT_THAT(group(member, 3), StrEq("an L3 cache is wrong"));
  EXPECT_THAT(group(&Group::first_pu, 4), StrEq("an L3 cache is wrong"));
  EXPECT_THAT(group(&Group::pu_count, 0), StrEq("an L3 cache is wrong"));
  EXPECT_THAT(group(&Group::pu_count, kNone), StrEq("an L3 cache is wrong"));

  const auto core = [](auto member, std::uint32_t value) {
    return broken([=](Snapshot& made, At at) { made.table<Core>(at.cores)[1].*member = value; });
  };
  for (const auto member : {&Core::package, &Core::group, &Core::node, &Core::pu_count})
    EXPECT_THAT(core(member, 3), StrEq("a core is wrong"));
  EXPECT_THAT(core(&Core::first_pu, kNone), StrEq("a core is wrong"));

  const auto pu = [](auto member, std::uint32_t value) {
    return broken([=](Snapshot& made, At at) { made.table<Pu>(at.pus)[1].*member = value; });
  };
  for (const auto member : {&Pu::core, &Pu::group, &Pu::node})
    EXPECT_THAT(pu(member, 2), StrEq("a processor is wrong"));
  EXPECT_THAT(pu(&Pu::cpu, 70), StrEq("a processor is wrong"));
  EXPECT_THAT(pu(&Pu::cpu, 0), StrEq("a processor is wrong")) << "the number of another one";
}

TEST(Check, TablesAgreeWithEachOther) {
  using At = const MachineTables&;
  EXPECT_THAT(broken([](Snapshot& made, At at) { made.table<std::uint32_t>(at.pu_of_cpu)[5] = 1; }),
              StrEq("a processor's number is wrong"));
  EXPECT_THAT(broken([](Snapshot& made, At at) { made.table<std::uint32_t>(at.pu_of_cpu)[5] = 4; }),
              StrEq("a processor's number is wrong"));
  EXPECT_THAT(
      broken([](Snapshot& made, At at) { made.table<std::uint64_t>(at.cpus)[0] |= 1u << 2; }),
      StrEq("a node has a strange processor"));
  EXPECT_THAT(
      broken([](Snapshot& made, At at) { made.table<std::uint64_t>(at.cpus)[1] |= 1u << 6; }),
      StrEq("a node has a strange processor"));
  EXPECT_THAT(broken([](Snapshot& made, At at) { made.table<std::uint32_t>(at.distances)[1] = 0; }),
              StrEq("a distance is wrong"));
}

TEST(Check, WhatIsAcceptedCanBeAsked) {
  std::mt19937 random(20260101);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    Snapshot made = made_by_hand();
    for (int change = 0; change < 2; ++change) {
      const std::size_t at = sizeof(MachineHead) + random() % (made.size() - sizeof(MachineHead));
      made.bytes()[at] = static_cast<unsigned char>(random() % 4 == 0 ? random() : random() % 5);
    }
    made.head().checksum = machine_checksum(made.bytes(), made.size());
    if (check(made) != nullptr) continue;
    ++accepted;
    const Machine machine(made.bytes());
    std::array<std::uint32_t, 2> order{};
    for (std::uint32_t cpu = 0; cpu < 80; ++cpu) {
      const std::uint32_t node = machine.node_of_cpu(cpu);
      ASSERT_TRUE(node == kNone || node < 2);
      ASSERT_EQ(machine.nodes_by_distance(node, order), node == kNone ? 0u : 2u);
    }
    for (const Core& core : machine.cores())
      ASSERT_LE(core.first_pu + core.pu_count, machine.pus().size());
  }
  EXPECT_GT(accepted, 100) << "nothing was tested";
}

}  // namespace
}  // namespace verbatim::topo
