// SPDX-License-Identifier: BSD-2-Clause
// The model of a network against the formulas that the heads of the algorithms name, and the table
// against the model.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "perf/sim/operands.hpp"
#include "perf/sim/simulation.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace verbatim::mpi {
namespace {

using vmpi::Collective;

class Simulation : public ::testing::Test {
 protected:
  void SetUp() override {
    no_ranks::begin();
    model_.moves_data = false;
    model_.combine_of_bytes = 0.25;
  }
  void TearDown() override { no_ranks::end(); }

  sim::Result run(Collective which, const char* name, int ranks, std::int64_t bytes) {
    std::string why;
    const auto plans = sim::plans_of(which, *vmpi::find_algorithm(which, name), ranks, bytes,
                                     std::uint64_t{1} << 30, why);
    EXPECT_EQ(why, "");
    const sim::Result result = sim::simulate(plans, model_);
    EXPECT_EQ(result.wrong, "");
    return result;
  }
  void expect_time(Collective which, const char* name, int ranks, std::int64_t bytes, double ns) {
    EXPECT_NEAR(run(which, name, ranks, bytes).ns, ns, 1e-6 * ns + 1e-6)
        << name << ", " << ranks << " ranks, " << bytes << " bytes";
  }
  [[nodiscard]] double round(double bytes) const {
    const sim::LogGP& link = model_.between;
    return link.latency + 2 * link.overhead + (bytes > 1 ? (bytes - 1) * link.gap_of_bytes : 0);
  }

  sim::Model model_;
};

TEST_F(Simulation, TakesWhatTheFormulasSay) {
  for (const int log : {1, 2, 3, 6, 10}) {
    const int ranks = 1 << log;
    for (const std::int64_t bytes : {8, 1024, 65536}) {
      const auto n = static_cast<double>(bytes);
      const double combined = n * model_.combine_of_bytes;
      expect_time(Collective::kBcast, "binomial", ranks, bytes, log * round(n));
      expect_time(Collective::kReduce, "binomial", ranks, bytes, log * (round(n) + combined));
      expect_time(Collective::kAllreduce, "recursive_doubling", ranks, bytes,
                  log * (round(n) + combined));
    }
    expect_time(Collective::kBarrier, "dissemination", ranks, 0, log * round(0));
    expect_time(Collective::kBarrier, "tree", ranks, 0, 2 * log * round(0));
  }
  for (const int ranks : {2, 4, 8, 64}) {
    const double block = 65536.0 / ranks;
    const double combined = block * model_.combine_of_bytes;
    expect_time(Collective::kAllreduce, "ring", ranks, 65536,
                (ranks - 1) * (2 * round(block) + combined));
    expect_time(Collective::kAllgather, "ring", ranks, 65536, (ranks - 1) * round(block));
    expect_time(Collective::kAlltoall, "pairwise", ranks, 4096, (ranks - 1) * round(4096));
    double halves = 0;
    for (double part = 32768; part >= block; part /= 2)
      halves += 2 * round(part) + part * model_.combine_of_bytes;
    expect_time(Collective::kAllreduce, "rabenseifner", ranks, 65536, halves);
  }
  // The first of 10 segments of 64 KiB goes through 5 ranks, and the others follow as links are free.
  const double between = 65535 * model_.between.gap_of_bytes + model_.between.overhead;
  expect_time(Collective::kBcast, "chain", 5, 10 * 65536, 4 * round(65536) + 9 * between);
}

TEST_F(Simulation, CountsMessagesAndBytes) {
  const sim::Result result = run(Collective::kAllreduce, "recursive_doubling", 64, 1000);
  EXPECT_EQ(result.messages, 64u * 6);
  EXPECT_EQ(result.bytes, 64u * 6 * 1000);
  EXPECT_EQ(result.most_temporary, 1000u);
  const sim::Result ring = run(Collective::kAllgather, "ring", 10, 1000);
  EXPECT_EQ(ring.messages, 90u);
  EXPECT_EQ(ring.bytes, 9000u);
}

TEST_F(Simulation, RanksOfANodeAreNearer) {
  model_.ranks_of_node = 8;
  const sim::LogGP& near = model_.within;
  expect_time(Collective::kBarrier, "dissemination", 8, 0, 3 * (near.latency + 2 * near.overhead));
  // Three rounds and more of which somebody's partner is on another node.
  EXPECT_GT(run(Collective::kBarrier, "dissemination", 16, 0).ns, round(0));
}

TEST_F(Simulation, ALinkIsSharedByWhatComesThere) {
  // All slices come to the root, whose link takes one after the other.
  const sim::LogGP& link = model_.between;
  EXPECT_GE(run(Collective::kGather, "linear", 64, 65536).ns,
            63 * 65535 * link.gap_of_bytes + link.latency);
}

TEST_F(Simulation, TheTableIsNotFarFromTheBest) {
  model_.combine_of_bytes = 0.1;
  for (const Collective which : {Collective::kBcast, Collective::kReduce, Collective::kAllreduce,
                                 Collective::kAllgather, Collective::kReduceScatter})
    for (const int ranks : {8, 13, 16, 48, 64, 100, 1000})
      for (const std::int64_t bytes : {8 * ranks, 64 * ranks, 262144, 1048576}) {
        const vmpi::CollectiveFacts& facts = vmpi::facts_of(which);
        const vmpi::Shape shape = {.ranks = ranks, .bytes = bytes};
        double best = HUGE_VAL;
        const char* best_name = "";
        double chosen = 0;
        const vmpi::KnownAlgorithm* const by_table = vmpi::row_for(which, shape).algorithm;
        for (const vmpi::KnownAlgorithm& each : facts.algorithms) {
          // Those that take a round for each rank are not near where there are many.
          const bool has_few_rounds = ranks < 256 || std::string(each.cost).find("log P") == 0 ||
                                      std::string(each.cost).find("2 log P") == 0;
          if (vmpi::unmet(each, shape) != nullptr || (!has_few_rounds && &each != by_table))
            continue;
          const double ns = run(which, each.name, ranks, bytes).ns;
          if (ns < best) best = ns, best_name = each.name;
          if (&each == by_table) chosen = ns;
        }
        EXPECT_LE(chosen, 1.4 * best) << facts.name << " of " << bytes << " bytes by " << ranks
                                      << " ranks by " << by_table->name << ", not " << best_name;
      }
}

}  // namespace
}  // namespace verbatim::mpi
