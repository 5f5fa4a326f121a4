// SPDX-License-Identifier: BSD-2-Clause
// Who sends to whom in each pattern.
#include "perf/cli/perf_pattern_edges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace verbatim::cli {

void PrintTo(const PatternEdge& edge, std::ostream* out) { *out << edge.from << "->" << edge.to; }

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PatternEdges, AreThoseOfTheirName) {
  using E = PatternEdge;
  EXPECT_THAT(pattern_edges(PerfPattern::kPairs, 4), ElementsAre(E{0, 2}, E{1, 3}));
  EXPECT_THAT(pattern_edges(PerfPattern::kPairs, 3), ElementsAre(E{0, 1}));
  EXPECT_THAT(pattern_edges(PerfPattern::kIncast, 3), ElementsAre(E{1, 0}, E{2, 0}));
  EXPECT_THAT(pattern_edges(PerfPattern::kRing, 2), ElementsAre(E{0, 1}, E{1, 0}));
  EXPECT_THAT(pattern_edges(PerfPattern::kRing, 3), ElementsAre(E{0, 1}, E{1, 2}, E{2, 0}));
  EXPECT_EQ(pattern_edges(PerfPattern::kAllPairs, 5).size(), 20u);
}

TEST(PatternEdges, OfAHaloAreToTheNeighboursOfAClosedGrid) {
  using E = PatternEdge;
  const auto nine = pattern_edges(PerfPattern::kHalo, 9);
  EXPECT_EQ(nine.size(), 36u);
  const std::vector<E> of_the_middle(nine.begin() + 16, nine.begin() + 20);
  EXPECT_THAT(of_the_middle, ElementsAre(E{4, 3}, E{4, 5}, E{4, 1}, E{4, 7}));
  EXPECT_EQ(pattern_edges(PerfPattern::kHalo, 8).size(), 32u);  // two rows of four
  EXPECT_EQ(pattern_edges(PerfPattern::kHalo, 7).size(), 14u);  // one row: nobody above
}

TEST(PatternEdges, GoFromAndToRanksThatThereAre) {
  for (const PerfPattern pattern :
       {PerfPattern::kPairs, PerfPattern::kIncast, PerfPattern::kAllPairs, PerfPattern::kRing,
        PerfPattern::kHalo}) {
    EXPECT_THAT(pattern_edges(pattern, 0), IsEmpty());
    EXPECT_THAT(pattern_edges(pattern, 1), IsEmpty());
    for (int ranks = 2; ranks <= 24; ++ranks) {
      for (const PatternEdge& edge : pattern_edges(pattern, ranks)) {
        ASSERT_TRUE(edge.from >= 0 && edge.from < ranks && edge.to >= 0 && edge.to < ranks);
        ASSERT_NE(edge.from, edge.to);
      }
    }
  }
}

}  // namespace
}  // namespace verbatim::cli
