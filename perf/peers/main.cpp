// SPDX-License-Identifier: BSD-2-Clause
// The comparison: our figures in turn with the floors and with other libraries' own measuring
// programs, each row with its target. Rows whose other library is not installed say so. Exit status
// 0 when all was measured, whatever the verdicts; --strict: 3 when one is short.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "perf/ends/end.hpp"
#include "perf/peers/bench.hpp"
#include "perf/peers/programs.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

constexpr const char* kUsage =
    "usage: verbatim_compare [options]\n"
    "  --rows LIST   only these: "
    "R1,R2,R3,R5,sizes,R6,R7,R8,R10,R13,memory,alloc,pages,served,mpi,dropin\n"
    "  --rounds N    times each figure is taken, in turn with what it is compared with (9)\n"
    "  --block-us N  length of one block of ours in microseconds (4000)\n"
    "  --seconds N   from then on nothing disturbed is taken again and three rounds must do (300)\n"
    "  --quick       3 short rounds: a look, not a claim\n"
    "  --strict      exit status 3 when a figure falls short\n"
    "  --json        one JSON object instead of the table\n";

struct Options {
  BenchOptions bench;
  bool json = false;
  bool strict = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    const auto comma = text.find(',', start);
    parts.push_back(text.substr(start, comma - start));
    if (comma == std::string::npos) return parts;
    start = comma + 1;
  }
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--json") {
      options.json = true;
    } else if (name == "--strict") {
      options.strict = true;
    } else if (name == "--quick") {
      options.bench.rounds = 3;
      options.bench.block_ms = 1;
      options.bench.seconds = 30;
    } else if (name == "--rows" && value != nullptr) {
      options.bench.rows = split(argv[++i]);
    } else if (name == "--rounds" && value != nullptr && parse_count(value, 1, 1000)) {
      options.bench.rounds = *parse_count(argv[++i], 1, 1000);
    } else if (name == "--seconds" && value != nullptr && parse_count(value, 1, 86'400)) {
      options.bench.seconds = *parse_count(argv[++i], 1, 86'400);
    } else if (name == "--block-us" && value != nullptr && parse_count(value, 50, 1'000'000)) {
      options.bench.block_ms = *parse_count(argv[++i], 50, 1'000'000) / 1000.0;
    } else {
      return false;
    }
  }
  return true;
}

void judge_all(Bench& bench) {
  if (bench.wants("R1") || bench.wants("R2") || bench.wants("R3")) judge_latency(bench);
  if (bench.wants("R5")) judge_rate(bench);
  if (bench.wants("sizes")) judge_sizes(bench);
  if (bench.wants("R6") || bench.wants("R7")) judge_bandwidth(bench);
  if (bench.wants("pages")) judge_pages(bench);
  if (bench.wants("R8")) judge_polling(bench);
  if (bench.wants("R10")) judge_sleeping(bench);
  if (bench.wants("R13")) judge_setup(bench);
  if (bench.wants("R13")) judge_topology(bench);
  if (bench.wants("memory")) judge_memory(bench);
  if (bench.wants("alloc")) judge_allocation(bench);
  if (bench.wants("served")) judge_served(bench);
  if (bench.wants("mpi")) judge_mpi(bench);
  if (bench.wants("dropin")) judge_dropin(bench);
}

int compare(const Options& options) {
  catch_interrupts();
  try {
    const CorePair cores = choose_core_pair(allowed_cpus());
    const std::string processor = processor_name();
    const ScratchFolder fabric;
    Bench bench(options.bench, cores, fabric.path());
    judge_all(bench);
    if (options.json) {
      print_verdicts_json(stdout, processor, cores, bench.disturbed, bench.verdicts);
    } else {
      std::printf("%s, CPU %d and CPU %d (%s), %d rounds; spread is between the quartiles\n",
                  processor.c_str(), cores.near, cores.far, cores.note.c_str(),
                  options.bench.rounds);
      if (bench.retaken != 0) {
        std::printf(
            "%d measurements were taken again since other programs had one of the cores; %d stayed "
            "disturbed\n\n",
            bench.retaken, bench.disturbed);
      }
      print_verdicts(stdout, bench.verdicts);
    }
    for (const Verdict& verdict : bench.verdicts) {
      if (options.strict && verdict.judged() && !verdict.passes()) return 3;
    }
    return 0;
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim_compare: %s\n", failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  using namespace verbatim::perf;
  become_program_if_asked(argc, argv);
  const int as_end = run_if_end(argc, argv);
  if (as_end >= 0) return as_end;
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return compare(options);
}
