// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/libfabric.hpp"

#include <sstream>
#include <stdexcept>
#include <vector>

#include "perf/peers/programs.hpp"

namespace verbatim::perf {

std::optional<double> parse_pingpong(const std::string& text) {
  // bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
  constexpr std::size_t kColumns = 8;
  std::istringstream lines(text);
  std::optional<double> result;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string> columns;
    for (std::string cell; cells >> cell;) columns.push_back(cell);
    if (columns.size() != kColumns) continue;
    const double microseconds = std::strtod(columns[6].c_str(), nullptr);
    const double million_per_second = std::strtod(columns[7].c_str(), nullptr);
    // Both have two decimals: the larger number is the more exact one.
    if (microseconds > 0 && million_per_second > 0) {
      result = microseconds > million_per_second ? 1000 * microseconds : 1000 / million_per_second;
    }
  }
  return result;
}

PingpongResult run_pingpong(std::uint64_t size, std::uint64_t count, const CorePair& cores) {
  Programs programs;
  const std::vector<std::string> both = {
      "-p", "shm", "-e", "rdm", "-I", std::to_string(count), "-S", std::to_string(size)};
  programs.server = {"fi_pingpong", "-B", "%PORT%"};
  programs.client = {"fi_pingpong", "-P", "%PORT%"};
  programs.server.insert(programs.server.end(), both.begin(), both.end());
  programs.client.insert(programs.client.end(), both.begin(), both.end());
  programs.client.emplace_back("127.0.0.1");
  const ProgramsRun run = run_programs(programs, cores);
  const auto result = parse_pingpong(run.output);
  if (!result) throw std::runtime_error("fi_pingpong printed no result: " + run.output);
  return {*result, run.waited_ns};
}

}  // namespace verbatim::perf
