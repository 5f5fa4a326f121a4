// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf coll` was asked for. Main thread.
//
// Options that the OSU micro-benchmarks or the Intel MPI benchmarks have are called as there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/cli/perf_coll_calls.hpp"
#include "perf/cli/perf_coll_types.hpp"

namespace verbatim::cli {

struct CollOptions {
  const CollCall* call = nullptr;
  bool is_nonblocking = false;
  std::vector<std::uint64_t> sizes;          ///< these alone; empty: from `least` to `most`
  std::optional<std::uint64_t> least, most;  ///< by twos
  std::optional<int> iterations, warmup;
  bool is_full = false;
  bool validates = false;
  std::optional<int> tests;  ///< MPI_Test calls during the computation
  std::optional<double> test_interval_us;
  const CollType* type = nullptr;
  const CollOp* op = nullptr;
  bool is_in_place = false;
  int root = 0;
  bool root_rotates = false;
  bool is_alloc = false;
  bool keeps_buffer = false;
  std::uint64_t most_memory = std::uint64_t{1} << 30;
  double skew_us = 0;
  std::optional<std::uint64_t> seed;  ///< of the skew
  std::string algorithm;
  bool has_floors = true;
  std::optional<std::string> jsonl, csv;
  std::optional<int> ranks;
  bool help = false;
};

/// Throws Failure.
[[nodiscard]] CollOptions parse_coll(int argc, char** argv);
void coll_usage(const char* name);

/// The sizes in bytes that `ranks` ranks measure; throws Failure where there is none.
[[nodiscard]] std::vector<std::uint64_t> coll_sizes(const CollOptions& options, int ranks);
[[nodiscard]] int coll_iterations(const CollOptions& options, std::uint64_t bytes);
[[nodiscard]] std::uint64_t coll_seed(const CollOptions& options);
[[nodiscard]] int coll_warmup(const CollOptions& options, std::uint64_t bytes);

}  // namespace verbatim::cli
