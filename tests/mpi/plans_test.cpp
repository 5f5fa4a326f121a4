// SPDX-License-Identifier: BSD-2-Clause
// Every algorithm of the collectives by the plans of all ranks in one process, against what one
// computes plainly: for every number of ranks up to 64 and some large ones, counts that nothing
// divides, in place, with operations that do not commute.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mpi_shim/coll/select.hpp"
#include "perf/sim/simulation.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace verbatim::mpi {
namespace {

using vmpi::Collective;
using vmpi::KnownAlgorithm;
using vmpi::Operands;
using vmpi::Plan;
using vmpi::Reduced;
using vmpi::Shape;
using vmpi::Slices;
using vmpi::Typed;

/// The function x -> a x + b. One after another is an operation that does not commute.
struct Line {
  std::uint64_t a;
  std::uint64_t b;
  bool operator==(const Line&) const = default;
};
using Lines = std::vector<Line>;
constexpr Line kMark = {77, 99};

Line line(int rank, std::int64_t i) {
  const auto place = static_cast<std::uint64_t>(i);
  const auto from = static_cast<std::uint64_t>(rank);
  return {2 * ((from * 7 + place * 3) % 11) + 1, from * 31 + place};
}
Lines lines(int rank, std::int64_t count, std::int64_t from = 0) {
  Lines out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(line(rank, from + i));
  return out;
}

void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const Line* const before = static_cast<Line*>(in);
  Line* const after = static_cast<Line*>(inout);
  for (int i = 0; i < *count; ++i)
    after[i] = {before[i].a * after[i].a, before[i].a * after[i].b + before[i].b};
}
void add(void* in, void* inout, int* count, MPI_Datatype*) {
  const Line* const from = static_cast<Line*>(in);
  Line* const to = static_cast<Line*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = {to[i].a + from[i].a, to[i].b + from[i].b};
}

std::vector<int> every_size() {
  std::vector<int> sizes;
#ifdef VBT_UNDER_SANITIZER
  constexpr int kEvery = 18;  // the others are ten times as slow, and alike
#else
  constexpr int kEvery = 64;
#endif
  for (int i = 1; i <= kEvery; ++i) sizes.push_back(i);
  for (const int more : {31, 32, 33, 64, 100})
    if (more > kEvery) sizes.push_back(more);
  return sizes;
}

class Plans : public ::testing::Test {
 protected:
  void SetUp() override {
    no_ranks::begin();
    ASSERT_EQ(MPI_Type_contiguous(2, MPI_UINT64_T, &line_), MPI_SUCCESS);
    ASSERT_EQ(MPI_Type_commit(&line_), MPI_SUCCESS);
    // Its data with a hole between its halves and one behind them.
    MPI_Datatype halves = MPI_DATATYPE_NULL;
    ASSERT_EQ(MPI_Type_vector(2, 1, 2, MPI_UINT64_T, &halves), MPI_SUCCESS);
    ASSERT_EQ(MPI_Type_create_resized(halves, 0, kHoled * 8, &holed_), MPI_SUCCESS);
    ASSERT_EQ(MPI_Type_commit(&holed_), MPI_SUCCESS);
    ASSERT_EQ(MPI_Type_free(&halves), MPI_SUCCESS);
    type_ = vmpi::find_datatype(line_);
    holed_type_ = vmpi::find_datatype(holed_);
    ordered_ = make_op(compose, false);
    commuting_ = make_op(add, true);
  }
  void TearDown() override { no_ranks::end(); }

  static vmpi::Op* make_op(MPI_User_function* function, bool is_commutative) {
    MPI_Op op = MPI_OP_NULL;
    EXPECT_EQ(MPI_Op_create(function, is_commutative ? 1 : 0, &op), MPI_SUCCESS);
    return vmpi::find_op(op);
  }

  [[nodiscard]] std::unique_ptr<Plan> make_plan(int rank, int ranks) const {
    auto plan = std::make_unique<Plan>(rank, ranks);
    if (has_nodes_) plan->lie_on(&nodes_);
    return plan;
  }
  /// From here on ranks lie on nodes, and those algorithms are tested that want some.
  void lie_on(const std::vector<int>& numbers) {
    has_nodes_ = true;
    layout_ = ", nodes";
    for (const int number : numbers) layout_ += " " + std::to_string(number);
    ASSERT_TRUE(nodes_.set(numbers.data(), static_cast<int>(numbers.size())));
  }

  /// What each rank is called with, and what it has then; the plans are made and run.
  using Call = std::function<void(int rank, Plan& plan)>;
  void run(int ranks, const Call& call) {
    std::vector<std::unique_ptr<Plan>> plans;
    for (int rank = 0; rank < ranks; ++rank) {
      plans.push_back(make_plan(rank, ranks));
      call(rank, *plans.back());
    }
    result_ = sim::simulate(plans, {}, ++orders_);
    EXPECT_EQ(result_.wrong, "");
  }

  /// For each algorithm that can do the call.
  void each(Collective which, Shape shape, const std::function<void(const KnownAlgorithm&)>& test) {
    shape.has_nodes = has_nodes_ && nodes_.are_composed();
    shape.are_nodes_in_order = !has_nodes_ || nodes_.are_in_order();
    for (const KnownAlgorithm& algorithm : vmpi::facts_of(which).algorithms) {
      if (wants_nodes(algorithm) != has_nodes_ || vmpi::unmet(algorithm, shape) != nullptr)
        continue;
      SCOPED_TRACE(std::string(vmpi::facts_of(which).name) + " by " + algorithm.name + ", " +
                   std::to_string(shape.ranks) + " ranks" + layout_);
      seen_.insert(std::string(vmpi::facts_of(which).name) + " " + algorithm.name);
      test(algorithm);
      if (HasFailure()) return;
    }
  }
  [[nodiscard]] static bool wants_nodes(const KnownAlgorithm& algorithm) {
    return (algorithm.wants & vmpi::kNodes) != 0;
  }
  void expect_all_seen(Collective which) const {
    for (const KnownAlgorithm& each : vmpi::facts_of(which).algorithms) {
      if (wants_nodes(each) != has_nodes_) continue;
      EXPECT_EQ(seen_.count(std::string(vmpi::facts_of(which).name) + " " + each.name), 1u)
          << each.name << " was never run";
    }
  }

  [[nodiscard]] Typed typed(Lines& data) const {
    return {data.data(), static_cast<std::int64_t>(data.size()), type_};
  }
  [[nodiscard]] Slices slices(Lines& data, std::int64_t count) const {
    Slices out;
    out.buffer = data.data();
    out.count = count;
    out.one_type = type_;
    return out;
  }
  static std::vector<int> roots(int ranks) {
    if (ranks > 9) return {0, 1, ranks / 2, ranks - 1};
    std::vector<int> all;
    for (int i = 0; i < ranks; ++i) all.push_back(i);
    return all;
  }
  /// The parts of ranks up to `last` combined in order.
  [[nodiscard]] static Lines combined(const vmpi::Op& op, int last, std::int64_t count) {
    Lines out = lines(last, count);
    int length = static_cast<int>(count);
    for (int rank = last - 1; rank >= 0; --rank) {
      Lines before = lines(rank, count);
      op.function(before.data(), out.data(), &length, nullptr);
    }
    return out;
  }

  void test_barrier(int ranks);
  void test_bcast(int ranks, int root, std::int64_t count);
  void test_rows(int ranks, int root, std::int64_t count, bool is_in_place);
  void test_allgather(int ranks, std::int64_t count, bool is_in_place, bool are_alike);
  void test_alltoall(int ranks, std::int64_t count, bool is_in_place, bool are_alike);
  void test_reductions(int ranks, std::int64_t count, bool is_in_place, const vmpi::Op& op);
  void test_reduce_scatter(int ranks, std::int64_t count, bool is_in_place, const vmpi::Op& op);

  static constexpr std::int64_t kHoled = 4;  ///< numbers that an element with holes takes
  MPI_Datatype line_ = MPI_DATATYPE_NULL;
  MPI_Datatype holed_ = MPI_DATATYPE_NULL;
  vmpi::Datatype* type_ = nullptr;
  vmpi::Datatype* holed_type_ = nullptr;
  vmpi::Op* ordered_ = nullptr;
  vmpi::Op* commuting_ = nullptr;
  sim::Result result_;
  std::uint32_t orders_ = 0;
  bool has_nodes_ = false;
  vmpi::Nodes nodes_;
  std::string layout_;
  std::set<std::string> seen_;
};

void Plans::test_bcast(int ranks, int root, std::int64_t count) {
  each(Collective::kBcast, {.ranks = ranks}, [&](const KnownAlgorithm& algorithm) {
    // Every third rank has the data with holes in it.
    std::vector<Lines> data(static_cast<std::size_t>(ranks));
    std::vector<Typed> own(data.size());
    const Lines sent = lines(root, count);
    run(ranks, [&](int rank, Plan& plan) {
      Lines& mine = data[rank];
      const bool is_holed = rank % 3 == 1;
      mine.assign(static_cast<std::size_t>(is_holed ? 2 * count : count), kMark);
      for (std::int64_t i = 0; i < count && rank == root; ++i) {
        if (!is_holed) mine[i] = sent[i];
        if (is_holed) mine[2 * i].a = sent[i].a, mine[2 * i + 1].a = sent[i].b;
      }
      own[rank] = {mine.data(), count, is_holed ? holed_type_ : type_};
      algorithm.plan(plan, {.root = root, .own = &own[rank]});
    });
    for (int rank = 0; rank < ranks; ++rank) {
      Lines got = data[rank];
      if (rank % 3 == 1) {
        got.clear();
        for (std::int64_t i = 0; i < count; ++i) {
          got.push_back({data[rank][2 * i].a, data[rank][2 * i + 1].a});
          EXPECT_EQ(data[rank][2 * i].b, kMark.b) << "a hole";
        }
      }
      ASSERT_EQ(got, sent) << "rank " << rank << " of root " << root << ", " << count;
    }
  });
}

TEST_F(Plans, BcastGivesAllWhatTheRootHas) {
  for (const int ranks : every_size())
    for (const int root : roots(ranks))
      for (const std::int64_t count : {0, 1, 13}) test_bcast(ranks, root, count);
  // In several segments, the last of which is short.
  for (const int ranks : {1, 2, 3, 5, 8}) test_bcast(ranks, ranks / 2, 9 * 4096 + 5);
  expect_all_seen(Collective::kBcast);
}

void Plans::test_barrier(int ranks) {
  each(Collective::kBarrier, {.ranks = ranks}, [&](const KnownAlgorithm& algorithm) {
    const Operands nothing;
    run(ranks, [&](int, Plan& plan) { algorithm.plan(plan, nothing); });
    // Were one rank late by a second, all would be.
    for (const int late : {0, ranks / 2, ranks - 1}) {
      std::vector<std::unique_ptr<Plan>> plans;
      sim::Model model;
      model.copy_of_bytes = 1e9;
      std::byte from[1] = {};
      std::byte to[1] = {};
      for (int rank = 0; rank < ranks; ++rank) {
        plans.push_back(make_plan(rank, ranks));
        if (rank == late)
          plans.back()->copy({from, 1, &vmpi::byte_type()}, {to, 1, &vmpi::byte_type()});
        algorithm.plan(*plans.back(), nothing);
      }
      const sim::Result result = sim::simulate(plans, model);
      EXPECT_EQ(result.wrong, "");
      EXPECT_GE(result.first_ns, 1e9) << "somebody left before rank " << late << " had come";
    }
  });
}

TEST_F(Plans, BarrierIsOverWhenAllHaveCome) {
  std::vector<int> sizes = every_size();
  sizes.insert(sizes.end(), {1000, 1024});
  for (const int ranks : sizes) test_barrier(ranks);
  expect_all_seen(Collective::kBarrier);
}

void Plans::test_rows(int ranks, int root, std::int64_t count, bool is_in_place) {
  Lines all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Lines row = lines(rank, count);
    all.insert(all.end(), row.begin(), row.end());
  }
  std::vector<Lines> own(static_cast<std::size_t>(ranks));
  std::vector<Typed> typed_own(own.size());
  const auto mine = [&](int rank, Lines content) {
    own[rank] = std::move(content);
    typed_own[rank] =
        is_in_place && rank == root ? Typed{MPI_IN_PLACE, 0, &vmpi::byte_type()} : typed(own[rank]);
    return &typed_own[rank];
  };
  each(Collective::kGather, {.ranks = ranks}, [&](const KnownAlgorithm& algorithm) {
    Lines out(all.size(), kMark);
    if (is_in_place) std::copy_n(all.begin() + root * count, count, out.begin() + root * count);
    const Slices places = slices(out, count);
    const Slices none;
    run(ranks, [&](int rank, Plan& plan) {
      algorithm.plan(plan, {.root = root,
                            .own = mine(rank, lines(rank, count)),
                            .out = rank == root ? &places : &none});
    });
    ASSERT_EQ(out, all) << "root " << root << ", " << count;
  });
  each(Collective::kScatter, {.ranks = ranks}, [&](const KnownAlgorithm& algorithm) {
    Lines in = all;
    const Slices places = slices(in, count);
    const Slices none;
    run(ranks, [&](int rank, Plan& plan) {
      algorithm.plan(plan, {.root = root,
                            .own = mine(rank, Lines(static_cast<std::size_t>(count), kMark)),
                            .in = rank == root ? &places : &none});
    });
    ASSERT_EQ(in, all);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != root || !is_in_place) {
        ASSERT_EQ(own[rank], lines(rank, count)) << "root " << root;
      }
  });
}

TEST_F(Plans, GatherAndScatterKeepRowsApart) {
  for (const int ranks : every_size())
    for (const int root : roots(ranks))
      for (const std::int64_t count : {0, 1, 5})
        test_rows(ranks, root, count, (ranks + root) % 2 == 0);
  expect_all_seen(Collective::kGather);
  expect_all_seen(Collective::kScatter);
}

/// Slices of `count`, or of 0, 1, 2 ... elements, the last rank's first and with a gap between them.
struct Places {
  Places(int ranks, std::int64_t count, bool are_alike) {
    for (int rank = 0; rank < ranks; ++rank)
      counts.push_back(static_cast<int>(are_alike ? count : (rank * 5) % 4));
    displacements.assign(counts.size(), 0);
    for (int rank = ranks - 1; rank >= 0; --rank) {
      displacements[rank] = room;
      room += counts[rank] + (are_alike ? 0 : 1);
    }
  }
  [[nodiscard]] Slices slices(Lines& data, vmpi::Datatype* type, bool are_alike) const {
    Slices out;
    out.buffer = data.data();
    out.one_type = type;
    if (are_alike) {
      out.count = counts[0];
      return out;
    }
    out.form = Slices::Form::kElements;
    out.counts = counts.data();
    out.displacements = displacements.data();
    return out;
  }
  std::vector<int> counts;
  std::vector<int> displacements;
  int room = 0;
};

void put(Lines& into, const Slices& places, int rank, const Lines& row) {
  const Typed place = places[rank];
  std::copy(row.begin(), row.end(), static_cast<Line*>(place.buffer));
  EXPECT_LE(static_cast<Line*>(place.buffer) + place.count, into.data() + into.size());
}

void Plans::test_allgather(int ranks, std::int64_t count, bool is_in_place, bool are_alike) {
  const Places places(ranks, count, are_alike);
  each(Collective::kAllgather, {.ranks = ranks, .are_alike = are_alike},
       [&](const KnownAlgorithm& algorithm) {
         std::vector<Lines> own(static_cast<std::size_t>(ranks));
         std::vector<Lines> out(own.size(), Lines(static_cast<std::size_t>(places.room), kMark));
         std::vector<Typed> in(own.size());
         std::vector<Slices> to(own.size());
         Lines wanted = out[0];
         for (int rank = 0; rank < ranks; ++rank)
           put(wanted, places.slices(wanted, type_, are_alike), rank,
               lines(rank, places.counts[rank]));
         run(ranks, [&](int rank, Plan& plan) {
           own[rank] = lines(rank, places.counts[rank]);
           to[rank] = places.slices(out[rank], type_, are_alike);
           if (is_in_place) put(out[rank], to[rank], rank, own[rank]);
           in[rank] = is_in_place ? Typed{MPI_IN_PLACE, 0, &vmpi::byte_type()} : typed(own[rank]);
           algorithm.plan(plan, {.own = &in[rank], .out = &to[rank]});
         });
         for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(out[rank], wanted) << "rank " << rank;
       });
}

TEST_F(Plans, AllgatherGivesAllTheRowsOfAll) {
  for (const int ranks : every_size())
    for (const bool is_in_place : {false, true}) {
      for (const std::int64_t count : {0, 3}) test_allgather(ranks, count, is_in_place, true);
      test_allgather(ranks, 0, is_in_place, false);
    }
  expect_all_seen(Collective::kAllgather);
}

void Plans::test_alltoall(int ranks, std::int64_t count, bool is_in_place, bool are_alike) {
  each(Collective::kAlltoall, {.ranks = ranks, .are_alike = are_alike},
       [&](const KnownAlgorithm& algorithm) {
         // What two ranks give each other is as long each way, as in place it must be.
         const auto length = [&](int a, int b) {
           return are_alike ? count : std::int64_t{(a + b) % 3};
         };
         const auto slice = [&](int from, int to) {
           return lines(from, length(from, to), 100 * to);
         };
         std::vector<std::unique_ptr<Places>> places;
         std::vector<Lines> in(static_cast<std::size_t>(ranks));
         std::vector<Lines> out(in.size());
         std::vector<Slices> from(in.size());
         std::vector<Slices> to(in.size());
         std::vector<Lines> wanted(in.size());
         run(ranks, [&](int rank, Plan& plan) {
           places.push_back(std::make_unique<Places>(ranks, count, are_alike));
           Places& own = *places.back();
           own.room = 0;
           for (int i = 0; i < ranks; ++i) {
             own.counts[i] = static_cast<int>(length(rank, i));
             own.displacements[i] = own.room;
             own.room += own.counts[i] + (are_alike ? 0 : 1);
           }
           const auto room = static_cast<std::size_t>(own.room);
           in[rank].assign(room, kMark);
           out[rank].assign(room, kMark);
           wanted[rank].assign(room, kMark);
           from[rank] = own.slices(is_in_place ? out[rank] : in[rank], type_, are_alike);
           to[rank] = own.slices(out[rank], type_, are_alike);
           for (int i = 0; i < ranks; ++i) {
             put(is_in_place ? out[rank] : in[rank], from[rank], i, slice(rank, i));
             put(wanted[rank], own.slices(wanted[rank], type_, are_alike), i, slice(i, rank));
           }
           if (is_in_place) from[rank].buffer = MPI_IN_PLACE;
           algorithm.plan(plan, {.in = &from[rank], .out = &to[rank]});
         });
         for (int rank = 0; rank < ranks; ++rank)
           ASSERT_EQ(out[rank], wanted[rank]) << "rank " << rank;
       });
}

TEST_F(Plans, AlltoallGivesEachItsSlices) {
  for (const int ranks : every_size()) {
    const bool is_in_place = ranks % 2 == 0;
    test_alltoall(ranks, 0, is_in_place, true);
    test_alltoall(ranks, 3, is_in_place, true);
    test_alltoall(ranks, 1, !is_in_place, true);
    test_alltoall(ranks, 0, is_in_place, false);
    test_alltoall(ranks, 0, !is_in_place, false);
  }
  expect_all_seen(Collective::kAlltoall);
}

void Plans::test_reductions(int ranks, std::int64_t count, bool is_in_place, const vmpi::Op& op) {
  const Shape shape = {.ranks = ranks, .is_commutative = op.is_commutative};
  std::vector<Lines> own(static_cast<std::size_t>(ranks));
  std::vector<Lines> out(own.size());
  std::vector<Reduced> what(own.size());
  const auto begin = [&](int rank, bool in_place) {
    own[rank] = lines(rank, count);
    out[rank] = in_place ? own[rank] : Lines(static_cast<std::size_t>(count), kMark);
    what[rank] = {in_place ? MPI_IN_PLACE : own[rank].data(), out[rank].data(), count, type_, &op};
    return &what[rank];
  };
  const Lines total = combined(op, ranks - 1, count);
  each(Collective::kAllreduce, shape, [&](const KnownAlgorithm& algorithm) {
    run(ranks,
        [&](int rank, Plan& plan) { algorithm.plan(plan, {.what = begin(rank, is_in_place)}); });
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(out[rank], total) << "rank " << rank << ", " << count;
      ASSERT_EQ(own[rank], lines(rank, count)) << "what it gave";
    }
  });
  for (const int root : ranks < 1000 ? roots(ranks) : std::vector<int>{1})
    each(Collective::kReduce, shape, [&](const KnownAlgorithm& algorithm) {
      run(ranks, [&](int rank, Plan& plan) {
        const Reduced* const reduced = begin(rank, is_in_place && rank == root);
        if (rank != root) what[rank].receive = nullptr;
        algorithm.plan(plan, {.root = root, .what = reduced});
      });
      ASSERT_EQ(out[root], total) << "root " << root << ", " << count;
      for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(own[rank], lines(rank, count));
    });
  for (const bool is_inclusive : {true, false})
    each(is_inclusive ? Collective::kScan : Collective::kExscan, shape,
         [&](const KnownAlgorithm& algorithm) {
           run(ranks, [&](int rank, Plan& plan) {
             algorithm.plan(plan, {.what = begin(rank, is_in_place)});
           });
           Lines wanted;
           int length = static_cast<int>(count);
           for (int rank = 0; rank < ranks; ++rank) {
             // wanted = the parts before, then this one.
             const Lines before = wanted;
             Lines with = lines(rank, count);
             if (rank != 0) op.function(wanted.data(), with.data(), &length, nullptr);
             wanted = with;
             if (is_inclusive || rank != 0) {
               ASSERT_EQ(out[rank], is_inclusive ? wanted : before) << "rank " << rank;
             }
           }
         });
}

TEST_F(Plans, ReductionsCombineInTheOrderOfRanks) {
  for (const int ranks : every_size())
    for (const std::int64_t count : {1, 5, 67})
      for (const bool is_in_place : {false, true})
        for (const vmpi::Op* op : {ordered_, commuting_})
          test_reductions(ranks, count, is_in_place, *op);
  for (const Collective which :
       {Collective::kAllreduce, Collective::kReduce, Collective::kScan, Collective::kExscan})
    expect_all_seen(which);
}

TEST_F(Plans, AThousandRanksReduceByFewRounds) {
  for (const int ranks : {1000, 1024}) test_reductions(ranks, 1, false, *ordered_);
}

/// By every algorithm, but for those of a million messages, which would take longer than all else here.
TEST_F(Plans, AThousandRanksDoEveryCollective) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "it takes ten times as long, and is what fewer ranks do";
#endif
  for (const int ranks : {1000, 1024}) {
    for (const std::int64_t count : {0, 1, 13}) test_bcast(ranks, 1, count);
    test_rows(ranks, ranks - 1, 1, ranks == 1000);
    test_reductions(ranks, 1, true, *commuting_);
  }
  test_reduce_scatter(1024, 1, false, *ordered_);
}

void Plans::test_reduce_scatter(int ranks, std::int64_t count, bool is_in_place,
                                const vmpi::Op& op) {
  const Shape shape = {.ranks = ranks, .is_commutative = op.is_commutative};
  std::vector<int> counts;
  std::int64_t total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    counts.push_back(static_cast<int>(count >= 0 ? count : (rank * 5) % 3));
    total += counts.back();
  }
  const Lines all = combined(op, ranks - 1, total);
  each(Collective::kReduceScatter, shape, [&](const KnownAlgorithm& algorithm) {
    std::vector<Lines> own(static_cast<std::size_t>(ranks));
    std::vector<Lines> out(own.size());
    std::vector<Reduced> what(own.size());
    run(ranks, [&](int rank, Plan& plan) {
      own[rank] = lines(rank, total);
      out[rank] = Lines(static_cast<std::size_t>(counts[rank]), kMark);
      if (is_in_place) out[rank] = own[rank];
      what[rank] = {is_in_place ? MPI_IN_PLACE : own[rank].data(), out[rank].data(), total, type_,
                    &op};
      algorithm.plan(plan, {.what = &what[rank], .counts = counts.data()});
    });
    std::int64_t before = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      out[rank].resize(static_cast<std::size_t>(counts[rank]));
      ASSERT_EQ(out[rank], Lines(all.begin() + before, all.begin() + before + counts[rank]))
          << "rank " << rank;
      before += counts[rank];
    }
  });
}

TEST_F(Plans, ReduceScatterGivesEachItsSliceOfTheResult) {
  for (const int ranks : every_size())
    for (const std::int64_t count : {-1, 1, 3})
      for (const bool is_in_place : {false, true})
        for (const vmpi::Op* op : {ordered_, commuting_})
          test_reduce_scatter(ranks, count, is_in_place, *op);
  expect_all_seen(Collective::kReduceScatter);
}

/// Of so many ranks: two and more even nodes, uneven ones, one rank beside all others, one node of two ranks
/// among those of one, ranks of a node in no row, nodes in the reverse of their ranks' order.
std::vector<std::vector<int>> layouts(int ranks) {
  std::vector<std::vector<int>> found;
  const auto add = [&](const std::function<int(int)>& node_of) {
    std::vector<int> numbers;
    for (int rank = 0; rank < ranks; ++rank) numbers.push_back(node_of(rank));
    const std::set<int> different(numbers.begin(), numbers.end());
    const bool is_composed = different.size() > 1 && different.size() < numbers.size();
    if (is_composed && std::find(found.begin(), found.end(), numbers) == found.end())
      found.push_back(numbers);
  };
  add([&](int rank) { return rank / ((ranks + 1) / 2); });
  add([&](int rank) { return rank == ranks - 1 ? 1 : 0; });
  add([&](int rank) { return rank == 0 ? 1 : 0; });
  add([&](int rank) { return rank / 3; });
  add([&](int rank) { return rank / 4; });
  add([&](int rank) { return rank / 2 % 4 == 1 ? rank / 8 * 8 : rank / 8 * 8 + rank % 2; });
  add([&](int rank) { return rank < 2 ? 0 : rank - 1; });
  add([&](int rank) { return rank % 2; });
  add([&](int rank) { return rank % 3; });
  add([&](int rank) { return (ranks - 1 - rank) / 4; });
  add([&](int rank) { return rank * rank % 5 % ranks; });
  return found;
}

std::vector<int> sizes_on_nodes() {
#ifdef VBT_UNDER_SANITIZER
  return {3, 4, 5, 8, 13};
#else
  std::vector<int> sizes;
  for (int i = 3; i <= 64; ++i) sizes.push_back(i);
  sizes.push_back(100);
  return sizes;
#endif
}

TEST_F(Plans, ComposedOnesDoWhatTheOthersDo) {
  for (const int ranks : sizes_on_nodes()) {
    for (const std::vector<int>& layout : layouts(ranks)) {
      lie_on(layout);
      test_barrier(ranks);
      const bool is_small = ranks <= 12;
      for (const int root : is_small ? roots(ranks) : std::vector<int>{0, ranks / 2, ranks - 1})
        for (const std::int64_t count : {0, 1, 13}) test_bcast(ranks, root, count);
      for (const bool is_in_place : {false, true}) {
        for (const std::int64_t count : {0, 3}) test_allgather(ranks, count, is_in_place, true);
        test_allgather(ranks, 0, is_in_place, false);
        for (const std::int64_t count : {1, 67})
          for (const vmpi::Op* op : {ordered_, commuting_})
            if (is_small || op == commuting_ || nodes_.are_in_order())
              test_reductions(ranks, count, is_in_place, *op);
      }
      if (HasFailure()) return;
    }
  }
  for (const Collective which : {Collective::kBarrier, Collective::kBcast, Collective::kAllgather,
                                 Collective::kReduce, Collective::kAllreduce})
    expect_all_seen(which);
}

TEST_F(Plans, ComposedOnesOfAThousandRanks) {
  for (const int ranks : {1000, 1024}) {
    for (const int of_each : {16, 24}) {
      std::vector<int> numbers;
      for (int rank = 0; rank < ranks; ++rank) numbers.push_back(rank / of_each);
      lie_on(numbers);
      test_barrier(ranks);
      test_bcast(ranks, 17, 1);
      test_reductions(ranks, 1, false, *ordered_);
      test_reductions(ranks, 1, true, *commuting_);
    }
  }
}

/// Long ones in several segments, which are under way together.
TEST_F(Plans, ComposedOnesGoOnInSegments) {
  for (const int ranks : {3, 4, 7})
    for (const std::vector<int>& layout : layouts(ranks)) {
      lie_on(layout);
      test_bcast(ranks, ranks / 2, 9 * 4096 + 5);
      for (const bool is_in_place : {false, true})
        test_reductions(ranks, 20'000, is_in_place, *commuting_);
      if (HasFailure()) return;
    }
}

TEST_F(Plans, MessagesBetweenNodesAreFew) {
  std::vector<int> numbers;
  constexpr int kRanks = 64;
  constexpr int kOfEach = 8;
  for (int rank = 0; rank < kRanks; ++rank) numbers.push_back(rank / kOfEach);
  lie_on(numbers);
  const auto between = [&](Collective which, const char* name, const Operands& of) {
    std::vector<std::unique_ptr<Plan>> plans;
    std::uint64_t messages = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      plans.push_back(make_plan(rank, kRanks));
      vmpi::find_algorithm(which, name)->plan(*plans.back(), of);
      for (const vmpi::Step& step : *plans.back())
        if (step.kind == vmpi::Step::Kind::kSend && numbers[step.peer] != numbers[rank]) ++messages;
    }
    return messages;
  };
  Lines data(1);
  const Typed own = typed(data);
  EXPECT_EQ(between(Collective::kBarrier, "leaders", {}), 8u * 3);
  EXPECT_EQ(between(Collective::kBcast, "leaders", {.root = 13, .own = &own}), 7u);
  const Reduced what = {data.data(), data.data(), 1, type_, commuting_};
  EXPECT_EQ(between(Collective::kReduce, "leaders", {.root = 13, .what = &what}), 7u);
  EXPECT_EQ(between(Collective::kAllreduce, "leaders", {.what = &what}), 8u * 3);
}

TEST_F(Plans, TheExecutorFindsPlansThatDoNotFit) {
  std::vector<std::unique_ptr<Plan>> plans;
  for (int rank = 0; rank < 2; ++rank) plans.push_back(std::make_unique<Plan>(rank, 2));
  Lines data(4);
  const Typed all = typed(data);
  // Both send first, and neither has a receive under way.
  for (int rank = 0; rank < 2; ++rank) {
    plans[rank]->send(1 - rank, all);
    plans[rank]->fence();
    plans[rank]->receive(1 - rank, all);
  }
  EXPECT_THAT(sim::simulate(plans, {}).wrong, ::testing::HasSubstr("waits for ever"));
  plans.clear();
  for (int rank = 0; rank < 2; ++rank) plans.push_back(std::make_unique<Plan>(rank, 2));
  plans[0]->send(1, all);
  plans[1]->receive(0, {data.data(), 3, type_});
  EXPECT_THAT(sim::simulate(plans, {}).wrong, ::testing::HasSubstr("messages of 64 and 48 bytes"));
}

}  // namespace
}  // namespace verbatim::mpi
