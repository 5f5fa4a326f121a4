// SPDX-License-Identifier: BSD-2-Clause
// What all ranks measure of a collective of one size, together. Each rank is the main thread of a
// process; all call alike.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "perf/cli/perf_coll_data.hpp"
#include "perf/cli/perf_coll_options.hpp"
#include "perf/cli/perf_coll_work.hpp"
#include "perf/support/blocks.hpp"
#include "perf/support/histogram.hpp"

namespace verbatim::cli {

/// Times in ns, of all ranks. Of use at rank 0.
struct CollFigures {
  std::uint64_t bytes = 0;
  int iterations = 0;
  /// The means of ranks, in order, and what they are block by block.
  std::vector<double> ranks;
  perf::Blocks blocks;
  perf::Histogram calls;
  // Between ranks of one host, whose clocks are one; else NaN.
  double arrival = std::numeric_limits<double>::quiet_NaN();  ///< median of calls
  double arrival_p99 = std::numeric_limits<double>::quiet_NaN();
  double after_last =
      std::numeric_limits<double>::quiet_NaN();  ///< from the last arrival to the last return
  // Of nonblocking ones, means of ranks.
  double pure = 0, compute = 0, overall = 0, begin = 0, test = 0, wait = 0;
  double tests = 0;    ///< MPI_Test calls of one
  double overlap = 0;  ///< by the medians of a rank, from 0 to 1
  perf::Blocks pure_blocks, overlap_blocks;
  std::uint64_t wrong = 0;  ///< calls whose result was wrong, of all ranks
};

class CollMeter {
 public:
  CollMeter(const CollOptions& options, int rank, int ranks);
  /// What is wrong of a result is told by the rank that got it, once for a size.
  [[nodiscard]] CollFigures measure(std::uint64_t bytes);
  [[nodiscard]] bool is_one_host() const { return is_one_host_; }

 private:
  struct Series;
  void be_late();
  void call_once(CollData& data, std::uint64_t round, Series* into);
  void overlap_once(CollData& data, std::uint64_t round, std::uint64_t units, Series* into);
  [[nodiscard]] double pure_once(CollData& data, std::uint64_t round);
  [[nodiscard]] std::uint64_t calibrate(CollData& data, int warmup);
  void check(const CollData& data, Series* into);
  void gather(const Series& own, CollFigures& figures) const;
  void gather_overlap(const Series& own, CollFigures& figures) const;
  void gather_arrivals(const Series& own, CollFigures& figures) const;

  const CollOptions& options_;
  const int rank_, ranks_;
  bool is_one_host_ = false;
  std::uint64_t random_;
  CollWork work_;
};

}  // namespace verbatim::cli
