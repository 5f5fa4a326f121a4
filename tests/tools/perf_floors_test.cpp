// SPDX-License-Identifier: BSD-2-Clause
// Which floors a test is held against, and what its records say of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "perf/cli/perf_floor_plan.hpp"
#include "perf/cli/perf_run_floors.hpp"

namespace verbatim::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

constexpr char kF1[] = "cache line from core to core";
constexpr char kF2[] = "memcpy, one core";
constexpr char kF4Read[] = "one copy by the kernel (CMA)";
constexpr char kF4Write[] = "one copy by the kernel (CMA), write";
constexpr char kF5[] = "copied in and out through a ring of 8 chunks";

PerfOptions options(PerfVerb verb, PerfMeasure measure, PerfEnds ends) {
  PerfOptions made(PerfTest{verb, measure});
  made.ends = ends;
  return made;
}
PerfOptions latency(PerfVerb verb, PerfEnds ends = PerfEnds::kHost) {
  return options(verb, PerfMeasure::kLatency, ends);
}
PerfOptions bandwidth(PerfVerb verb, PerfEnds ends = PerfEnds::kHost) {
  return options(verb, PerfMeasure::kBandwidth, ends);
}

/// Of one size, those that limit it; "A or B" of ways that a message may choose from.
Names limits(const PerfOptions& o, std::uint32_t size, bool by_memory = true) {
  const PerfFloorPlan plan = plan_floors(o, by_memory, {size});
  EXPECT_EQ(plan.sizes.size(), 1u);
  Names names, ways;
  for (const PerfFloorOfSize& line : plan.sizes.front().lines) {
    const PerfFloor& floor = plan.floors.at(line.floor);
    EXPECT_EQ(floor.is_time, o.test.latency()) << floor.name;
    if (line.limit == PerfLimit::kAlways) names.push_back(floor.name);
    if (line.limit == PerfLimit::kOneOf) ways.push_back(floor.name);
  }
  if (!ways.empty()) {
    EXPECT_EQ(ways.size(), 2u);
    names.push_back(ways.front() + " or " + ways.back());
  }
  return names;
}

TEST(PerfFloorPlan, AShortMessageIsHeldAgainstTheHandOver) {
  for (const PerfEnds ends : {PerfEnds::kHost, PerfEnds::kProcess})
    EXPECT_THAT(limits(latency(PerfVerb::kSend, ends), 2), ElementsAre(kF1));
  EXPECT_THAT(limits(latency(PerfVerb::kSend), 4096), ElementsAre(kF1, "copy ping-pong mapped"));
  EXPECT_THAT(limits(latency(PerfVerb::kWrite, PerfEnds::kProcess), 2), ElementsAre(kF1));
}

TEST(PerfFloorPlan, MemoryOfAnotherProcessIsReachedByACopyOfTheKernel) {
  EXPECT_THAT(limits(latency(PerfVerb::kWrite), 2), ElementsAre(kF1, "copy ping-pong cma"));
  EXPECT_THAT(limits(latency(PerfVerb::kRead), 2), ElementsAre(kF1, kF4Read));
  EXPECT_THAT(limits(bandwidth(PerfVerb::kWrite), 65536), ElementsAre(kF2, kF4Write));
  EXPECT_THAT(limits(bandwidth(PerfVerb::kRead), 65536), ElementsAre(kF2, kF4Read));
  EXPECT_THAT(limits(bandwidth(PerfVerb::kSend), 65536),
              ElementsAre(kF2, std::string(kF4Write) + " or " + kF5));
}

TEST(PerfFloorPlan, WithinOneProcessACopyIsAMemcpy) {
  for (const PerfVerb verb : {PerfVerb::kSend, PerfVerb::kWrite, PerfVerb::kRead})
    EXPECT_THAT(limits(bandwidth(verb, PerfEnds::kProcess), 65536), ElementsAre(kF2));
  // Between cores it would cross what a copy in the caches of one need not.
  for (const PerfVerb verb : {PerfVerb::kSend, PerfVerb::kWrite})
    EXPECT_THAT(limits(latency(verb, PerfEnds::kProcess), 65536), ElementsAre(kF1, kF2));
  // A word of it may be in the reader's own cache.
  EXPECT_THAT(limits(latency(PerfVerb::kRead, PerfEnds::kProcess), 8), IsEmpty());
  EXPECT_THAT(limits(latency(PerfVerb::kRead, PerfEnds::kProcess), 65536), ElementsAre(kF2));
}

TEST(PerfFloorPlan, WhoSleepsIsWoken) {
  PerfOptions asleep = latency(PerfVerb::kSend);
  asleep.events = true;
  EXPECT_THAT(limits(asleep, 2), ElementsAre(kF1, "eventfd ping-pong"));
}

TEST(PerfFloorPlan, OtherDevicesAreHeldAgainstWhatNoneUndercuts) {
  EXPECT_THAT(limits(latency(PerfVerb::kWrite), 2, false), ElementsAre(kF1));
  EXPECT_THAT(limits(bandwidth(PerfVerb::kSend), 65536, false), ElementsAre(kF2));
}

TEST(PerfFloorPlan, OfTwoHostsNothingIsALimit) {
  for (const PerfOptions& o :
       {latency(PerfVerb::kSend, PerfEnds::kOne), bandwidth(PerfVerb::kWrite, PerfEnds::kOne)}) {
    const PerfFloorPlan plan = plan_floors(o, true, {o.size});
    ASSERT_EQ(plan.floors.size(), 2u);
    EXPECT_EQ(plan.floors[0].number, "F1");
    EXPECT_EQ(plan.floors[1].number, "F2");
    for (const PerfFloorOfSize& line : plan.sizes.at(0).lines)
      EXPECT_EQ(line.limit, PerfLimit::kNone);
  }
}

TEST(PerfFloorPlan, OfAllSizesWhatTwoShareIsMeasuredOnceAndNothingIsLargerThanItsBuffers) {
  PerfOptions all = latency(PerfVerb::kWrite);
  all.all_sizes = true;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 2; size <= 1u << 24; size *= 2) sizes.push_back(size);
  const PerfFloorPlan plan = plan_floors(all, true, sizes);
  EXPECT_EQ(plan.sizes.size(), sizes.size());
  std::map<std::string, int> of_size;
  for (const PerfFloor& floor : plan.floors) {
    EXPECT_EQ(++of_size[floor.name + std::to_string(floor.size())], 1) << floor.name;
    EXPECT_LE(floor.size(), perf::kAreaBytes) << floor.name;
  }
  EXPECT_EQ(plan.sizes[0].lines[1].floor, plan.sizes[2].lines[1].floor) << "2 and 8 bytes";
}

TEST(PerfFloorPlan, ACollectiveIsHeldAgainstTheHandOverAndACopyOfWhatIsMoved) {
  const auto names = [](std::vector<PerfFloorOfCollective> sizes, std::size_t which) {
    const PerfFloorPlan plan = plan_collective_floors(sizes);
    Names all;
    for (const PerfFloorOfSize& line : plan.sizes.at(which).lines) {
      const PerfFloor& floor = plan.floors.at(line.floor);
      EXPECT_EQ(line.limit, PerfLimit::kAlways);
      EXPECT_TRUE(floor.is_time);
      all.push_back(floor.name + " " + std::to_string(floor.size()));
    }
    return all;
  };
  const std::string hand_over = std::string(kF1) + " 8", copy = "copy ping-pong mapped ";
  EXPECT_THAT(names({{0, 0}}, 0), ElementsAre(hand_over)) << "a barrier";
  EXPECT_THAT(names({{1000, 3000}}, 0), ElementsAre(hand_over, copy + "3000"));
  EXPECT_THAT(names({{8, 8}, {1000, 3000}}, 1), ElementsAre(copy + "3000"));
  EXPECT_THAT(names({{1u << 30, 3ull << 30}}, 0),
              ElementsAre(hand_over, copy + std::to_string(perf::kAreaBytes)))
      << "a copy of less takes no longer";
}

TEST(PerfRunFloors, AllThatLackHaveTheReasonInTheirRecords) {
  PerfRunFloors floors({"collective", true, false, true, ""}, plan_collective_floors({{{8, 8}}}),
                       {});
  floors.lack("nobody is here");
  for (const perf::Record& record : floors.records()) EXPECT_EQ(record.missing, "nobody is here");
  perf::Record record;
  record.kind = "collective";
  record.at = 8;
  record.blocks = perf::Blocks({1, 2});
  floors.hold(&record);
  EXPECT_EQ(record.reference, "");
  EXPECT_TRUE(std::isnan(floors.spread()));
}

/// A run whose floors are given, not measured.
struct Given {
  PerfOptions o;
  PerfFloorPlan plan;
  PerfRunFloors floors;

  Given(PerfOptions made, std::uint32_t size)
      : o(std::move(made)),
        plan(plan_floors(o, true, {size})),
        floors(o, plan, {0, 1, true, "x"}) {}

  /// All ways of a floor but the first are slower; who is not named is missing.
  void take(const std::map<std::string, std::vector<double>>& blocks) {
    std::vector<PerfFloorTaken> taken;
    for (const PerfFloor& floor : plan.floors) {
      PerfFloorTaken& one = taken.emplace_back();
      one.ways.resize(floor.ways.size());
      const auto found = blocks.find(floor.name);
      if (found == blocks.end()) {
        one.missing = "refused";
        continue;
      }
      for (std::size_t way = 0; way < one.ways.size(); ++way) {
        for (const double value : found->second)
          one.ways[way].add(way == 0 ? value : floor.is_time ? 3 * value : value / 3);
      }
    }
    floors.add(std::move(taken));
  }
  perf::Record held(const char* kind, std::uint64_t at, std::vector<double> blocks) const {
    perf::Record record;
    record.kind = kind;
    record.at = at;
    record.blocks = perf::Blocks(std::move(blocks));
    floors.hold(&record);
    return record;
  }
};

TEST(PerfRunFloors, ABlockIsHeldAgainstTheFloorAtItsTime) {
  Given run(latency(PerfVerb::kSend), 2);
  run.take({{kF1, {50, 40, 60}}});
  run.take({{kF1, {100, 100, 110}}});
  const perf::Record record = run.held("latency", 2, {100, 150, 200, 300});
  EXPECT_EQ(record.reference, kF1);
  EXPECT_DOUBLE_EQ(record.reference_median, 80);
  EXPECT_THAT(record.ratio.values(), ElementsAre(2, 3, 2, 3));
  EXPECT_NEAR(run.floors.spread(), 0.6, 0.1);
}

TEST(PerfRunFloors, BlocksBeforeTheTestDoWhereNoneAreBehindIt) {
  Given run(latency(PerfVerb::kSend), 2);
  run.take({{kF1, {50}}});
  EXPECT_THAT(run.held("latency", 2, {100, 150}).ratio.values(), ElementsAre(2, 3));
}

TEST(PerfRunFloors, TheTightestLimitIsTheReference) {
  Given write(latency(PerfVerb::kWrite), 2);
  write.take({{kF1, {50}}, {"copy ping-pong cma", {1400}}});
  EXPECT_EQ(write.held("latency", 2, {1500}).reference, "copy ping-pong cma");

  Given read(bandwidth(PerfVerb::kRead), 65536);
  read.take({{kF2, {50}}, {kF4Read, {10}}});
  EXPECT_EQ(read.held("bandwidth", 65536, {9}).reference, kF4Read);
}

TEST(PerfRunFloors, OfWaysToChooseFromTheBestLimits) {
  for (const auto& [kernel, ring, reference] :
       {std::tuple(10.0, 12.0, kF5), std::tuple(13.0, 12.0, kF4Write),
        std::tuple(99.0, 12.0, kF2)}) {
    Given run(bandwidth(PerfVerb::kSend), 65536);
    run.take({{kF2, {50}}, {kF4Write, {kernel}}, {kF5, {ring}}});
    EXPECT_EQ(run.held("bandwidth", 65536, {9}).reference, reference);
  }
}

TEST(PerfRunFloors, WhatCannotBeMeasuredIsMissingAndTheNextOneLimits) {
  Given run(latency(PerfVerb::kWrite), 2);
  run.take({{kF1, {50}}});
  EXPECT_EQ(run.held("latency", 2, {100}).reference, kF1);
  for (const perf::Record& record : run.floors.records()) {
    EXPECT_EQ(record.kind, "floor");
    EXPECT_EQ(record.measured(), record.name == kF1) << record.name;
    EXPECT_EQ(record.missing, record.name == kF1 ? "" : "refused");
  }
  Given none(latency(PerfVerb::kWrite), 2);
  none.take({});
  EXPECT_EQ(none.held("latency", 2, {100}).reference, "");
  EXPECT_TRUE(std::isnan(none.floors.spread()));
}

TEST(PerfRunFloors, OtherSizesAndRatesHaveNoRatio) {
  Given run(bandwidth(PerfVerb::kWrite), 65536);
  run.take({{kF2, {50}}, {kF4Write, {10}}});
  EXPECT_EQ(run.held("rate", 65536, {9}).reference, "");
  EXPECT_EQ(run.held("bandwidth", 4096, {9}).reference, "");
  Given apart(latency(PerfVerb::kSend, PerfEnds::kOne), 2);
  apart.take({{kF1, {50}}, {kF2, {50}}});
  EXPECT_EQ(apart.held("latency", 2, {100}).reference, "");
  EXPECT_EQ(apart.floors.records().size(), 2u);
}

}  // namespace
}  // namespace verbatim::cli
