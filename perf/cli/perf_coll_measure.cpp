// SPDX-License-Identifier: BSD-2-Clause
// A barrier goes before each call, outside of its time, so that one call does not wait for the ranks
// that are late from the one before. Durations are told by the processor's counter, arrivals by the
// clock that all processes of a host share.
#include "perf/cli/perf_coll_measure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "perf/cli/perf_coll_overlap.hpp"
#include "perf/cli/perf_ranks.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr int kBlocks = 20;
constexpr double kTestIntervalUs = 10;

double since(std::uint64_t start) {
  return static_cast<double>(perf::ticks() - start) * perf::ns_per_tick();
}

void merge_histograms(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    static_cast<perf::Histogram*>(inout)[i].merge(static_cast<perf::Histogram*>(in)[i]);
}

perf::Histogram histogram_of_all(const perf::Histogram& own) {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Type_contiguous(sizeof own, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(merge_histograms, 1, &op);
  perf::Histogram all;
  MPI_Reduce(&own, &all, 1, type, op, 0, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  return all;
}

}  // namespace

/// What a rank has of all calls of a size.
struct CollMeter::Series {
  explicit Series(int count) : iterations(count) {
    arrived.reserve(static_cast<std::size_t>(count));
    left.reserve(static_cast<std::size_t>(count));
  }
  /// The block that the call belongs to which comes next.
  [[nodiscard]] std::size_t block() const {
    return arrived.size() * kBlocks / static_cast<std::size_t>(iterations);
  }
  enum Sum { kOverall, kPure, kCompute, kBegin, kTest, kWait, kTests, kCalls, kSums };
  using Sums = std::array<double, kSums>;

  /// Of the calls from one place to another: by medians, since a call that lost its processor says
  /// nothing of either.
  [[nodiscard]] double overlap(std::size_t from, std::size_t to) const {
    perf::Blocks pure, compute, overall;
    for (std::size_t i = from; i < to; ++i) {
      pure.add(times[i].pure);
      compute.add(times[i].compute);
      overall.add(times[i].overall);
    }
    return from < to ? overlap_of(pure.median(), compute.median(), overall.median()) : 0;
  }
  /// Where a block begins.
  [[nodiscard]] std::size_t first_of(std::size_t which) const {
    return (which * times.size() + kBlocks - 1) / kBlocks;
  }

  struct Times {
    double pure, compute, overall;
  };
  int iterations;
  std::array<Sums, kBlocks> sums = {};
  std::vector<Times> times;  ///< of nonblocking ones
  perf::Histogram calls;
  std::vector<std::uint64_t> arrived, left;
  std::uint64_t wrong = 0;
};

CollMeter::CollMeter(const CollOptions& options, int rank, int ranks)
    : options_(options),
      rank_(rank),
      ranks_(ranks),
      random_(coll_seed(options) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) + 1) {
  is_one_host_ = ranks_share_host();
}

/// Waits for a time that chance says, between nothing and the skew that was asked for.
void CollMeter::be_late() {
  if (options_.skew_us <= 0) return;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const double part = static_cast<double>(random_ >> 11) * 0x1p-53;
  const std::uint64_t until =
      perf::now_ns() + static_cast<std::uint64_t>(part * options_.skew_us * 1000);
  while (perf::now_ns() < until) continue;
}

void CollMeter::check(const CollData& data, Series* into) {
  if (!options_.validates || into == nullptr) return;
  const std::string why = data.wrong();
  if (why.empty()) return;
  if (into->wrong++ == 0) std::fprintf(stderr, "rank %d: %s\n", rank_, why.c_str());
}

void CollMeter::call_once(CollData& data, std::uint64_t round, Series* into) {
  const CollArguments& arguments = data.prepare(round);
  MPI_Barrier(MPI_COMM_WORLD);
  be_late();
  const std::uint64_t arrived = perf::now_ns();
  const std::uint64_t start = perf::ticks();
  options_.call->whole(arguments);
  const double took = since(start);
  const std::uint64_t left = perf::now_ns();
  check(data, into);
  if (into == nullptr) return;
  Series::Sums& sums = into->sums[into->block()];
  sums[Series::kOverall] += took;
  ++sums[Series::kCalls];
  into->calls.record(static_cast<std::uint64_t>(took));
  into->arrived.push_back(arrived);
  into->left.push_back(left);
}

double CollMeter::pure_once(CollData& data, std::uint64_t round) {
  const CollArguments& arguments = data.prepare(round);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request request;
  const std::uint64_t start = perf::ticks();
  options_.call->begin(arguments, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return since(start);
}

/// By itself, the computation by itself, and both at once: in turn, so that a machine that drifts has
/// them drift together.
void CollMeter::overlap_once(CollData& data, std::uint64_t round, std::uint64_t units,
                             Series* into) {
  const double pure = pure_once(data, 2 * round);
  check(data, into);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::uint64_t alone = perf::ticks();
  work_.run(units);
  const double compute = since(alone);

  const std::uint64_t between =
      options_.tests ? units / (static_cast<std::uint64_t>(*options_.tests) + 1) + 1
                     : work_.units_in(1000 * options_.test_interval_us.value_or(kTestIntervalUs));
  const CollArguments& arguments = data.prepare(2 * round + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  be_late();
  MPI_Request request;
  const std::uint64_t arrived = perf::now_ns();
  const std::uint64_t start = perf::ticks();
  options_.call->begin(arguments, &request);
  const double begin = since(start);
  double test = 0;
  int tests = 0;
  for (std::uint64_t done = 0; done < units;) {
    const std::uint64_t part = std::min(between, units - done);
    work_.run(part);
    done += part;
    if (done >= units) break;
    int is_complete = 0;
    const std::uint64_t before = perf::ticks();
    MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
    test += since(before);
    ++tests;
  }
  const std::uint64_t waits = perf::ticks();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const double wait = since(waits);
  const double took = since(start);
  const std::uint64_t left = perf::now_ns();
  check(data, into);
  if (into == nullptr) return;
  const Series::Sums found = {took, pure, compute, begin, test, wait, static_cast<double>(tests),
                              1};
  Series::Sums& sums = into->sums[into->block()];
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found[i];
  into->times.push_back({pure, compute, took});
  into->calls.record(static_cast<std::uint64_t>(took));
  into->arrived.push_back(arrived);
  into->left.push_back(left);
}

/// As much computation as the collective takes by itself: the median of the rank that takes longest.
std::uint64_t CollMeter::calibrate(CollData& data, int warmup) {
  constexpr int kLeast = 10;
  perf::Blocks later;
  const int all = std::max(warmup, kLeast);
  for (int i = 0; i < all; ++i) {
    const double took = pure_once(data, static_cast<std::uint64_t>(i));
    // The first ones make what the later ones use.
    if (i >= all / 2) later.add(took);
  }
  const double own = later.median();
  double most = own;
  MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return work_.units_in(most);
}

void CollMeter::gather_arrivals(const Series& own, CollFigures& figures) const {
  if (!is_one_host_) return;
  const int count = static_cast<int>(own.arrived.size());
  std::vector<std::uint64_t> first(own.arrived.size()), last(first), end(first);
  MPI_Reduce(own.arrived.data(), first.data(), count, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(own.arrived.data(), last.data(), count, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(own.left.data(), end.data(), count, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank_ != 0) return;
  perf::Blocks spread, after;
  for (std::size_t i = 0; i < own.arrived.size(); ++i) {
    spread.add(static_cast<double>(last[i] - first[i]));
    after.add(end[i] > last[i] ? static_cast<double>(end[i] - last[i]) : 0);
  }
  figures.arrival = spread.median();
  figures.arrival_p99 = spread.quantile(0.99);
  figures.after_last = after.median();
}

/// Means of ranks, of all calls and block by block.
void CollMeter::gather_overlap(const Series& own, CollFigures& figures) const {
  std::array<double, kBlocks + 1> mine = {}, all = {};
  for (std::size_t i = 0; i < kBlocks; ++i)
    mine[i] = own.overlap(own.first_of(i), own.first_of(i + 1));
  mine[kBlocks] = own.overlap(0, own.times.size());
  MPI_Reduce(mine.data(), all.data(), kBlocks + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < kBlocks; ++i)
    if (own.first_of(i) < own.first_of(i + 1)) figures.overlap_blocks.add(100 * all[i] / ranks_);
  figures.overlap = all[kBlocks] / ranks_;
}

void CollMeter::gather(const Series& own, CollFigures& figures) const {
  Series::Sums mine = {};
  for (const Series::Sums& block : own.sums)
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += block[i];
  const double mean = mine[Series::kOverall] / own.iterations;
  figures.ranks.resize(static_cast<std::size_t>(ranks_));
  MPI_Gather(&mean, 1, MPI_DOUBLE, figures.ranks.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  std::sort(figures.ranks.begin(), figures.ranks.end());
  std::array<Series::Sums, kBlocks> all = {};
  MPI_Reduce(own.sums.data(), all.data(), kBlocks * Series::kSums, MPI_DOUBLE, MPI_SUM, 0,
             MPI_COMM_WORLD);
  Series::Sums sum = {};
  for (const Series::Sums& block : all) {
    const double calls = block[Series::kCalls];
    if (!(calls > 0)) continue;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += block[i];
    figures.blocks.add(block[Series::kOverall] / calls);
    figures.pure_blocks.add(block[Series::kPure] / calls);
  }
  const auto mean_of = [&](Series::Sum which) { return sum[which] / sum[Series::kCalls]; };
  figures.overall = mean_of(Series::kOverall);
  figures.pure = mean_of(Series::kPure);
  figures.compute = mean_of(Series::kCompute);
  figures.begin = mean_of(Series::kBegin);
  figures.test = mean_of(Series::kTest);
  figures.wait = mean_of(Series::kWait);
  figures.tests = mean_of(Series::kTests);
  if (options_.is_nonblocking) gather_overlap(own, figures);
  figures.calls = histogram_of_all(own.calls);
  MPI_Reduce(&own.wrong, &figures.wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  gather_arrivals(own, figures);
}

CollFigures CollMeter::measure(std::uint64_t bytes) {
  CollFigures figures;
  figures.bytes = bytes;
  figures.iterations = coll_iterations(options_, bytes);
  const int warmup = coll_warmup(options_, bytes);
  CollData data(options_, rank_, ranks_, bytes);
  Series own(figures.iterations);
  const std::uint64_t units = options_.is_nonblocking ? calibrate(data, warmup) : 0;
  for (int i = -warmup; i < figures.iterations; ++i) {
    const auto round = static_cast<std::uint64_t>(i + warmup);
    Series* const into = i < 0 ? nullptr : &own;
    if (options_.is_nonblocking)
      overlap_once(data, round, units, into);
    else
      call_once(data, round, into);
  }
  gather(own, figures);
  return figures;
}

}  // namespace verbatim::cli
