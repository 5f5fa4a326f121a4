// SPDX-License-Identifier: BSD-2-Clause
// The plan and its arithmetic: what is compared with what.
#include "perf/figures/cell.hpp"

#include <gtest/gtest.h>

#include <set>

#include "perf/figures/plan.hpp"

namespace verbatim::perf {
namespace {

Cell cell_with(const char* name, const char* family, const char* floor, Blocks blocks) {
  Cell cell;
  cell.name = name;
  cell.variant_of = family;
  cell.floor = floor;
  cell.blocks = std::move(blocks);
  return cell;
}

TEST(Group, TheFloorOfAFamilyIsTheVariantWithTheLeastMedianNotTheLeastMinimum) {
  Group group;
  group.cells.push_back(cell_with("f1 tight", "f1", "", Blocks({60, 61, 60})));
  group.cells.push_back(cell_with("f1 pause", "f1", "", Blocks({10, 90, 95})));
  group.cells.push_back(cell_with("test", "", "f1", Blocks({90, 122, 120})));
  EXPECT_EQ(group.floor_of(group.cells[2])->name, "f1 tight");
  EXPECT_DOUBLE_EQ(group.ratio_of(group.cells[2]).median(), 2.0);
  EXPECT_TRUE(group.is_shown(group.cells[0]));
  EXPECT_FALSE(group.is_shown(group.cells[1]));
}

TEST(Group, WithoutAnAvailableFloorThereIsNoRatio) {
  Group group;
  group.cells.push_back(cell_with("cma", "", "", Blocks{}));
  group.cells.back().unavailable = true;
  group.cells.push_back(cell_with("test", "", "cma", Blocks({1, 2})));
  EXPECT_EQ(group.floor_of(group.cells[1]), nullptr);
  EXPECT_TRUE(group.ratio_of(group.cells[1]).empty());
}

TEST(Plan, EveryNamedFloorIsMeasuredInTheSameGroup) {
  for (const Group& group : make_plan({{8, 64, 4096, 65536, 4194304}, false})) {
    std::set<std::string> known;
    for (const Cell& cell : group.cells) {
      EXPECT_TRUE(known.insert(cell.name).second) << "two cells named " << cell.name;
      if (!cell.variant_of.empty()) known.insert(cell.variant_of);
    }
    for (const Cell& cell : group.cells) {
      if (!cell.floor.empty()) {
        EXPECT_TRUE(known.contains(cell.floor)) << cell.name << " wants " << cell.floor;
      }
    }
  }
}

TEST(Plan, CoversTheFourOperationsInBothKindsOfMemory) {
  std::set<std::pair<Operation, Memory>> seen;
  for (const Group& group : make_plan({{8}, false})) {
    for (const Cell& cell : group.cells) {
      if (cell.section == Section::kLatency) {
        seen.insert({cell.request.operation, cell.request.memory});
      }
    }
  }
  EXPECT_EQ(seen.size(), 10u);  // send, write, read, fetch-add, compare-and-swap; twice
}

TEST(Plan, FloorsAloneNeedNoEndpoint) {
  for (const Group& group : make_plan({{8, 4096}, true})) {
    for (const Cell& cell : group.cells) EXPECT_EQ(cell.section, Section::kFloor) << cell.name;
  }
}

TEST(Reply, SpeaksInTheUnitsOfTheTables) {
  Reply reply;
  reply.elapsed_ns = 2000;
  reply.operations = 100;
  reply.bytes = 800;
  EXPECT_DOUBLE_EQ(value_of(reply, Unit::kNanoseconds), 20);
  EXPECT_DOUBLE_EQ(value_of(reply, Unit::kMillionPerSecond), 50);
  EXPECT_DOUBLE_EQ(value_of(reply, Unit::kGigabytesPerSecond), 0.4);
}

}  // namespace
}  // namespace verbatim::perf
