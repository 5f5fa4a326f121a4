// SPDX-License-Identifier: BSD-2-Clause
// The model of a network against the formulas that the heads of the algorithms name, and the table
// against the model.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "mpi_shim/coll/crossovers.hpp"
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
    const bool is_composed = model_.ranks_of_node > 1;
    const auto nodes =
        is_composed ? sim::even_nodes(ranks, model_.ranks_of_node) : std::unique_ptr<vmpi::Nodes>();
    const auto plans = sim::plans_of(which, *vmpi::find_algorithm(which, name),
                                     {.ranks = ranks, .bytes = bytes, .has_nodes = is_composed},
                                     nodes.get(), std::uint64_t{1} << 30, why);
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
  const double between = 65535 * model_.between.gap_of_bytes + model_.between.gap;
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

/// Of ranks that share a node's link, the messages of all leave one behind the other.
TEST_F(Simulation, RanksOfANodeShareItsLink) {
  model_.ranks_of_node = 4;
  model_.nodes_share_link = true;
  const sim::LogGP& link = model_.between;
  constexpr std::int64_t kSlice = 65536;
  model_.combine_of_bytes = 0;
  // Each gives each of the other node one slice.
  EXPECT_GE(run(Collective::kAlltoall, "spread", 8, kSlice).ns,
            16 * static_cast<double>(kSlice - 1) * link.gap_of_bytes);
  // By owners the data cross about twice, by recursive doubling once for each rank.
  constexpr std::int64_t kLong = 1 << 20;
  const double by_owners = run(Collective::kAllreduce, "owners", 8, kLong).ns;
  const double flat = run(Collective::kAllreduce, "recursive_doubling", 8, kLong).ns;
  EXPECT_LT(2 * by_owners, flat);
  // Three quarters go within a node before and behind that: while other segments are between the nodes.
  const double between = kLong * link.gap_of_bytes;
  const double within = 2 * 0.75 * kLong * model_.within.gap_of_bytes;
  EXPECT_GT(by_owners, between);
  EXPECT_LT(by_owners, between + 0.6 * within);
}

/// Of processors that are late by chance the slowest one is waited for.
TEST_F(Simulation, NoiseMakesProcessorsLate) {
  constexpr int kRanks = 256;
  constexpr int kRounds = 8;
  const double quiet = run(Collective::kBarrier, "dissemination", kRanks, 0).ns;
  model_.noise = 0.5;
  const double late = run(Collective::kBarrier, "dissemination", kRanks, 0).ns;
  const double of_processors = kRounds * 2 * model_.between.overhead;
  EXPECT_GT(late, quiet + 0.5 * of_processors) << "the slowest is later than the average";
  EXPECT_LE(late, quiet + 1.0 * of_processors);
  // The same chance again, whoever has his turn first; another one otherwise.
  std::string why;
  const auto plans = sim::plans_of(
      Collective::kAllreduce, *vmpi::find_algorithm(Collective::kAllreduce, "rabenseifner"),
      {.ranks = 100, .bytes = 80'000}, nullptr, std::uint64_t{1} << 30, why);
  const double once = sim::simulate(plans, model_).ns;
  for (const std::uint32_t each_first : {0, 1, 2, 3})
    EXPECT_EQ(sim::simulate(plans, model_, each_first).ns, once) << each_first;
  model_.seed = 2;
  EXPECT_NE(sim::simulate(plans, model_).ns, once);
  model_.noise = 0;
  EXPECT_LT(sim::simulate(plans, model_).ns, once);
}

class SimulatedTable : public Simulation {
 protected:
  void expect_near(int ranks_of_node, std::initializer_list<Collective> which_ones,
                   std::initializer_list<int> sizes);
};

void SimulatedTable::expect_near(int ranks_of_node, std::initializer_list<Collective> which_ones,
                                 std::initializer_list<int> sizes) {
  model_.combine_of_bytes = 0.1;
  model_.ranks_of_node = ranks_of_node;
  const bool has_nodes = ranks_of_node > 1;
  model_.nodes_share_link = has_nodes;
  const vmpi::Costs costs = sim::costs_of(model_);
  for (const Collective which : which_ones)
    for (const int ranks : sizes)
      for (const std::int64_t bytes : {8 * ranks, 64 * ranks, 262144, 1048576}) {
        const vmpi::CollectiveFacts& facts = vmpi::facts_of(which);
        const auto nodes =
            has_nodes ? sim::even_nodes(ranks, ranks_of_node) : std::unique_ptr<vmpi::Nodes>();
        const vmpi::Shape shape = sim::shape_of(ranks, bytes, nodes.get(), costs);
        double best = HUGE_VAL;
        const char* best_name = "";
        double chosen = 0;
        const vmpi::KnownAlgorithm* const by_table = &vmpi::choose(which, shape);
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

TEST_F(SimulatedTable, IsNotFarFromTheBest) {
  expect_near(1,
              {Collective::kBcast, Collective::kReduce, Collective::kAllreduce,
               Collective::kAllgather, Collective::kReduceScatter},
              {8, 13, 16, 48, 64, 100, 1000});
}

TEST_F(SimulatedTable, IsNotFarFromTheBestOverNodes) {
  expect_near(
      4, {Collective::kBcast, Collective::kReduce, Collective::kAllreduce, Collective::kAllgather},
      {8, 13, 16});
  expect_near(
      8, {Collective::kBcast, Collective::kReduce, Collective::kAllreduce, Collective::kAllgather},
      {48, 64});
}

}  // namespace
}  // namespace verbatim::mpi
