// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf sim`: what LogGP's model of a network says of the algorithms of a collective, by
// running the plans of all ranks that the library would run.
#include <getopt.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "mpi_shim/coll/crossovers.hpp"
#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/mpi_collectives.hpp"
#include "perf/cli/numbers.hpp"
#include "perf/cli/option_values.hpp"
#include "perf/sim/operands.hpp"
#include "perf/sim/simulation.hpp"

namespace verbatim::cli {
namespace {

using vmpi::Collective;

constexpr std::uint64_t kMostState = std::uint64_t{2} << 30;

struct Options {
  Collective which = Collective::kAllreduce;
  long long ranks = 1024;
  long long bytes = 8;
  bool has_bytes = false;
  std::string algorithm;
  sim::Model model;
  std::unique_ptr<vmpi::Nodes> nodes;  ///< of more than one rank
  vmpi::Costs costs = {};
  bool has_crossovers = false;
  bool help = false;
};

vmpi::Shape shape_of(const Options& options, long long bytes) {
  return sim::shape_of(static_cast<int>(options.ranks), bytes, options.nodes.get(), options.costs);
}

void usage(const char* name) {
  const sim::Model model;
  std::printf(
      "Usage:\n"
      "  %s [options]   predict a collective by a model of a network (LogGP)\n"
      "\n"
      "Options:\n"
      "  -c, --collective=<name>       of which collective (default allreduce)\n"
      "  -r, --ranks=<number>          by so many ranks (default 1024)\n"
      "  -b, --bytes=<number>          of so many bytes (default 8)\n"
      "  -a, --algorithm=<name>        by this algorithm alone (default: all)\n"
      "  -n, --ranks-per-node=<number> ranks of a node, which have the parameters of 'within'\n"
      "  -L, --latency=<ns>            between nodes (default %g); --within-latency (default %g)\n"
      "  -o, --overhead=<ns>           of a processor for a message (default %g);\n"
      "                                --within-overhead (default %g)\n"
      "  -g, --gap=<ns>                between two messages (default %g); --within-gap (default "
      "%g)\n"
      "  -G, --gap-of-bytes=<ns>       between two bytes (default %g); --within-gap-of-bytes\n"
      "                                (default %g)\n"
      "  -C, --combine=<ns>            to combine a byte (default %g)\n"
      "  -N, --noise=<percent>         processors take longer, by chance, by so much on the "
      "average\n"
      "      --seed=<number>           the chance (default 1)\n"
      "  -x, --crossovers              which algorithm is the fastest, from 8 B to 4 MiB\n"
      "  -h, --help                    print a help text and exit\n"
      "\n"
      "Every figure is the model's, not measured. The root is rank 0, operations commute, slices\n"
      "are of one size.\n",
      name, model.between.latency, model.within.latency, model.between.overhead,
      model.within.overhead, model.between.gap, model.within.gap, model.between.gap_of_bytes,
      model.within.gap_of_bytes, model.combine_of_bytes);
}

double time_of(const char* program, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  constexpr double kMost = 1e12;
  if (end == text || *end != '\0' || !std::isfinite(value) || value < 0 || value > kMost)
    fail("%s: '%s' is no time in ns", program, text);
  return value;
}

long long number(const char* program, const char* text, long long low, long long high,
                 const char* of_what) {
  const std::optional<long long> value = number_in(text, low, high);
  if (!value)
    fail("%s: '%s' is no number of %s from %lld to %lld", program, text, of_what, low, high);
  return *value;
}

Options parse(int argc, char** argv) {
  enum { kWithinLatency = 256, kWithinOverhead, kWithinGap, kWithinGapOfBytes, kSeed };
  static const option kLong[] = {
      {"collective", required_argument, nullptr, 'c'},
      {"ranks", required_argument, nullptr, 'r'},
      {"bytes", required_argument, nullptr, 'b'},
      {"algorithm", required_argument, nullptr, 'a'},
      {"ranks-per-node", required_argument, nullptr, 'n'},
      {"latency", required_argument, nullptr, 'L'},
      {"overhead", required_argument, nullptr, 'o'},
      {"gap", required_argument, nullptr, 'g'},
      {"gap-of-bytes", required_argument, nullptr, 'G'},
      {"combine", required_argument, nullptr, 'C'},
      {"within-latency", required_argument, nullptr, kWithinLatency},
      {"within-overhead", required_argument, nullptr, kWithinOverhead},
      {"within-gap", required_argument, nullptr, kWithinGap},
      {"within-gap-of-bytes", required_argument, nullptr, kWithinGapOfBytes},
      {"noise", required_argument, nullptr, 'N'},
      {"seed", required_argument, nullptr, kSeed},
      {"crossovers", no_argument, nullptr, 'x'},
      {"help", no_argument, nullptr, 'h'},
      {nullptr, 0, nullptr, 0}};
  Options options;
  sim::LogGP& between = options.model.between;
  sim::LogGP& within = options.model.within;
  static constexpr char kLetters[] = ":c:r:b:a:n:L:o:g:G:C:N:xh";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, kLetters, kLong, nullptr)) != -1;) {
    switch (c) {
      case 'c':
        options.which = collective_named(argv[0], optarg);
        break;
      case 'r':
        options.ranks = number(argv[0], optarg, 1, 1 << 20, "ranks");
        break;
      case 'b':
        options.bytes = number(argv[0], optarg, 0, 1LL << 33, "bytes");
        options.has_bytes = true;
        break;
      case 'a':
        options.algorithm = optarg;
        break;
      case 'n':
        options.model.ranks_of_node =
            static_cast<int>(number(argv[0], optarg, 1, 1 << 20, "ranks of a node"));
        break;
      case 'L':
        between.latency = time_of(argv[0], optarg);
        break;
      case 'o':
        between.overhead = time_of(argv[0], optarg);
        break;
      case 'g':
        between.gap = time_of(argv[0], optarg);
        break;
      case 'G':
        between.gap_of_bytes = time_of(argv[0], optarg);
        break;
      case 'C':
        options.model.combine_of_bytes = time_of(argv[0], optarg);
        break;
      case kWithinLatency:
        within.latency = time_of(argv[0], optarg);
        break;
      case kWithinOverhead:
        within.overhead = time_of(argv[0], optarg);
        break;
      case kWithinGap:
        within.gap = time_of(argv[0], optarg);
        break;
      case kWithinGapOfBytes:
        within.gap_of_bytes = time_of(argv[0], optarg);
        break;
      case 'N':
        options.model.noise =
            static_cast<double>(number(argv[0], optarg, 0, 10'000, "percent")) / 100;
        break;
      case kSeed:
        options.model.seed =
            static_cast<std::uint64_t>(number(argv[0], optarg, 0, 1LL << 62, "a chance"));
        break;
      case 'x':
        options.has_crossovers = true;
        break;
      case 'h':
        options.help = true;
        break;
      default:
        refuse_option(c, kLetters, argv);
    }
  }
  if (optind < argc) fail("%s: '%s' is too much (see --help)", argv[0], argv[optind]);
  if (!options.algorithm.empty() &&
      vmpi::find_algorithm(options.which, options.algorithm.c_str()) == nullptr)
    fail("%s: %s has no algorithm '%s' (see 'verbatim mpi --explain %s')", argv[0],
         vmpi::facts_of(options.which).name, options.algorithm.c_str(),
         vmpi::facts_of(options.which).name);
  if (options.has_crossovers && !options.algorithm.empty())
    fail("%s: -x is of all algorithms: leave out -a", argv[0]);
  if (options.has_crossovers && options.has_bytes)
    fail("%s: -x is of all sizes from 8 B to 4 MiB: leave out -b", argv[0]);
  if (options.which == vmpi::Collective::kBarrier && (options.has_bytes || options.has_crossovers))
    fail("%s: a barrier moves no data: leave out -b and -x", argv[0]);
  return options;
}

/// In us; nothing where the call cannot be done, or the plans would be too large.
std::optional<double> time_by(const Options& options, const vmpi::KnownAlgorithm& algorithm,
                              const vmpi::Shape& shape) {
  std::string why;
  if (vmpi::unmet(algorithm, shape) != nullptr) return {};
  const auto plans =
      sim::plans_of(options.which, algorithm, shape, options.nodes.get(), kMostState / 4, why);
  if (plans.empty()) return {};
  const sim::Result result = sim::simulate(plans, options.model);
  if (!result.wrong.empty())
    fail("verbatim perf sim: %s: %s", algorithm.name, result.wrong.c_str());
  return result.ns / 1000;
}

void print_crossovers(const Options& options) {
  const vmpi::CollectiveFacts& facts = vmpi::facts_of(options.which);
  std::printf("  %-10s %-20s %12s   %-20s %12s\n", "bytes", "fastest", "model us", "by the table",
              "model us");
  for (long long bytes = 8; bytes <= 4 << 20; bytes *= 2) {
    const vmpi::Shape shape = shape_of(options, bytes);
    const vmpi::KnownAlgorithm* const chosen = &vmpi::choose(options.which, shape);
    const vmpi::KnownAlgorithm* best = nullptr;
    double least = 0;
    std::optional<double> of_chosen;
    for (const vmpi::KnownAlgorithm& each : facts.algorithms) {
      const std::optional<double> time = time_by(options, each, shape);
      if (&each == chosen) of_chosen = time;
      // Of two that take as long the table's is as good.
      if (!time || (best != nullptr && *time >= least && (&each != chosen || *time > least)))
        continue;
      best = &each;
      least = *time;
    }
    if (best == nullptr)
      fail("verbatim perf sim: the plans of %lld ranks are too large", options.ranks);
    std::printf("  %-10lld %-20s %12.3f   ", bytes, best->name, least);
    if (best == chosen)
      std::printf("%s\n", "as said");
    else if (of_chosen)
      std::printf("%-20s %12.3f\n", chosen->name, *of_chosen);
    else
      std::printf("%-20s %12s\n", chosen->name, "left out");
  }
}

void print_of(const Options& options, const vmpi::KnownAlgorithm& algorithm, bool is_chosen) {
  const char mark = is_chosen ? '*' : ' ';
  std::string why;
  const auto plans = sim::plans_of(options.which, algorithm, shape_of(options, options.bytes),
                                   options.nodes.get(), kMostState, why);
  if (plans.empty()) {
    std::printf("%c %-20s left out: %s\n", mark, algorithm.name, why.c_str());
    return;
  }
  const sim::Result result = sim::simulate(plans, options.model);
  if (!result.wrong.empty())
    fail("verbatim perf sim: %s: %s", algorithm.name, result.wrong.c_str());
  std::printf("%c %-20s %14.3f %12llu %16llu %12llu %12llu\n", mark, algorithm.name,
              result.ns / 1000, static_cast<unsigned long long>(result.messages),
              static_cast<unsigned long long>(result.bytes),
              static_cast<unsigned long long>(result.most_temporary),
              static_cast<unsigned long long>(result.most_state));
}

void run(Options& options) {
  // Of buffers that all ranks share.
  options.model.moves_data = false;
  if (!vmpi::make_predefined_types() || !vmpi::make_predefined_ops())
    fail("verbatim perf sim: there is no memory left");
  const vmpi::CollectiveFacts& facts = vmpi::facts_of(options.which);
  if (options.model.ranks_of_node > 1) {
    options.nodes = sim::even_nodes(static_cast<int>(options.ranks), options.model.ranks_of_node);
    options.model.nodes_share_link = true;
  }
  options.costs = sim::costs_of(options.model);
  const vmpi::Shape shape = shape_of(options, options.bytes);
  const vmpi::KnownAlgorithm* const chosen = &vmpi::choose(options.which, shape);
  const sim::LogGP& link = options.model.between;
  if (options.has_crossovers)
    std::printf("%s (bytes are %s) by %lld ranks\n", facts.name, facts.bytes, options.ranks);
  else
    std::printf("%s of %lld bytes (%s) by %lld ranks\n", facts.name, options.bytes, facts.bytes,
                options.ranks);
  std::printf("model: LogGP with L %g, o %g, g %g ns, G %g ns/byte", link.latency, link.overhead,
              link.gap, link.gap_of_bytes);
  if (options.model.ranks_of_node > 1) {
    const sim::LogGP& near = options.model.within;
    std::printf(
        " between nodes of %d ranks, which share a link;\n       L %g, o %g, g %g ns, G %g ns/byte "
        "within",
        options.model.ranks_of_node, near.latency, near.overhead, near.gap, near.gap_of_bytes);
  }
  if (options.model.noise > 0)
    std::printf(";\n       processors take %g %% longer on the average, by chance %llu",
                100 * options.model.noise, static_cast<unsigned long long>(options.model.seed));
  std::printf(". Nothing here was measured.\n\n");
  if (options.has_crossovers) return print_crossovers(options);
  std::printf("  %-20s %14s %12s %16s %12s %12s\n", "algorithm", "model us", "messages", "bytes",
              "memory/rank", "steps/rank");
  for (const vmpi::KnownAlgorithm& each : facts.algorithms) {
    if (!options.algorithm.empty() && options.algorithm != each.name) continue;
    if (const char* const why_not = vmpi::unmet(each, shape); why_not != nullptr)
      std::printf("  %-20s %s\n", each.name, why_not);
    else
      print_of(options, each, &each == chosen);
  }
  std::printf(
      "\n* what the table chooses by such costs (verbatim mpi --explain %s). Memory and steps are "
      "the most "
      "bytes\n"
      "  that a rank has beside the program's buffers.\n",
      facts.name);
}

}  // namespace

int perf_sim(Calling, int argc, char** argv) {
  try {
    Options options = parse(argc, argv);
    if (options.help)
      usage(argv[0]);
    else
      run(options);
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
