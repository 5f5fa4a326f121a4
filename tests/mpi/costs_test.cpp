// SPDX-License-Identifier: BSD-2-Clause
// What algorithms of collectives are chosen by: costs that others have said or that were measured, and the
// table that they make.
#include "mpi_shim/core/costs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mpi_shim/coll/crossovers.hpp"
#include "mpi_shim/core/hand_over.hpp"
#include "runtime/topo/hash.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace vmpi {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(const Costs& costs) {
  char text[kCostsText];
  write_costs(costs, text);
  return text;
}
std::string refusal_of(const std::string& text, bool are_all = true) {
  Costs costs = built_in_costs();
  costs.set(CostOf::kGap, 77);
  const Costs before = costs;
  char wrong[128] = "";
  if (parse_costs(text.c_str(), are_all, costs, wrong) == nullptr) return "";
  EXPECT_EQ(text_of(costs), text_of(before)) << "what was refused has changed them";
  return wrong;
}
std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, what.size(), by);
}

TEST(Costs, AreSaidAsTheyAre) {
  Costs costs = built_in_costs();
  costs.set_measured(CostOf::kNearLatency, 61.25);
  costs.set_measured(CostOf::kPut, 0.031);
  const std::string text = text_of(costs);
  EXPECT_THAT(text, StartsWith("near.latency:61.250m,far.latency:150.000,"));
  // As a launcher keeps it.
  EXPECT_EQ(text.find_first_of(" =;\n"), std::string::npos);
  EXPECT_LT(text.size(), kCostsText - 50);
  Costs heard = built_in_costs();
  char wrong[128];
  ASSERT_EQ(parse_costs(text.c_str(), true, heard, wrong), nullptr) << wrong;
  EXPECT_EQ(text_of(heard), text);
  EXPECT_EQ(heard.digest, costs.digest);
  EXPECT_NE(heard.digest, built_in_costs().digest);
  EXPECT_TRUE(heard.is_measured(CostOf::kPut));
  EXPECT_FALSE(heard.is_measured(CostOf::kFetch));
}

TEST(Costs, OfGarbledTextsAreRefusedWhole) {
  const std::string good = text_of(built_in_costs());
  ASSERT_EQ(refusal_of(good), "");
  EXPECT_THAT(refusal_of(""), HasSubstr("names no cost"));
  EXPECT_THAT(refusal_of(replaced(good, "host.put", "host.pot")), HasSubstr("names no cost"));
  EXPECT_THAT(refusal_of(replaced(good, "host.put:", "host.put")), HasSubstr("names no cost"));
  EXPECT_EQ(refusal_of(good + ",host.put:0.040"), "host.put is there twice");
  EXPECT_EQ(refusal_of(good.substr(0, good.find(",net.handshake"))), "net.handshake is not there");
  EXPECT_THAT(refusal_of(good + "\xff"), HasSubstr("follows net.handshake"));
  EXPECT_THAT(refusal_of(good + ","), HasSubstr("names no cost"));
  // Less, more, or no time at all.
  for (const char* time : {"0", "0.001", "100.001", "-1", "inf", "nan", "1e3", "", ".5", "0.0401",
                           "99999999999999999999", "4294967.336", " 1", "0x1"})
    EXPECT_NE(refusal_of(replaced(good, "host.put:0.040", std::string("host.put:") + time)), "")
        << time;
  // Cut anywhere, it is none.
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(refusal_of(good.substr(0, length)), "") << length;
  // Single bytes that change leave a text that is refused, or numbers within their bounds.
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const char byte : {'\x01', '\x7f', ':', ',', '9', 'm'}) {
      std::string other = good;
      other[at] = byte;
      Costs heard = built_in_costs();
      char wrong[128];
      if (parse_costs(other.c_str(), true, heard, wrong) != nullptr) continue;
      for (int i = 0; i < kCosts; ++i) {
        const CostFacts& facts = facts_of(static_cast<CostOf>(i));
        EXPECT_GE(heard.ps[i], facts.least) << other;
        EXPECT_LE(heard.ps[i], facts.most) << other;
      }
    }
}

TEST(Costs, OfAUserReplaceThoseThatTheyName) {
  Costs costs = built_in_costs();
  costs.set_measured(CostOf::kPut, 0.5);
  char wrong[128];
  ASSERT_EQ(parse_costs("net.latency:2500,host.put:0.1", false, costs, wrong), nullptr);
  EXPECT_EQ(costs.ns(CostOf::kLatency), 2500);
  EXPECT_EQ(costs.ns(CostOf::kPut), 0.1);
  EXPECT_FALSE(costs.is_measured(CostOf::kPut));
  EXPECT_EQ(costs.ns(CostOf::kGap), built_in_costs().ns(CostOf::kGap));
  // A user may say what a log has printed, which measures nothing.
  ASSERT_EQ(parse_costs("net.gap:100.000m", false, costs, wrong), nullptr);
  EXPECT_FALSE(costs.is_measured(CostOf::kGap));
}

TEST(Costs, AreHeldWithinTheirBounds) {
  Costs costs = built_in_costs();
  const auto held = [&](double ns) {
    costs.set(CostOf::kFetch, ns);
    return costs.ps[static_cast<std::size_t>(CostOf::kFetch)];
  };
  const CostFacts& facts = facts_of(CostOf::kFetch);
  EXPECT_EQ(held(0.5), 500u);
  for (const double little : {0.0, -1.0, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(held(little), facts.least);
  for (const double much : {1e9, 1e300, HUGE_VAL}) EXPECT_EQ(held(much), facts.most);
}

TEST(Costs, AreMeasuredInAFewMilliseconds) {
  no_ranks::begin();
  Costs costs = built_in_costs();
  const auto begin = std::chrono::steady_clock::now();
  measure_costs(costs);
  const auto took = std::chrono::steady_clock::now() - begin;
  // Where nobody disturbs it, it takes some 2 ms; it ends in any case.
  EXPECT_LT(took, std::chrono::milliseconds(500));
  for (const CostOf each : {CostOf::kPut, CostOf::kCombine})
    EXPECT_TRUE(costs.is_measured(each)) << facts_of(each).name;
  for (const CostOf each : {CostOf::kLatency, CostOf::kByte, CostOf::kHostOverhead})
    EXPECT_FALSE(costs.is_measured(each)) << facts_of(each).name;
  EXPECT_EQ(refusal_of(text_of(costs)), "");
  no_ranks::end();
}

/// The calling thread runs on `cpu` alone, as a rank that was bound.
class Bound {
 public:
  explicit Bound(int cpu) {
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~Bound() { EXPECT_EQ(::sched_setaffinity(0, sizeof before_, &before_), 0); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  cpu_set_t before_;
};

/// Measured until nobody keeps the other processor busy meanwhile.
Costs measured_at_last() {
  Costs costs = built_in_costs();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do measure_costs(costs);
  while (!(costs.is_measured(CostOf::kNearLatency) && costs.is_measured(CostOf::kFarLatency)) &&
         std::chrono::steady_clock::now() < until);
  return costs;
}

TEST(Costs, OfHandOversAreMeasuredAlsoByARankThatIsBoundToOneProcessor) {
  no_ranks::begin();
  const Bound bound(::sched_getcpu());
  const Partners partners = find_partners();
  if (partners.near.empty() && partners.far.empty()) GTEST_SKIP() << "there is one processor";
  const Costs costs = measured_at_last();
  for (const CostOf each : {CostOf::kNearLatency, CostOf::kFarLatency})
    EXPECT_TRUE(costs.is_measured(each)) << facts_of(each).name;
  EXPECT_GE(costs.ns(CostOf::kFarLatency), costs.ns(CostOf::kNearLatency));
  // A line that comes from another core takes longer than one of this core's own.
  EXPECT_GT(costs.ns(CostOf::kNearLatency), facts_of(CostOf::kNearLatency).least / 1000.0);
  no_ranks::end();
}

TEST(Costs, KnowNoPartnerThatIsThisProcessor) {
  const int here = ::sched_getcpu();
  const Bound bound(here);
  const Partners partners = find_partners();
  for (const Candidates& each : {partners.near, partners.far})
    for (int i = 0; i < each.count; ++i) EXPECT_NE(each.cpus[i], here);
}

TEST(Costs, OfAHostWhoseKernelCopiesNothingAreThoseOfMemoryThatBothHave) {
  Costs costs = built_in_costs();
  costs.set(CostOf::kPut, 0.25);
  costs.set(CostOf::kFetch, 0.5);
  go_without_kernel(costs);
  EXPECT_EQ(costs.ns(CostOf::kKernel), 0.75);
}

/// From how many bytes on the fewest rounds are not the fastest any more.
std::int64_t first_crossing(Collective which, const Shape& shape) {
  Crossovers table;
  table.make(which, shape);
  return table.rows().front().to_bytes;
}

TEST(Crossovers, FollowTheCosts) {
  // Where rounds take long, algorithms of few rounds are the fastest for longer.
  for (const int ranks : {4, 16, 64, 1000}) {
    std::int64_t before = 0;
    for (const double latency : {60.0, 600.0, 6000.0, 60000.0}) {
      Costs costs = built_in_costs();
      costs.set(CostOf::kFarLatency, latency);
      const std::int64_t bytes =
          first_crossing(Collective::kBcast, {.ranks = ranks, .costs = &costs});
      EXPECT_GE(bytes, before) << ranks << " ranks, " << latency << " ns";
      before = bytes;
    }
    Costs fast = built_in_costs();
    Costs slow = built_in_costs();
    fast.set(CostOf::kFarLatency, 20);
    slow.set(CostOf::kFarLatency, 200'000);
    slow.set(CostOf::kHostOverhead, 20'000);
    const Shape by_fast = {.ranks = ranks, .bytes = 8192, .costs = &fast};
    const Shape by_slow = {.ranks = ranks, .bytes = 8192, .costs = &slow};
    EXPECT_STREQ(choose(Collective::kAllreduce, by_slow).name, "recursive_doubling");
    EXPECT_STRNE(choose(Collective::kAllreduce, by_fast).name, "recursive_doubling") << ranks;
  }
  // What a network costs is nothing to ranks of one host.
  Costs costs = built_in_costs();
  costs.set(CostOf::kLatency, 50'000);
  const Shape here = {.ranks = 16, .bytes = 65536, .costs = &costs};
  EXPECT_EQ(&choose(Collective::kBcast, here),
            &choose(Collective::kBcast, {.ranks = 16, .bytes = 65536}));
  Shape apart = here;
  apart.is_apart = true;
  EXPECT_STREQ(choose(Collective::kBcast, apart).name, "binomial");
}

std::vector<Costs> many_costs() {
  std::vector<Costs> all = {built_in_costs()};
  for (int i = 0; i < kCosts; ++i)
    for (const bool is_most : {false, true}) {
      Costs costs = built_in_costs();
      costs.set(static_cast<CostOf>(i), is_most ? 1e12 : 0);
      all.push_back(costs);
    }
  for (const bool is_most : {false, true}) {
    Costs costs = built_in_costs();
    for (int i = 0; i < kCosts; ++i) costs.set(static_cast<CostOf>(i), is_most ? 1e12 : 0);
    all.push_back(costs);
  }
  return all;
}

/// Whatever the costs are: each call has an algorithm that can do it, and one row for its bytes.
TEST(Crossovers, AreOfAlgorithmsThatCanDoTheCall) {
  for (const Costs& costs : many_costs())
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 17, 63, 64, 1000, 1 << 20})
      for (int bits = 0; bits < 64; ++bits) {
        Shape shape = {.ranks = ranks,
                       .is_commutative = (bits & 1) != 0,
                       .are_alike = (bits & 2) != 0,
                       .has_nodes = (bits & 4) != 0 && ranks > 2,
                       .are_nodes_in_order = (bits & 8) != 0,
                       .are_nodes_alike = (bits & 16) != 0,
                       .costs = &costs};
        shape.is_apart = !shape.has_nodes && (bits & 32) != 0;
        if (shape.has_nodes) {
          shape.nodes = (ranks + 1) / 2;
          shape.ranks_of_node = 2;
        }
        for (int i = 0; i < kCollectives; ++i) {
          const auto which = static_cast<Collective>(i);
          Crossovers table;
          table.make(which, shape);
          const auto rows = table.rows();
          ASSERT_FALSE(rows.empty());
          ASSERT_EQ(rows.back().to_bytes, kAnyBytes);
          for (std::size_t row = 0; row < rows.size(); ++row) {
            ASSERT_EQ(unmet(*rows[row].algorithm, shape), nullptr)
                << facts_of(which).name << " by " << ranks << ": " << rows[row].algorithm->name;
            ASSERT_TRUE(row == 0 || rows[row].to_bytes > rows[row - 1].to_bytes);
            const double ns = model_ns(*rows[row].algorithm, shape);
            ASSERT_TRUE(std::isfinite(ns) && ns >= 0 && ns < 1e290) << rows[row].algorithm->name;
          }
        }
      }
}

/// Tables are kept, but which ones were asked for before decides nothing.
TEST(Crossovers, AreTheSameWhateverWasAskedBefore) {
  const std::vector<Costs> all = many_costs();
  for (int round = 0; round < 2; ++round)
    for (const Costs& costs : all)
      for (const int ranks : {2, 3, 5, 8, 31, 64, 100})
        for (int i = 0; i < kCollectives; ++i)
          for (const std::int64_t bytes : {0LL, 1LL, 8LL, 9LL, 5000LL, 1LL << 20, 1LL << 40}) {
            const auto which = static_cast<Collective>(i);
            const Shape shape = {.ranks = ranks, .bytes = bytes, .costs = &costs};
            Crossovers table;
            table.make(which, shape);
            ASSERT_EQ(&choose(which, shape), &table.of(bytes)) << facts_of(which).name;
          }
}

/// A job's communicators call all collectives in turn.
TEST(Crossovers, OfUsualJobsDoNotPushEachOtherOut) {
  for (const int ranks : {2, 3, 12, 16, 64, 100, 128, 256, 1024, 4096}) {
    std::set<std::size_t> places;
    for (const int half : {ranks, ranks / 2})
      for (int i = 0; i < kCollectives; ++i)
        places.insert(place_of_table(static_cast<Collective>(i), {.ranks = half}));
    // 22 at random meet three times on average.
    EXPECT_GE(places.size(), 15u) << ranks;
  }
  std::set<std::size_t> places;
  for (int log = 1; log <= 16; ++log)
    places.insert(place_of_table(Collective::kAllreduce, {.ranks = 1 << log}));
  EXPECT_GE(places.size(), 11u);
}

/// Ranks of libraries that choose otherwise must not meet.
TEST(Crossovers, ChangeWithTheirVersion) {
  std::uint64_t digest = 0;
  for (const bool is_apart : {false, true})
    for (const int on_node : {1, 4})
      for (int ranks = 2; ranks <= 4096; ranks += ranks < 16 ? 1 : ranks / 3)
        for (int i = 0; i < kCollectives; ++i)
          for (std::int64_t bytes = 8; bytes <= 64 << 20; bytes *= 4) {
            Shape shape = {.ranks = ranks, .bytes = bytes, .is_apart = is_apart && on_node == 1};
            if (on_node > 1 && ranks % on_node == 0 && ranks > on_node) {
              shape.has_nodes = true;
              shape.nodes = ranks / on_node;
              shape.ranks_of_node = on_node;
            }
            const KnownAlgorithm& chosen = choose(static_cast<Collective>(i), shape);
            digest = verbatim::topo::hash_bytes(chosen.name, std::strlen(chosen.name), digest);
          }
  // When this fails since algorithms are chosen otherwise, raise kChoosing with it.
  EXPECT_EQ(kChoosing, 1u);
  EXPECT_EQ(digest, 7493757670326043961u);
}

TEST(HostWays, HearOtherCachesLaterWhereRankZeroHasButOne) {
  Costs costs = built_in_costs();
  HostLayout layout = {.ranks = 6, .groups = 3, .largest_group = 2};
  costs.set(CostOf::kNearLatency, 40);
  costs.set(CostOf::kFarLatency, 90);
  layout.hear_by(costs);
  EXPECT_EQ(layout.near_ns, 40);
  EXPECT_EQ(layout.far_ns, 90);
  costs.set(CostOf::kFarLatency, 40);
  layout.hear_by(costs);
  EXPECT_EQ(layout.near_ns, 40);
  EXPECT_EQ(layout.far_ns, 100);
}

TEST(HostWays, FollowTheRatesOfCopies) {
  Costs costs = built_in_costs();
  const auto are_rooms = [&](Collective which, int ranks, std::int64_t bytes) {
    return are_rooms_faster(which, {.ranks = ranks, .bytes = bytes, .costs = &costs});
  };
  for (const Collective which : {Collective::kBcast, Collective::kReduce, Collective::kAllreduce,
                                 Collective::kAllgather, Collective::kAlltoall})
    for (const std::int64_t bytes : {1 << 16, 1 << 20, 1 << 24})
      EXPECT_TRUE(are_rooms(which, 2, bytes)) << facts_of(which).name << ", " << bytes;
  // A host whose cores hand lines over slowly, and whose kernel copies well.
  costs.set(CostOf::kPut, 0.4);
  costs.set(CostOf::kFetch, 0.42);
  costs.set(CostOf::kKernel, 0.11);
  for (const Collective which : {Collective::kBcast, Collective::kAllreduce})
    EXPECT_FALSE(are_rooms(which, 2, 1 << 20)) << facts_of(which).name;
  EXPECT_EQ(host_way_for(Collective::kBcast, 1 << 20, {.ranks = 2}, costs), nullptr);
  EXPECT_STREQ(host_way_for(Collective::kBcast, 1 << 20, {.ranks = 2}, built_in_costs())->name,
               "rooms");
  // Short ones have no time for a message of the kernel's.
  EXPECT_STREQ(host_way_for(Collective::kBcast, 4096, {.ranks = 2}, costs)->name, "rooms");
  costs.set(CostOf::kKernel, 1);
  EXPECT_TRUE(are_rooms(Collective::kBcast, 2, 1 << 20));
}

TEST(HostWays, GoByGroupsWhereOtherCachesAreFar) {
  const auto levels = [](double near, double far) {
    return levels_for(
        {.ranks = 6, .groups = 3, .largest_group = 2, .near_ns = near, .far_ns = far});
  };
  EXPECT_EQ(levels(30, 100), HostLevels::kCaches);
  EXPECT_EQ(levels(100, 100), HostLevels::kFlat);
}

}  // namespace
}  // namespace vmpi
