// SPDX-License-Identifier: BSD-2-Clause
// `verbatim mpi --explain`: which algorithm does a collective, of which size, by how many ranks, and
// why: the table that the library chooses by, and what the environment says.
#include "perf/cli/mpi_collectives.hpp"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/numbers.hpp"
#include "perf/cli/option_values.hpp"

namespace verbatim::cli {

vmpi::Collective collective_named(const char* program, const char* name) {
  std::string known;
  for (int i = 0; i < vmpi::kCollectives; ++i) {
    const auto which = static_cast<vmpi::Collective>(i);
    const char* const each = vmpi::facts_of(which).name;
    if (name == std::string_view(each)) return which;
    known += std::string(i == 0 ? "" : ", ") + each;
  }
  fail("%s: there is no collective '%s' (there are: %s)", program, name, known.c_str());
}

namespace {

using vmpi::Choice;
using vmpi::Collective;
using vmpi::CollectiveFacts;
using vmpi::KnownAlgorithm;

void usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s --explain <collective> [bytes]   which algorithm does it, and why\n"
      "\n"
      "Options:\n"
      "  -r, --ranks=<number>  by so many ranks\n"
      "  -n, --ranks-per-node=<number>  on nodes of so many ranks each\n"
      "  -g, --ranks-per-group=<number>  on one host, bound to L3 caches by so many each\n"
      "  -o, --ordered         with an operation that does not commute\n"
      "  -v, --varying         of slices that differ (MPI_Gatherv, MPI_Alltoallw ...)\n"
      "  -h, --help            print a help text and exit\n"
      "\n"
      "Collectives are barrier, bcast, gather, scatter, allgather, alltoall, reduce, allreduce,\n"
      "reduce_scatter, scan and exscan, their v, w and block forms and the nonblocking ones "
      "included.\n"
      "VERBATIM_COLL_ALLREDUCE=ring and the like choose an algorithm, here and in programs.\n",
      name);
}

struct Options {
  std::optional<Collective> which;
  std::optional<long long> bytes;
  std::optional<long long> ranks;
  long long ranks_of_node = 1;
  std::optional<long long> ranks_of_group;
  bool is_ordered = false;
  bool is_varying = false;
  bool help = false;
};

Options parse(int argc, char** argv) {
  static const option kLong[] = {{"explain", required_argument, nullptr, 'e'},
                                 {"ranks", required_argument, nullptr, 'r'},
                                 {"ranks-per-node", required_argument, nullptr, 'n'},
                                 {"ranks-per-group", required_argument, nullptr, 'g'},
                                 {"ordered", no_argument, nullptr, 'o'},
                                 {"varying", no_argument, nullptr, 'v'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  static constexpr char kLetters[] = ":r:n:g:ovh";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, kLetters, kLong, nullptr)) != -1;) {
    switch (c) {
      case 'e':
        options.which = collective_named(argv[0], optarg);
        break;
      case 'r':
        options.ranks = number_in(optarg, 1, 1 << 24);
        if (!options.ranks) fail("%s: '%s' is no number of ranks from 1", argv[0], optarg);
        break;
      case 'n': {
        const auto of_node = number_in(optarg, 1, 1 << 24);
        if (!of_node) fail("%s: '%s' is no number of ranks of a node from 1", argv[0], optarg);
        options.ranks_of_node = *of_node;
        break;
      }
      case 'g':
        options.ranks_of_group = number_in(optarg, 1, 1 << 24);
        if (!options.ranks_of_group)
          fail("%s: '%s' is no number of ranks of a group from 1", argv[0], optarg);
        break;
      case 'o':
        options.is_ordered = true;
        break;
      case 'v':
        options.is_varying = true;
        break;
      case 'h':
        options.help = true;
        break;
      default:
        refuse_option(c, kLetters, argv);
    }
  }
  if (options.help) return options;
  if (options.ranks_of_group && options.ranks_of_node > 1)
    fail("%s: -g is of one host, -n of several nodes: leave out one", argv[0]);
  if (!options.which) fail("%s: nothing to do (see --help)", argv[0]);
  if (optind < argc) {
    options.bytes = number_in(argv[optind], 0, 1LL << 50);
    if (!options.bytes) fail("%s: '%s' is no number of bytes", argv[0], argv[optind]);
    ++optind;
  }
  if (optind < argc) fail("%s: '%s' is too much (see --help)", argv[0], argv[optind]);
  return options;
}

std::string size_text(std::int64_t bytes) {
  if (bytes == vmpi::kAnyBytes) return "any";
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

std::string ranks_text(const Choice& row) {
  if (row.from_ranks == row.to_ranks) return std::to_string(row.from_ranks);
  if (row.to_ranks != vmpi::kAnyRanks)
    return std::to_string(row.from_ranks) + " to " + std::to_string(row.to_ranks);
  return row.from_ranks <= 1 ? "any" : std::to_string(row.from_ranks) + " and more";
}

/// Null: the table is asked.
const vmpi::HostWay* host_way(const Options& options, Collective which, int ranks) {
  if (!options.ranks_of_group || options.is_ordered || options.is_varying) return nullptr;
  const int largest = static_cast<int>(std::min<long long>(*options.ranks_of_group, ranks));
  const vmpi::HostLayout layout = {
      .ranks = ranks, .groups = (ranks + largest - 1) / largest, .largest_group = largest};
  return vmpi::host_way_for(which, *options.bytes, layout);
}

void print_choices(const Options& options, Collective which) {
  const CollectiveFacts& facts = vmpi::facts_of(which);
  const KnownAlgorithm* const by_user = vmpi::chosen_by_user(which);
  constexpr std::array kRanks = {2, 3, 4, 5, 7, 8, 12, 16, 32, 64, 100, 128, 1000, 1024, 10240};
  std::printf("%s", facts.name);
  if (which != Collective::kBarrier)
    std::printf(" of %lld bytes (%s)%s%s", *options.bytes, facts.bytes,
                options.is_ordered ? ", of an operation that does not commute" : "",
                options.is_varying ? ", of slices that differ" : "");
  std::printf("\n\n  %-8s %-20s %s\n", "ranks", "algorithm", "why");
  const auto print = [&](int ranks) {
    const vmpi::Shape shape = {
        .ranks = ranks,
        .bytes = options.is_varying && which != Collective::kAllgather ? 0 : *options.bytes,
        .is_commutative = !options.is_ordered,
        .are_alike = !options.is_varying,
        .has_nodes = options.ranks_of_node > 1 && options.ranks_of_node < ranks,
        .are_nodes_alike = ranks % options.ranks_of_node == 0 ||
                           2 * (ranks % options.ranks_of_node) > options.ranks_of_node};
    if (const vmpi::HostWay* const way = host_way(options, which, ranks);
        way != nullptr && by_user == nullptr) {
      std::printf("  %-8d %-20s %s\n", ranks, way->name, way->why);
      return;
    }
    const Choice& row = vmpi::row_for(which, shape);
    const char* const why_not = by_user != nullptr ? vmpi::unmet(*by_user, shape) : nullptr;
    if (by_user != nullptr && why_not == nullptr)
      std::printf("  %-8d %-20s %s says so\n", ranks, by_user->name, facts.variable);
    else if (by_user != nullptr)
      std::printf("  %-8d %-20s %s (%s %s)\n", ranks, row.algorithm->name, row.why, by_user->name,
                  why_not);
    else
      std::printf("  %-8d %-20s %s\n", ranks, row.algorithm->name, row.why);
  };
  if (options.ranks) print(static_cast<int>(*options.ranks));
  for (const int ranks : kRanks)
    if (!options.ranks) print(ranks);
  std::printf("\n");
}

void print_host_ways(Collective which) {
  const auto ways = vmpi::host_ways_of(which);
  if (ways.empty()) return;
  std::printf(
      "Before the table: up to %d ranks of one host, where they call the blocking one with "
      "predefined\ntypes and operations. h to hear a line within an L3 cache, h' across, of G "
      "groups "
      "that share one,\nm ranks in the largest.\n\n",
      vmpi::kMostRanksOfHost);
  for (const vmpi::HostWay& each : ways)
    std::printf("  %-10s %-20s %s\n  %-10s %-20s cost: %s\n", size_text(each.to_bytes).c_str(),
                each.name, each.why, "", "", each.cost);
  std::printf("\n");
}

void print_table(Collective which) {
  const CollectiveFacts& facts = vmpi::facts_of(which);
  std::printf("The table: the first row that fits, whose algorithm can do the call.\n\n");
  std::printf("  %-13s %-10s %-20s %s\n", "ranks", "up to", "algorithm", "why");
  for (const Choice& row : facts.choices)
    std::printf("  %-13s %-10s %-20s %s%s\n", ranks_text(row).c_str(),
                size_text(row.to_bytes).c_str(), row.algorithm->name,
                (row.algorithm->wants & vmpi::kNodes) != 0 ? "several nodes: " : "", row.why);
  std::printf(
      "\nThe algorithms, for %s=<name>. P ranks, n bytes (%s)%s; r = L + 2 o, g and G of LogGP, c "
      "to\n"
      "combine a byte, log of 2 rounded up; of S ranks on each of N nodes r' and G' within a "
      "node.\n\n",
      facts.variable,
      which == Collective::kAllgather || which == Collective::kReduceScatter ? "N" : "n",
      facts.bytes);
  for (const KnownAlgorithm& each : facts.algorithms) {
    std::printf("  %-20s %s\n  %-20s cost: %s\n", each.name, each.wins, "", each.cost);
    const vmpi::Shape hardest = {.ranks = 3, .is_commutative = false, .are_alike = false};
    if (const char* const wants = vmpi::unmet(each, hardest); wants != nullptr)
      std::printf("  %-20s %s\n", "", wants);
  }
}

}  // namespace

int mpi(Calling, int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (options.help) {
      usage(argv[0]);
      return 0;
    }
    if (const char* const wrong = vmpi::read_algorithm_choices(); wrong != nullptr)
      fail("%s: %s", argv[0], wrong);
    if (options.bytes || options.which == Collective::kBarrier) {
      Options with = options;
      if (!with.bytes) with.bytes = 0;
      print_choices(with, *options.which);
    }
    print_host_ways(*options.which);
    print_table(*options.which);
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
