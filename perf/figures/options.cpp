// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/options.hpp"

#include "perf/ends/request.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

bool take_sizes(const std::string& text, RunOptions& options) {
  const auto sizes = parse_sizes(text);
  if (!sizes || sizes->front() < 8 || sizes->back() > kMaxSize) return false;
  for (const std::uint64_t size : *sizes) {
    if (size % 8 != 0) return false;  // the floors keep a flag in the last aligned word
  }
  options.sizes = *sizes;
  return true;
}

bool take_cpus(const std::string& text, RunOptions& options) {
  const auto comma = text.find(',');
  if (comma == std::string::npos) return false;
  const auto near = parse_count(text.substr(0, comma), 0, 1023);
  const auto far = parse_count(text.substr(comma + 1), 0, 1023);
  if (!near || !far) return false;
  options.near_cpu = *near;
  options.far_cpu = *far;
  return true;
}

bool take_count(const std::string& text, int low, int high, int& into) {
  const auto value = parse_count(text, low, high);
  if (value) into = *value;
  return value.has_value();
}

bool take_seed(const std::string& text, RunOptions& options) {
  int seed = 0;
  if (!take_count(text, 0, 2'000'000'000, seed)) return false;
  options.seed = static_cast<std::uint64_t>(seed);
  return true;
}

bool take_path(const std::string& text, std::string& into) {
  into = text;
  return !text.empty();
}

}  // namespace

const char* const kRunUsage =
    "usage: verbatim_perf [options]\n"
    "Two processes, pinned to two cores, exchange data by RC verbs over shared memory; their\n"
    "figures stand beside the floors of this machine, measured in the same run; MPI beside verbs.\n"
    "  --quick          few sizes and rounds: a look, not a claim (2 s)\n"
    "  --sizes LIST     such as 8,4K or 8..4M; multiples of 8, up to 4M\n"
    "  --rounds N       blocks of each figure (21)\n"
    "  --block-us N     length of a block in microseconds (2000)\n"
    "  --seconds N      bound of the whole run, rounds give way (60)\n"
    "  --cpus A,B       the two CPUs\n"
    "  --floors         the floors alone\n"
    "  --seed N         of the order in which figures are taken in turn (1)\n"
    "  --json           one JSON object instead of tables\n"
    "  --jsonl FILE     records of all figures too, one JSON object a line; - instead of tables\n"
    "  --csv FILE       or as CSV; the lines are what 'verbatim perf report' and 'gate' read\n";

std::optional<RunOptions> parse_run_options(const std::vector<std::string>& arguments,
                                            std::string& error) {
  RunOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
    } else if (name == "--json") {
      options.json = true;
    } else if (name == "--floors") {
      options.floors_only = true;
    } else if (name == "--quick") {
      options.sizes = {8, 4096, 65536};
      options.rounds = 5;
      options.block_us = 500;
      options.seconds = 10;
    } else if (name == "--sizes" || name == "--rounds" || name == "--block-us" ||
               name == "--seconds" || name == "--cpus" || name == "--seed" || name == "--jsonl" ||
               name == "--csv") {
      if (i + 1 == arguments.size()) {
        error = name + " needs a value";
        return std::nullopt;
      }
      const std::string& value = arguments[++i];
      const bool good = name == "--sizes"      ? take_sizes(value, options)
                        : name == "--rounds"   ? take_count(value, 1, 10'000, options.rounds)
                        : name == "--block-us" ? take_count(value, 50, 1'000'000, options.block_us)
                        : name == "--seconds"  ? take_count(value, 1, 86'400, options.seconds)
                        : name == "--seed"     ? take_seed(value, options)
                        : name == "--jsonl"    ? take_path(value, options.jsonl)
                        : name == "--csv"      ? take_path(value, options.csv)
                                               : take_cpus(value, options);
      if (!good) {
        error = name + ": '" + value + "' is not possible";
        return std::nullopt;
      }
    } else {
      error = "unknown option " + name;
      return std::nullopt;
    }
  }
  if (int{options.json} + int{options.jsonl == "-"} + int{options.csv == "-"} > 1) {
    error = "one of --json, --jsonl and --csv can have the standard output";
    return std::nullopt;
  }
  return options;
}

}  // namespace verbatim::perf
