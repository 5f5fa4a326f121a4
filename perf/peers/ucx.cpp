// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/ucx.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "perf/peers/programs.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {

std::optional<UcxResult> parse_ucx(const std::string& text) {
  // iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
  constexpr std::size_t kColumns = 8;
  std::istringstream lines(text);
  std::optional<UcxResult> result;
  for (std::string line; std::getline(lines, line);) {
    std::vector<double> columns;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) {
      char* end = nullptr;
      const double value = std::strtod(cell.c_str(), &end);
      if (end == cell.c_str() || *end != '\0') break;
      columns.push_back(value);
    }
    // The times have three decimals of a microsecond; the overall rate says the same with eight
    // digits.
    if (columns.size() == kColumns && columns.back() > 0) result = UcxResult{columns.back(), 0};
  }
  return result;
}

UcxResult run_ucx(const UcxTest& test, const CorePair& cores) {
  Programs programs;
  programs.server = {"ucx_perftest", "-p", "%PORT%"};
  programs.client = {"ucx_perftest", "127.0.0.1",
                     "-p",           "%PORT%",
                     "-t",           test.name,
                     "-s",           std::to_string(test.size),
                     "-n",           std::to_string(test.count),
                     "-w",           std::to_string(test.count / 10 + 1),
                     "-f",           "-v"};
  if (test.sleeps) programs.client.insert(programs.client.end(), {"-E", "sleep"});
  switch (test.over) {
    case UcxOver::kTransport:
      for (const char* word : {"-d", "memory", "-x", "posix", "-D", "short"}) {
        programs.client.emplace_back(word);
      }
      break;
    case UcxOver::kTag:
      programs.environment = {"UCX_TLS=posix,cma"};
      break;
    case UcxOver::kDropIn:
      programs.environment = {"UCX_TLS=rc", "UCX_NET_DEVICES=shm0:1",
                              "VERBATIM_FABRIC=" + test.fabric};
      for (std::vector<std::string>* const words : {&programs.server, &programs.client})
        words->insert(words->begin(), {path_beside_own("cli/verbatim"), "exec", "--"});
      break;
  }
  const ProgramsRun run = run_programs(programs, cores);
  auto result = parse_ucx(run.output);
  if (!result) throw std::runtime_error("ucx_perftest printed no result: " + run.output);
  result->waited_ns = run.waited_ns;
  return *result;
}

}  // namespace verbatim::perf
