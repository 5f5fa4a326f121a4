// SPDX-License-Identifier: BSD-2-Clause
// The comparison: our figures in turn with the floors and with other libraries' own measuring
// programs, each row with its target. Rows whose other library is not installed say so. Exit status
// 0 when all was measured, whatever the verdicts; --strict: 3 when one is short.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perf/ends/end.hpp"
#include "perf/peers/bench.hpp"
#include "perf/peers/programs.hpp"
#include "perf/peers/rows.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/lost_output.hpp"
#include "perf/support/record.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

constexpr const char* kUsage =
    "usage: verbatim_compare [options]\n"
    "The table of targets: each figure with its target, value, spread and verdict, and how many\n"
    "there are of each verdict. Ratios are judged; a time or a rate by itself is shown.\n"
    "  --rows LIST   only these, or all of sizes, memory, mpi or dropin:\n"
    "                %s\n"
    "  --rounds N    times each figure is taken, in turn with what it is compared with (9)\n"
    "  --block-us N  length of one block of ours in microseconds (4000)\n"
    "  --seconds N   from then on nothing disturbed is taken again and three rounds must do (300)\n"
    "  --quick       3 short rounds: a look, not a claim\n"
    "  --strict      exit status 3 when a figure falls short\n"
    "  --json        one JSON object instead of the table\n"
    "  --jsonl FILE  records of all figures too, one JSON object a line; - instead of the table\n"
    "  --csv FILE    or as CSV; the lines are what 'verbatim perf report' and 'gate' read\n";

struct Options {
  BenchOptions bench;
  bool json = false;
  bool strict = false;
  bool help = false;
  std::string jsonl, csv;
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

/// Empty, or what is wrong.
std::string parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
    } else if (name == "--json") {
      options.json = true;
    } else if (name == "--strict") {
      options.strict = true;
    } else if (name == "--quick") {
      options.bench.rounds = 3;
      options.bench.block_ms = 1;
      options.bench.seconds = 30;
    } else if (name == "--rows" || name == "--rounds" || name == "--seconds" ||
               name == "--block-us" || name == "--jsonl" || name == "--csv") {
      if (i + 1 == argc) return name + " needs a value";
      const std::string value = argv[++i];
      const int most = name == "--rounds" ? 1000 : name == "--seconds" ? 86'400 : 1'000'000;
      const auto count = parse_count(value, name == "--block-us" ? 50 : 1, most);
      if (name == "--rows") {
        try {
          options.bench.rows = expanded_rows(split(value));
        } catch (const std::invalid_argument& wrong) {
          return std::string(wrong.what()) + " (--rows)";
        }
      } else if (name == "--jsonl" || name == "--csv") {
        if (value.empty()) return name + " needs a value";
        (name == "--csv" ? options.csv : options.jsonl) = value;
      } else if (!count) {
        return name + ": '" + value + "' is not possible";
      } else if (name == "--rounds") {
        options.bench.rounds = *count;
      } else if (name == "--seconds") {
        options.bench.seconds = *count;
      } else {
        options.bench.block_ms = *count / 1000.0;
      }
    } else {
      return "unknown option " + name;
    }
  }
  return {};
}

void judge_all(Bench& bench) {
  for (const RowGroup& group : row_groups()) {
    const bool wanted = std::ranges::any_of(
        group.rows, [&](std::string_view row) { return bench.wants(std::string(row)); });
    if (wanted) group.judge(bench);
  }
}

/// What was measured, in the order of the table; of a group only the rows that are wanted.
void tidy(Bench& bench) {
  std::erase_if(bench.verdicts, [&](const Verdict& one) { return !bench.wants(one.row); });
  sort_rows(bench.verdicts);
}

void print_table(const Options& options, const Bench& bench, const std::string& processor,
                 int interrupted) {
  std::printf("%s, CPU %d and CPU %d (%s), %d rounds; spread is between the quartiles\n",
              processor.c_str(), bench.cores.near, bench.cores.far, bench.cores.note.c_str(),
              options.bench.rounds);
  if (interrupted != 0) std::printf("interrupted: what was measured till then\n");
  const std::string why = bench.noise().unreliable();
  if (!why.empty()) std::printf("unreliable: %s\n", why.c_str());
  if (bench.retaken != 0) {
    std::printf(
        "%d measurements were taken again since other programs had one of the cores; %d stayed "
        "disturbed\n",
        bench.retaken, bench.disturbed);
  }
  std::printf("\n");
  print_verdicts(stdout, bench.verdicts);
  std::printf("\n");
  print_summary(stdout, bench.verdicts);
}

class Comparing {
 public:
  explicit Comparing(const Options& options) : options_(options) {
    using Form = RecordFile::Form;
    if (!options.jsonl.empty()) lines_ = RecordFile(options.jsonl, Form::kJsonLines, "--jsonl");
    if (!options.csv.empty()) table_ = RecordFile(options.csv, Form::kCsv, "--csv");
  }

  int run() {
    int interrupted = 0;
    try {
      judge_all(bench_);
    } catch (const Interrupted& by) {
      interrupted = by.signal;
    }
    tidy(bench_);
    if (interrupted == 0 || !bench_.verdicts.empty()) tell(interrupted);
    if (interrupted != 0) return 128 + interrupted;
    for (const Verdict& verdict : bench_.verdicts) {
      if (options_.strict && verdict.judged() && !verdict.passes()) return 3;
    }
    return 0;
  }

 private:
  void tell(int interrupted) {
    about_.noise = bench_.noise();
    const std::vector<Record> records = records_of(bench_.verdicts, about_);
    const bool printed = options_.jsonl == "-" || options_.csv == "-";
    if (options_.json) {
      print_verdicts_json(stdout, about_.processor, cores_, bench_.disturbed, bench_.verdicts);
    } else if (!printed) {
      print_table(options_, bench_, about_.processor, interrupted);
    }
    if (lines_) lines_.write(records);
    if (table_) table_.write(records);
  }

  const Options& options_;
  RecordFile lines_, table_;
  const CorePair cores_ = choose_core_pair(allowed_cpus());
  RunAbout about_ =
      about_this_run("shm", "measured between CPU " + std::to_string(cores_.near) + " and CPU " +
                                std::to_string(cores_.far) + ", " + cores_.note);
  const ScratchFolder fabric_;
  Bench bench_{options_.bench, cores_, fabric_.path()};
};

int compare(const Options& options) {
  catch_interrupts();
  try {
    return Comparing(options).run();
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
  const std::string wrong = parse(argc, argv, options);
  if (!wrong.empty()) {
    std::fprintf(stderr, "verbatim_compare: %s\n", wrong.c_str());
    std::fprintf(stderr, kUsage, row_names().c_str());
    return 2;
  }
  if (options.help) {
    std::printf(kUsage, row_names().c_str());
    return status_of_output("verbatim_compare", 0);
  }
  return status_of_output("verbatim_compare", compare(options));
}
