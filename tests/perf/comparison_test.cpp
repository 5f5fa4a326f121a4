// SPDX-License-Identifier: BSD-2-Clause
// Two runs compared, slopes, and what a run's noise says.
#include <gtest/gtest.h>

#include <cmath>

#include "perf/figures/comparison.hpp"
#include "perf/figures/fit.hpp"
#include "perf/support/json.hpp"

namespace verbatim::perf {
namespace {

TEST(Comparison, ChanceIsThatOfMannAndWhitney) {
  EXPECT_NEAR(chance_of_difference(Blocks({1, 2, 3, 4, 5}), Blocks({6, 7, 8, 9, 10})), 0.009, 5e-4);
  EXPECT_NEAR(chance_of_difference(Blocks({6, 7, 8, 9, 10}), Blocks({1, 2, 3, 4, 5})), 0.009, 5e-4);
  EXPECT_GT(chance_of_difference(Blocks({1, 3, 5, 7, 9}), Blocks({2, 4, 6, 8, 10})), 0.5);
  EXPECT_EQ(chance_of_difference(Blocks({4, 4, 4, 4, 4}), Blocks({4, 4, 4, 4, 4})), 1);
  EXPECT_EQ(chance_of_difference(Blocks({1, 2, 3, 4}), Blocks({6, 7, 8, 9})), 1) << "too few";
}

Record record(const char* name, const char* unit, std::vector<double> blocks) {
  Record made;
  made.kind = "latency";
  made.name = name;
  made.unit = unit;
  made.at = 8;
  made.blocks = Blocks(std::move(blocks));
  return made;
}

TEST(Comparison, RecordsOfOneFigureAreOneAndThoseOfOneRunAreNamed) {
  const Comparison found =
      compare({record("a", "ns", {1, 2, 3}), record("a", "ns", {1, 2, 3}), record("b", "ns", {1})},
              {record("a", "ns", {5, 6, 7, 8, 9, 10}), record("c", "ns", {1})}, 0.05);
  ASSERT_EQ(found.figures.size(), 1u);
  EXPECT_EQ(found.figures[0].base.blocks.size(), 6u);
  EXPECT_EQ(found.figures[0].verdict, Change::kWorse);
  EXPECT_EQ(found.missing,
            (std::vector<std::string>{"latency: b, 8 B (base)", "latency: c, 8 B (new)"}));
}

TEST(Comparison, AFloorIsTheMachinesWhoeverIsMeasuredBesideIt) {
  Record one = record("memcpy", "GB/s", {1}), other = one;
  other.about.provider = "rxe0";
  EXPECT_NE(one.key(), other.key());
  one.kind = other.kind = "floor";
  EXPECT_EQ(one.key(), other.key());
}

TEST(Record, SaysTheUnitOfItsSize) {
  Record record;
  record.name = "send";
  for (const auto& [at, label] : {std::pair(8u, "send, 8 B"), std::pair(4096u, "send, 4 KiB"),
                                  std::pair(4140u, "send, 4140 B"), std::pair(0u, "send")}) {
    record.at = at;
    EXPECT_EQ(record.label(), label);
  }
}

TEST(Fit, ACostThatDoesNotGrowIsFlatAndOneThatDoesIsNot) {
  const Fit flat = fit_over_doublings({{1, 100}, {10, 101}, {100, 99}, {1000, 100}});
  EXPECT_EQ(flat.told(), Growth::kFlat);
  EXPECT_NEAR(flat.slope, 0, 0.01);
  const Fit grows = fit_over_doublings({{1, 100}, {2, 110}, {4, 120}, {8, 130}});
  EXPECT_EQ(grows.told(), Growth::kGrows);
  EXPECT_NEAR(grows.slope, 0.1, 1e-9);
  EXPECT_NEAR(grows.growth, 1.3, 1e-9);
  EXPECT_EQ(fit_over_doublings({{1, 5}, {2, 5}}).at_least, 0) << "two points are any line";
  EXPECT_EQ(fit_over_doublings({{0, 5}, {2, 5}, {4, 5}}).at_least, 0);
}

TEST(Fit, SaysOnlyWhatItsErrorLeavesToSay) {
  struct Case {
    double slope, error;
    Growth told;
  };
  for (const Case& one : {Case{0.00, 0.01, Growth::kFlat}, Case{0.019, 0.001, Growth::kFlat},
                          Case{0.025, 0.001, Growth::kGrows}, Case{0.03, 0.008, Growth::kGrows},
                          Case{0.01, 0.49, Growth::kNotTold}, Case{0.90, 0.49, Growth::kNotTold},
                          Case{1.50, 0.49, Growth::kGrows}, Case{-0.3, 0.05, Growth::kFlat}}) {
    Fit fit;
    fit.at_least = 100;
    fit.slope = one.slope;
    fit.slope_error = one.error;
    EXPECT_EQ(fit.told(), one.told) << one.slope << " +- " << one.error;
  }
  EXPECT_EQ(Fit{}.told(), Growth::kNotTold) << "there is no line";
}

TEST(Noise, SaysWhatMakesARunUnreliable) {
  Noise noise;
  EXPECT_EQ(noise.unreliable(), "") << "nothing is known";
  noise.stolen = 0.01;
  noise.waited = 0.01;
  noise.floor_spread = 0.2;
  EXPECT_EQ(noise.unreliable(), "");
  noise.stolen = 0.05;
  noise.waited = 0.1;
  EXPECT_EQ(noise.unreliable(),
            "5.0 % of the processors' time was stolen by the hypervisor; 10.0 % of the time other "
            "processes had the core");
}

TEST(Json, ReadsWhatItPrintsAndRefusesTheRest) {
  std::string why;
  const Json made = {{"a", 1u}, {"b", "x\ny"}, {"c", true}, {"d", 1.5}, {"e", nullptr}};
  const auto read = Json::parse(made.line(), &why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->line(), made.line());
  EXPECT_EQ(read->find("a")->number(), 1);
  EXPECT_EQ(read->find("b")->string(), "x\ny");
  EXPECT_EQ(read->find("c")->truth(), true);
  EXPECT_TRUE(read->find("e")->is_null());
  EXPECT_EQ(read->find("z"), nullptr);
  EXPECT_FALSE(Json::parse("{", &why));
  EXPECT_FALSE(Json::parse("1e999", &why)) << "no number that there is";
  EXPECT_FALSE(Json::parse(std::string(17, '[') + std::string(17, ']'), &why));
  EXPECT_EQ(why, "it nests deeper than 16");
  EXPECT_TRUE(Json::parse(std::string(16, '[') + std::string(16, ']'), &why));
  EXPECT_TRUE(Json::parse("\"[[[[[[[[[[[[[[[[[[[\\\"[[\"", &why)) << "text is no nesting";
}

TEST(Json, RefusesMoreThanARecordHasBeforeItReadsIt) {
  std::string why;
  std::string members = "{\"0\":0";
  for (int i = 1; i <= 2000; ++i) members += ",\"" + std::to_string(i) + "\":0";
  EXPECT_FALSE(Json::parse(members + "}", &why));
  EXPECT_EQ(why, "it has too many members");
  std::string elements = "[0";
  for (int i = 0; i <= 300'000; ++i) elements += ",0";
  EXPECT_FALSE(Json::parse(elements + "]", &why));
  EXPECT_EQ(why, "it has too many elements");
}

}  // namespace
}  // namespace verbatim::perf
