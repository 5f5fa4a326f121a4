// SPDX-License-Identifier: BSD-2-Clause
// Command line of the main job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbatim::perf {

struct RunOptions {
  std::vector<std::uint64_t> sizes = {8, 64, 512, 4096, 65536, 262144, 1048576, 4194304};
  int rounds = 21;
  int block_us = 2000;
  int seconds = 60;   // bound of the whole run; rounds give way
  int near_cpu = -1;  // -1: chosen
  int far_cpu = -1;
  std::uint64_t seed = 1;  // of the order within each round
  std::string jsonl;       // files of records; empty: none
  std::string csv;
  bool json = false;
  bool floors_only = false;
  bool help = false;
};

extern const char* const kRunUsage;

/// Nothing, with `error` saying why, when the arguments are wrong.
std::optional<RunOptions> parse_run_options(const std::vector<std::string>& arguments,
                                            std::string& error);

}  // namespace verbatim::perf
