// SPDX-License-Identifier: BSD-2-Clause
// The small benchmarks, in short: what is said to be O(1) is, by the processor time that Google
// Benchmark fits. The program is named by VERBATIM_MICRO_PROGRAM (a compile definition).
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "perf/support/process.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

using Json = nlohmann::json;

TEST(Micro, WhatIsOfConstantCostIsSo) {
  const std::string program = VERBATIM_MICRO_PROGRAM;
  if (program.empty()) GTEST_SKIP() << "Google Benchmark (libbenchmark-dev) is not installed";
  const ScratchFolder fabric;
  auto [output, end] = pipe_pair();
  SpawnOptions options;
  options.environment = {"VERBATIM_FABRIC=" + fabric.path(), "XDG_RUNTIME_DIR=" + fabric.path()};
  options.stdout_fd = end.get();
  Child child({program, "--benchmark_format=json", "--benchmark_min_time=0.01"}, options);
  end.reset();
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got; (got = read(output.get(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  ASSERT_EQ(child.wait(), 0) << text;
  const Json all = Json::parse(text, nullptr, false);
  ASSERT_TRUE(all.is_object()) << text;
  std::set<std::string> constant;
  for (const Json& one : all["benchmarks"]) {
    if (one.value("big_o", "") == "(1)") constant.insert(one["run_name"].get<std::string>());
    if (one.value("aggregate_name", "") != "RMS") continue;
    // How far from the fitted order the costs lie; a cost that grew by what is looked up among
    // would lie at 1 and more.
    EXPECT_LT(one["rms"].get<double>(), 0.5) << one;
  }
  EXPECT_EQ(constant, (std::set<std::string>{"keys", "pools", "addresses", "empty_polls"}));
}

}  // namespace
}  // namespace verbatim::perf
