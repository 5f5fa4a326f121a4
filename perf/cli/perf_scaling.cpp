// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf scaling`: does an operation cost more among many objects? Costs against the number
// of queue pairs, of memory regions, of threads and of peer processes, and latency against size;
// slopes are fitted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/measuring.hpp"
#include "perf/cli/numbers.hpp"
#include "perf/cli/perf_chart.hpp"
#include "perf/ends/crowd.hpp"
#include "perf/figures/fit.hpp"
#include "perf/figures/run.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/scratch_folder.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kScalingUsage =
    "usage: verbatim perf scaling [options]\n"
    "What an operation costs among 1 to 10 000 queue pairs, among 64 to 100 000 memory regions,\n"
    "among 1 to 16 threads (in processor time) and among 1 to 64 peer processes, and how latency\n"
    "grows with size. Where a cost should not grow at all, a line is fitted over doublings, and "
    "its\n"
    "slope is told.\n"
    "  --quick          few numbers and rounds: a look, not a claim (2 s)\n"
    "  --most-qps N     at most so many queue pairs (10000)\n"
    "  --most-peers N   at most so many peer processes (64)\n"
    "  --rounds N       blocks of each figure (8)\n"
    "  --block-us N     length of a block in microseconds (2000)\n"
    "  --seconds N      beyond them one block of each figure must do (120)\n"
    "  --cpus A,B       the two CPUs\n"
    "  --json           one JSON object instead of the tables\n"
    "  --jsonl FILE     records too, one JSON object a line; - is the standard output\n"
    "  --csv FILE       records as CSV\n";

struct ScalingOptions {
  perf::RunOptions run;
  std::uint64_t most_qps = 10'000;
  std::uint64_t most_peers = perf::Crowd::kMostPeers;
  bool quick = false;
};

/// A figure at each number of objects.
struct Costs {
  std::string name, parameter;
  bool claims_constant;  // O(1) is what we say of it
  std::vector<std::uint64_t> numbers;
  std::vector<perf::Cell> cells;     // one each
  std::vector<std::string> missing;  // one each
  std::string kind = "scaling";
  std::string unit = "ns";
};

/// More than there are: who adds one keeps what points to the others.
constexpr std::size_t kMostCosts = 16;

class Scaling {
 public:
  explicit Scaling(const ScalingOptions& options)
      : options_(options), passes_(options.quick ? 1 : 2) {
    using Form = perf::RecordFile::Form;
    const perf::RunOptions& run = options.run;
    if (!run.jsonl.empty()) lines_ = perf::RecordFile(run.jsonl, Form::kJsonLines, "--jsonl");
    if (!run.csv.empty()) table_ = perf::RecordFile(run.csv, Form::kCsv, "--csv");
    cores_ = perf::choose_core_pair(perf::allowed_cpus());
    if (run.near_cpu >= 0) {
      cores_ = {run.near_cpu, run.far_cpu, run.near_cpu != run.far_cpu, "as asked"};
    }
  }

  int measure() {
    int status = 0;
    try {
      measure_queue_pairs();
      measure_regions();
      measure_threads();
      measure_peers();
      measure_sizes();
    } catch (const perf::Interrupted& interrupted) {
      status = 128 + interrupted.signal;
      interrupted_ = true;
    }
    pair_.reset();
    crowd_.reset();
    progress_.clear();
    about_ = perf::about_this_run("shm", "measured between CPU " + std::to_string(cores_.near) +
                                             " and CPU " + std::to_string(cores_.far) + ", " +
                                             cores_.note);
    about_.noise = watch_.noise();
    if (elapsed_ns_ > 0) about_.noise.waited = waited_ns_ / elapsed_ns_ / 2;
    const std::vector<perf::Record> all = records();
    if (status == 0 && !failure_.empty()) {
      std::fprintf(stderr, "verbatim perf scaling: not all is measured: %s\n", failure_.c_str());
      status = 1;
    }
    if (all.empty()) return status;
    if (lines_) lines_.write(all);
    if (table_) table_.write(all);
    if (options_.run.jsonl == "-" || options_.run.csv == "-") return status;
    if (options_.run.json)
      std::fputs(perf::json_object("verbatim-scaling-1", all).c_str(), stdout);
    else
      print();
    return status;
  }

 private:
  perf::Pair& pair() {
    if (!pair_) {
      pair_ = std::make_unique<perf::Pair>(cores_, fabric_.path());
      pair_->run({.kind = perf::Kind::kConnect}, "connect");
    }
    return *pair_;
  }

  Costs& add(const char* name, const char* parameter, bool constant,
             const std::vector<std::uint64_t>& numbers, const perf::Request& request) {
    Costs costs{name, parameter, constant, numbers, {}, {}};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      perf::Cell cell;
      cell.name = name;
      cell.request = request;
      costs.cells.push_back(std::move(cell));
    }
    costs.missing.resize(numbers.size());
    costs_.push_back(std::move(costs));
    return costs_.back();
  }

  void take(Costs& costs, std::size_t at) {
    take(costs, at, [this](const perf::Request& request, const std::string& what) {
      return pair().run(request, what);
    });
  }

  void take(Costs& costs, std::size_t at, const perf::Ask& ask) {
    perf::Cell& cell = costs.cells[at];
    progress_.show(done_, costs.name + ", " + std::to_string(costs.numbers[at]));
    if (cell.blocks.empty()) {
      calibrate(ask, cell, options_.run.block_us / 1000.0);
      costs.missing[at] = cell.unavailable ? "not offered by this machine" : "";
    }
    const double waited = cell.waited_ns, elapsed = cell.elapsed_ns;
    // A busy machine makes every block long; beyond the bound one of each must do.
    const int rounds = is_late() ? 1 : std::max(1, options_.run.rounds / passes_);
    for (int round = 0; round < rounds; ++round) {
      perf::measure(ask, cell, is_late() ? 1 : perf::kAttempts);
    }
    if (std::isnan(cell.system_calls)) perf::count_system_calls(ask, cell);
    waited_ns_ += cell.waited_ns - waited;
    elapsed_ns_ += cell.elapsed_ns - elapsed;
  }

  bool is_late() const {
    return static_cast<double>(perf::now_ns() - start_ns_) > 1e9 * options_.run.seconds;
  }

  /// What `prepare` makes so many of is there while `costs` are taken. Up and down again, so that a
  /// drift of the machine is no slope.
  void measure_among(const std::vector<std::uint64_t>& numbers, const std::vector<Costs*>& costs,
                     const std::function<void(std::size_t)>& prepare) {
    measure_among(numbers, costs, prepare, [this](Costs& one, std::size_t at) { take(one, at); });
  }

  void measure_among(const std::vector<std::uint64_t>& numbers, const std::vector<Costs*>& costs,
                     const std::function<void(std::size_t)>& prepare,
                     const std::function<void(Costs&, std::size_t)>& take) {
    std::size_t usable = numbers.size();
    for (int pass = 0; pass < passes_; ++pass) {
      for (std::size_t step = 0; step < usable; ++step) {
        const std::size_t at = pass == 0 ? step : usable - 1 - step;
        done_ =
            (static_cast<double>(pass) + static_cast<double>(step) / static_cast<double>(usable)) /
            passes_;
        try {
          progress_.show(done_, "making " + std::to_string(numbers[at]));
          prepare(at);
          for (Costs* one : costs) take(*one, at);
        } catch (const perf::Interrupted&) {
          throw;
        } catch (const std::exception& failure) {
          // The ends may wait for each other: the next figure has new ones.
          pair_.reset();
          crowd_.reset();
          for (Costs* one : costs) {
            for (std::size_t rest = at; rest < numbers.size(); ++rest) {
              if (one->cells[rest].blocks.empty()) one->missing[rest] = failure.what();
            }
          }
          if (failure_.empty()) failure_ = failure.what();
          usable = at;
          break;
        }
      }
    }
  }

  void measure_queue_pairs() {
    std::vector<std::uint64_t> numbers;
    for (const std::uint64_t number : {1, 4, 16, 64, 256, 1000, 3000, 10'000}) {
      if (number <= options_.most_qps && (!options_.quick || number <= 256)) {
        numbers.push_back(number);
      }
    }
    costs_.reserve(kMostCosts);
    Costs& polls = add("empty poll", "qps", true, numbers, {.kind = perf::Kind::kEmptyPoll});
    Costs& connects = add("create and connect one", "qps", true, numbers, {});
    measure_among(numbers, {&polls}, [&](std::size_t at) {
      perf::Request request;
      request.kind = perf::Kind::kConnectMany;
      request.iterations = numbers[at];
      const perf::Reply reply = pair().run(request, "connect many");
      connects.cells[at].blocks.add(reply.ns_per_operation());
    });
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (connects.cells[i].blocks.empty()) connects.missing[i] = polls.missing[i];
    }
    // What ten thousand of them hold is given back before the next figure.
    pair_.reset();
  }

  void measure_regions() {
    std::vector<std::uint64_t> numbers = {64, 256, 1000, 4000, 16'000, 50'000, 100'000};
    if (options_.quick) numbers = {64, 1000, 16'000};
    Costs& writes = add("write of 8 B, each between other regions", "mrs", true, numbers,
                        {.kind = perf::Kind::kWriteMany});
    measure_among(numbers, {&writes}, [&](std::size_t at) {
      perf::Request request;
      request.kind = perf::Kind::kRegisterMany;
      request.iterations = numbers[at];
      pair().run(request, "register many");
    });
  }

  void measure_threads() {
    std::vector<std::uint64_t> numbers = {1, 2, 4, 8, 16};
    if (options_.quick) numbers = {1, 2, 4};
    Costs& costs = add("write of 8 B, queues of its own", "threads", true, numbers,
                       {.kind = perf::Kind::kThreads});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      costs.cells[i].request.batch = static_cast<std::uint32_t>(numbers[i]);
    }
    measure_among(numbers, {&costs}, [](std::size_t) {});
  }

  /// A hub talks to one process after the other; each number of them is started anew.
  void measure_peers() {
    pair_.reset();  // whose cores these take
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t number = 1; number <= options_.most_peers; number *= 2) {
      if (!options_.quick || number <= 8) numbers.push_back(number);
    }
    Costs& sends = add("send of 8 B, to one process after the other", "peers", true, numbers,
                       {.kind = perf::Kind::kTalk});
    Costs& polls = add("empty poll, connected with other processes", "peers", true, numbers,
                       {.kind = perf::Kind::kEmptyPoll});
    Costs& joins = add("create and connect one, to another process", "peers", true, numbers, {});
    Costs& memory = add("memory of the hub for each peer", "peers", true, numbers, {});
    memory.unit = "KiB";
    const auto turns = static_cast<std::uint32_t>(numbers.back());
    measure_among(
        numbers, {&sends, &polls},
        [&](std::size_t at) {
          crowd_.reset();
          crowd_ = std::make_unique<perf::Crowd>(cores_, fabric_.path(),
                                                 static_cast<std::uint32_t>(numbers[at]));
          const perf::Reply reply = crowd_->join();
          joins.cells[at].blocks.add(reply.ns_per_operation());
          memory.cells[at].blocks.add(reply.extra[0] / 1024);
        },
        [&](Costs& costs, std::size_t at) {
          take(costs, at, [&](const perf::Request& request, const std::string& what) {
            return &costs == &sends ? crowd_->talk(request, turns) : crowd_->ask_hub(request, what);
          });
        });
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (joins.cells[i].blocks.empty()) joins.missing[i] = memory.missing[i] = sends.missing[i];
    }
    crowd_.reset();
  }

  void measure_sizes() {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t size = 8; size <= perf::kMaxSize; size *= options_.quick ? 64 : 4) {
      numbers.push_back(size);
    }
    for (const auto& [name, operation] : {std::pair("send mapped", perf::Operation::kSend),
                                          std::pair("write mapped", perf::Operation::kWrite)}) {
      Costs& costs =
          add(name, "size", false, numbers,
              {.kind = perf::Kind::kPingPong, .operation = operation, .pace = perf::Pace::kPause});
      costs.kind = "latency";
      for (std::size_t i = 0; i < numbers.size(); ++i) costs.cells[i].request.size = numbers[i];
      measure_among(numbers, {&costs}, [](std::size_t) {});
    }
  }

  std::vector<perf::Record> records() const {
    std::vector<perf::Record> all;
    for (const Costs& costs : costs_) {
      for (std::size_t i = 0; i < costs.numbers.size(); ++i) {
        perf::Record record;
        record.about = about_;
        record.kind = costs.kind;
        record.name = costs.name;
        record.parameter = costs.parameter;
        record.at = costs.numbers[i];
        record.unit = costs.unit;
        record.missing = costs.missing[i];
        record.blocks = costs.cells[i].blocks;
        if (record.missing.empty() && record.blocks.empty()) continue;  // interrupted before
        const perf::Cell& cell = costs.cells[i];
        if (cell.operations > 0) {
          record.cpu_ns = cell.cpu_ns / cell.operations;
          record.switches = cell.switches / cell.operations;
        }
        record.system_calls = cell.system_calls;
        all.push_back(std::move(record));
      }
    }
    return all;
  }

  void print() const {
    std::printf("%s, %s\n", about_.processor.c_str(), about_.topology.c_str());
    if (interrupted_) std::printf("interrupted: what was measured till then\n");
    const std::string why = about_.noise.unreliable();
    if (!why.empty()) std::printf("unreliable: %s\n", why.c_str());
    perf::Table slopes({"<cost of", "<among", "least", "most", "slope of a doubling", "<"});
    for (const Costs& costs : costs_) {
      perf::Table table({"<" + costs.name, costs.parameter, "median", "min", "spread", "<"});
      std::vector<std::pair<double, double>> points;
      for (std::size_t i = 0; i < costs.numbers.size(); ++i) {
        const perf::Blocks& blocks = costs.cells[i].blocks;
        const std::string number = std::to_string(costs.numbers[i]);
        if (blocks.empty()) {
          if (!costs.missing[i].empty()) {
            table.add({"", number, "", "", "", "not measured: " + costs.missing[i]});
          }
          continue;
        }
        table.add({"", number, with_unit(blocks.median(), costs.unit),
                   with_unit(blocks.min(), costs.unit), perf::percent_text(blocks.spread()), ""});
        points.emplace_back(static_cast<double>(costs.numbers[i]), blocks.median());
      }
      if (points.empty()) continue;
      std::printf("\n");
      table.print(stdout);
      if (!costs.claims_constant || points.size() < 3) continue;
      const perf::Fit fit = perf::fit_over_doublings(points);
      char slope[64];
      std::snprintf(slope, sizeof slope, "%+.2f %% +- %.2f", 100 * fit.slope,
                    100 * fit.slope_error);
      slopes.add({costs.name,
                  perf::fixed_text(points.front().first, 0) + " to " +
                      perf::fixed_text(points.back().first, 0) + " " + costs.parameter,
                  with_unit(points.front().second, costs.unit),
                  with_unit(points.back().second, costs.unit), slope, perf::name_of(fit.told())});
    }
    std::printf(
        "\nClaims of O(1): a line fitted over doublings; 'grows' is a slope above %g %%,\n"
        "'not told' one that its error hides\n",
        100 * perf::Fit::kFlat);
    slopes.print(stdout);
  }

  const ScalingOptions& options_;
  int passes_;
  perf::CorePair cores_;
  perf::ScratchFolder fabric_;
  std::unique_ptr<perf::Pair> pair_;
  std::unique_ptr<perf::Crowd> crowd_;
  perf::NoiseWatch watch_;
  perf::Progress progress_;
  perf::RecordFile lines_, table_;
  perf::RunAbout about_;
  std::vector<Costs> costs_;
  std::uint64_t start_ns_ = perf::now_ns();
  std::string failure_;  // the first one
  double done_ = 0, waited_ns_ = 0, elapsed_ns_ = 0;
  bool interrupted_ = false;
};

/// Takes our own options out of the words; the others are those of the main job.
std::string take_scaling_words(std::vector<std::string>* words, ScalingOptions* options) {
  for (std::size_t i = 0; i < words->size(); ++i) {
    const std::string word = (*words)[i];
    if (word == "--quick") {
      options->quick = true;
    } else if (word == "--most-qps" || word == "--most-peers") {
      const bool of_qps = word == "--most-qps";
      const long long limit = of_qps ? 10'000 : perf::Crowd::kMostPeers;
      const char* value = i + 1 < words->size() ? (*words)[i + 1].c_str() : "";
      const auto most = number_in(value, 1, limit);
      if (!most) {
        return std::string("'") + value + "' is not a number from 1 to " + std::to_string(limit) +
               " (" + word + ")";
      }
      (of_qps ? options->most_qps : options->most_peers) = static_cast<std::uint64_t>(*most);
      words->erase(words->begin() + static_cast<long>(i),
                   words->begin() + static_cast<long>(i) + 2);
      --i;
    } else if (word == "--sizes" || word == "--floors" || word == "--seed") {
      // Numbers go up and down again, in no order that a seed could choose.
      return "unknown option " + word;
    }
  }
  return {};
}

}  // namespace

int perf_scaling(Calling, int argc, char** argv) {
  ScalingOptions options;
  std::vector<std::string> words(argv + 1, argv + argc);
  std::string error = take_scaling_words(&words, &options);
  if (!options.quick) words.insert(words.begin(), {"--rounds", "8", "--seconds", "120"});
  const auto run = error.empty() ? perf::parse_run_options(words, error) : std::nullopt;
  if (!run) {
    std::fprintf(stderr, "verbatim perf scaling: %s\n%s", error.c_str(), kScalingUsage);
    return 1;
  }
  options.run = *run;
  if (run->help) {
    std::fputs(kScalingUsage, stdout);
    return 0;
  }
  perf::catch_interrupts();
  try {
    return Scaling(options).measure();
  } catch (const perf::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim perf scaling: %s\n", failure.what());
    return 1;
  }
}

}  // namespace verbatim::cli
