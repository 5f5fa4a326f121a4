// SPDX-License-Identifier: BSD-2-Clause
// `verbatim mpi --explain`: which algorithm does a collective, of which size, by how many ranks, and
// why: the costs that were measured on this host, the table that they make, and what the environment says.
#include "perf/cli/mpi_collectives.hpp"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "mpi_shim/coll/crossovers.hpp"
#include "mpi_shim/core/op.hpp"
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
      "  -n, --ranks-per-node=<number>  on nodes of so many ranks each (1: each on its own)\n"
      "  -g, --ranks-per-group=<number>  on one host, bound to L3 caches by so many each\n"
      "  -o, --ordered         with an operation that does not commute\n"
      "  -v, --varying         of slices that differ (MPI_Gatherv, MPI_Alltoallw ...)\n"
      "  -h, --help            print a help text and exit\n"
      "\n"
      "Collectives are barrier, bcast, gather, scatter, allgather, alltoall, reduce, allreduce,\n"
      "reduce_scatter, scan and exscan, their v, w and block forms and the nonblocking ones "
      "included.\n"
      "VERBATIM_COLL_ALLREDUCE=ring and the like choose an algorithm, here and in programs;\n"
      "VERBATIM_COLL_COSTS=net.latency:2000,net.byte:0.08 says what the table is made by.\n",
      name);
}

struct Options {
  std::optional<Collective> which;
  std::optional<long long> bytes;
  std::optional<long long> ranks;
  std::optional<long long> ranks_of_node;  ///< none: all are on one host
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
  if (options.ranks_of_group && options.ranks_of_node)
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

/// What the library goes by here.
struct Costs {
  vmpi::Costs all = {};
  vmpi::CostsFrom from = vmpi::CostsFrom::kBuiltIn;
  char path[4096] = "";
};

vmpi::Shape shape_of(const Options& options, Collective which, int ranks,
                     const vmpi::Costs& costs) {
  const auto on_node =
      static_cast<int>(std::min<long long>(options.ranks_of_node.value_or(ranks), ranks));
  const bool has_nodes = on_node > 1 && on_node < ranks;
  const int last = ranks % on_node;
  return {.ranks = ranks,
          .bytes =
              options.is_varying && which != Collective::kAllgather ? 0 : options.bytes.value_or(0),
          .is_commutative = !options.is_ordered,
          .are_alike = !options.is_varying,
          .has_nodes = has_nodes,
          .are_nodes_alike = last == 0 || 2 * last > on_node,
          .is_apart = on_node == 1 && ranks > 1,
          .nodes = has_nodes ? (ranks + on_node - 1) / on_node : 1,
          .ranks_of_node = has_nodes ? on_node : 1,
          .costs = &costs};
}

/// Null: the table is asked.
const vmpi::HostWay* host_way(const Options& options, Collective which, int ranks,
                              const vmpi::Costs& costs) {
  if (!options.ranks_of_group || options.is_ordered || options.is_varying) return nullptr;
  const int largest = static_cast<int>(std::min<long long>(*options.ranks_of_group, ranks));
  vmpi::HostLayout layout = {
      .ranks = ranks, .groups = (ranks + largest - 1) / largest, .largest_group = largest};
  layout.hear_by(costs);
  return vmpi::host_way_for(which, *options.bytes, layout, costs);
}

constexpr std::array kRanks = {2, 3, 4, 5, 7, 8, 12, 16, 32, 64, 100, 128, 1000, 1024, 10240};

template <class Each>
void for_ranks(const Options& options, Each each) {
  if (options.ranks) return each(static_cast<int>(*options.ranks));
  for (const int ranks : kRanks) each(ranks);
}

void print_choices(const Options& options, Collective which, const vmpi::Costs& costs) {
  const CollectiveFacts& facts = vmpi::facts_of(which);
  const KnownAlgorithm* const by_user = vmpi::chosen_by_user(which);
  std::printf("%s", facts.name);
  if (which != Collective::kBarrier)
    std::printf(" of %lld bytes (%s)%s%s", *options.bytes, facts.bytes,
                options.is_ordered ? ", of an operation that does not commute" : "",
                options.is_varying ? ", of slices that differ" : "");
  std::printf("\n\n  %-8s %-20s %12s  %s\n", "ranks", "algorithm", "model us", "wins");
  for_ranks(options, [&](int ranks) {
    const vmpi::Shape shape = shape_of(options, which, ranks, costs);
    if (const vmpi::HostWay* const way = host_way(options, which, ranks, costs);
        way != nullptr && by_user == nullptr) {
      std::printf("  %-8d %-20s %12s  %s\n", ranks, way->name, "", way->why);
      return;
    }
    const KnownAlgorithm& chosen = vmpi::choose(which, shape);
    const char* const why_not = by_user != nullptr ? vmpi::unmet(*by_user, shape) : nullptr;
    const bool is_by_user = by_user != nullptr && why_not == nullptr;
    const KnownAlgorithm& does = is_by_user ? *by_user : chosen;
    std::printf("  %-8d %-20s %12.3f  ", ranks, does.name, vmpi::model_ns(does, shape) / 1000);
    if (is_by_user)
      std::printf("%s says so\n", facts.variable);
    else if (by_user != nullptr)
      std::printf("%s (%s %s)\n", does.wins, by_user->name, why_not);
    else
      std::printf("%s\n", does.wins);
  });
  std::printf("\n");
}

void print_costs(const Costs& costs) {
  switch (costs.from) {
    case vmpi::CostsFrom::kBuiltIn:
      std::printf("Costs are built in, as VERBATIM_COLL_COSTS says:\n\n");
      break;
    case vmpi::CostsFrom::kUser:
      std::printf("Costs, some of which VERBATIM_COLL_COSTS says:\n\n");
      break;
    case vmpi::CostsFrom::kKept:
      std::printf("Costs, measured since the host started (%s):\n\n", costs.path);
      break;
    case vmpi::CostsFrom::kMeasured:
      std::printf("Costs, measured now%s%s:\n\n", costs.path[0] != '\0' ? " and kept in " : "",
                  costs.path);
      break;
  }
  for (int i = 0; i < vmpi::kCosts; ++i) {
    const auto which = static_cast<vmpi::CostOf>(i);
    const vmpi::CostFacts& facts = vmpi::facts_of(which);
    const bool is_users = !costs.all.is_measured(which) && costs.all.ps[i] != facts.built_in;
    std::printf("  %-16s %12.3f ns  %-9s %s\n", facts.name, costs.all.ns(which),
                costs.all.is_measured(which) ? "measured"
                : is_users                   ? "user's"
                                             : "built in",
                facts.what);
  }
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

void print_table(const Options& options, Collective which, const vmpi::Costs& costs) {
  const CollectiveFacts& facts = vmpi::facts_of(which);
  std::printf(
      "The table that they make: for so many ranks%s, the first row whose bytes are enough.\n\n",
      !options.ranks_of_node        ? " of one host"
      : *options.ranks_of_node == 1 ? " on a node each"
                                    : " on nodes");
  std::printf("  %-8s %-10s %-20s %s\n", "ranks", "up to", "algorithm", "wins");
  for_ranks(options, [&](int ranks) {
    vmpi::Crossovers table;
    table.make(which, shape_of(options, which, ranks, costs));
    const char* named = nullptr;
    for (const vmpi::Crossover& row : table.rows()) {
      std::printf("  %-8s %-10s %-20s %s\n", named == nullptr ? std::to_string(ranks).c_str() : "",
                  size_text(row.to_bytes).c_str(), row.algorithm->name, row.algorithm->wins);
      named = row.algorithm->name;
    }
  });
  std::printf(
      "\nThe algorithms, for %s=<name>. P ranks, %s bytes (%s);\n"
      "r = L + 2 o, g and G of LogGP, c to combine a byte, log of 2 rounded up; of S ranks on "
      "each\n"
      "of N nodes r' and G' within a node, K segments of an owner's slice (of 64 KiB or more, up "
      "to\n"
      "8). Within a host L is far.latency, G host.put + host.fetch or host.kernel, c "
      "host.combine.\n\n",
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
    // A reduction is one of the things that are measured.
    if (!vmpi::make_predefined_types() || !vmpi::make_predefined_ops())
      fail("%s: there is no memory left", argv[0]);
    Costs costs;
    costs.from = vmpi::find_costs(costs.all, costs.path);
    if (options.bytes || options.which == Collective::kBarrier) {
      Options with = options;
      if (!with.bytes) with.bytes = 0;
      print_choices(with, *options.which, costs.all);
    }
    print_host_ways(*options.which);
    print_costs(costs);
    print_table(options, *options.which, costs.all);
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
