// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_options.hpp"

#include <getopt.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "perf/cli/option_values.hpp"
#include "perf/cli/run_options.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::cli {
namespace {

/// What MPI counts by is an int.
constexpr std::uint64_t kLargest = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargestByItself = 1 << 20;
/// Of longer ones fewer are measured.
constexpr std::uint64_t kLong = 8192;
constexpr int kMostIterations = 1'000'000;

std::uint64_t size_of(const char* option, std::string_view text) {
  const auto size = perf::parse_size(text);
  if (size && *size >= 1 && *size <= kLargest) return *size;
  fail("size '%.*s' is not a number from 1 to 2G less one, with K, M or G behind it for more (%s)",
       static_cast<int>(text.size()), text.data(), option);
}

std::uint64_t memory_of(const char* text) {
  const auto size = perf::parse_size(text);
  if (size && *size >= 1 && *size <= kMostMemory) return *size;
  fail("memory '%s' is not a number from 1 to 1024G, with K, M or G behind it for more (-M)", text);
}

void take_range(CollOptions& options, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) options.least = size_of("-m", text.substr(0, colon));
  options.most = size_of("-m", colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (options.least.value_or(1) > *options.most)
    fail("'%.*s' begins above its end (-m)", static_cast<int>(text.size()), text.data());
}

std::vector<std::uint64_t> list_of_sizes(const char* text) {
  const auto sizes = perf::parse_sizes(text);
  if (!sizes) fail("'%s' is no list of sizes, as 8,4K or 8..64K (-s)", text);
  for (const std::uint64_t size : *sizes)
    if (size < 1 || size > kLargest) fail("'%s': sizes are from 1 to 2G less one (-s)", text);
  return *sizes;
}

double microseconds(const char* option, const char* text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value >= least && value <= 1e7) return value;
  fail("'%s' is no time in us from %g to 10000000 (%s)", text, least, option);
}

int whole(const char* what, const char* option, const char* text, int low, int high) {
  return static_cast<int>(option_number(what, option, text, low, high));
}

void take_call(CollOptions& options, const char* name) {
  const CollName found = coll_call_named(name);
  if (found.call == nullptr)
    fail("there is no collective '%s' (there are: %s; with an i before it nonblocking)", name,
         std::string(coll_call_names()).c_str());
  options.call = found.call;
  options.is_nonblocking = options.is_nonblocking || found.is_nonblocking;
}

void check_algorithm(const CollOptions& options) {
  if (options.algorithm.empty() || options.algorithm == "table") return;
  const vmpi::CollectiveFacts& facts = vmpi::facts_of(options.call->family);
  if (vmpi::find_algorithm(options.call->family, options.algorithm.c_str()) != nullptr) return;
  fail("%s has no algorithm '%s' (see 'verbatim mpi --explain %s'; -a)", facts.name,
       options.algorithm.c_str(), facts.name);
}

/// What would be taken without a word, and change nothing.
void check_effect(const CollOptions& options) {
  const CollCall& call = *options.call;
  if (options.test_interval_us && !options.is_nonblocking)
    fail("MPI_Test is of nonblocking collectives: i%s, or leave out --test-interval", call.name);
  if (options.test_interval_us && options.tests)
    fail("MPI_Test calls are counted or timed: leave out -t or --test-interval");
  if (options.seed && options.skew_us <= 0)
    fail("--seed is of the chance by which ranks come late: add --skew, or leave it out");
  if (call.gives != CollSide::kNone) return;
  const std::pair<bool, const char*> of_data[] = {{options.type != nullptr, "--type"},
                                                  {options.keeps_buffer, "--same-buffer"},
                                                  {options.is_alloc, "--memory"}};
  for (const auto& [is_named, name] : of_data)
    if (is_named) fail("%s moves no data: leave out %s", call.name, name);
}

/// What does not go together.
void check(CollOptions& options) {
  const CollCall& call = *options.call;
  check_effect(options);
  if (options.type == nullptr) options.type = coll_type_named(call.reduces ? "double" : "char");
  if (options.op != nullptr && !call.reduces)
    fail("%s has no operation: leave out --op", call.name);
  if (options.op == nullptr)
    options.op = coll_op_named(options.type->is == CollClass::kBytes ? "bor" : "sum");
  if (call.reduces && !takes(*options.op, *options.type))
    fail("%s has no %s: another --type or --op", options.type->mpi_name, options.op->mpi_name);
  const bool is_without = call.gives == CollSide::kNone;
  if (options.is_in_place && (is_without || std::string_view(call.name) == "bcast"))
    fail("%s has no MPI_IN_PLACE: leave out --in-place", call.name);
  if (is_without && (options.least || options.most || !options.sizes.empty()))
    fail("%s has no size: leave out -m and -s", call.name);
  if ((options.least || options.most) && !options.sizes.empty())
    fail("sizes are named twice: -m or -s");
  if ((options.root != 0 || options.root_rotates) && !call.has_root)
    fail("%s has no root: leave out -k", call.name);
  if (options.tests && !options.is_nonblocking)
    fail("MPI_Test is of nonblocking collectives: i%s, or leave out -t", call.name);
  check_algorithm(options);
}

enum LongOption {
  kType = 256,
  kOp,
  kInPlace,
  kMemory,
  kSame,
  kSkew,
  kSeed,
  kInterval,
  kNoFloors,
  kJsonl,
  kCsv
};

constexpr char kLetters[] = ":m:s:i:x:fcbt:k:M:a:n:h";
constexpr option kNames[] = {{"message-size", required_argument, nullptr, 'm'},
                             {"sizes", required_argument, nullptr, 's'},
                             {"iterations", required_argument, nullptr, 'i'},
                             {"warmup", required_argument, nullptr, 'x'},
                             {"full", no_argument, nullptr, 'f'},
                             {"validation", no_argument, nullptr, 'c'},
                             {"nonblocking", no_argument, nullptr, 'b'},
                             {"num-test-calls", required_argument, nullptr, 't'},
                             {"test-interval", required_argument, nullptr, kInterval},
                             {"type", required_argument, nullptr, kType},
                             {"op", required_argument, nullptr, kOp},
                             {"in-place", no_argument, nullptr, kInPlace},
                             {"root-rank", required_argument, nullptr, 'k'},
                             {"memory", required_argument, nullptr, kMemory},
                             {"mem-limit", required_argument, nullptr, 'M'},
                             {"same-buffer", no_argument, nullptr, kSame},
                             {"skew", required_argument, nullptr, kSkew},
                             {"seed", required_argument, nullptr, kSeed},
                             {"algorithm", required_argument, nullptr, 'a'},
                             {"ranks", required_argument, nullptr, 'n'},
                             {"no-floors", no_argument, nullptr, kNoFloors},
                             {"jsonl", required_argument, nullptr, kJsonl},
                             {"csv", required_argument, nullptr, kCsv},
                             {"help", no_argument, nullptr, 'h'},
                             {}};

void take_type(CollOptions& options, const char* text) {
  options.type = coll_type_named(text);
  if (options.type == nullptr)
    fail(
        "'%s' is none of char, byte, int8_t, uint8_t, int16_t, int, int64_t, float, double "
        "(--type)",
        text);
}

void take_op(CollOptions& options, const char* text) {
  options.op = coll_op_named(text);
  if (options.op == nullptr)
    fail("'%s' is none of sum, prod, min, max, land, lor, lxor, band, bor, bxor (--op)", text);
}

void take_root(CollOptions& options, const char* text) {
  options.root_rotates = std::string_view(text) == "rotate";
  if (!options.root_rotates) options.root = whole("root", "-k", text, 0, kMostRanks - 1);
}

void take_memory(CollOptions& options, const char* text) {
  const std::string_view kind = text;
  if (kind != "malloc" && kind != "alloc")
    fail("memory '%s' is none of malloc, alloc (--memory)", text);
  options.is_alloc = kind == "alloc";
}

void take(CollOptions& o, int id, char** argv) {
  switch (id) {
    case 'm':
      return take_range(o, optarg);
    case 's':
      o.sizes = list_of_sizes(optarg);
      return;
    case 'i':
      o.iterations = whole("iterations", "-i", optarg, 1, kMostIterations);
      return;
    case 'x':
      o.warmup = whole("warm-up", "-x", optarg, 0, kMostIterations);
      return;
    case 'f':
      o.is_full = true;
      return;
    case 'c':
      o.validates = true;
      return;
    case 'b':
      o.is_nonblocking = true;
      return;
    case 't':
      o.tests = whole("number of MPI_Test calls", "-t", optarg, 0, kMostIterations);
      return;
    case kInterval:
      o.test_interval_us = microseconds("--test-interval", optarg, 0.1);
      return;
    case kType:
      return take_type(o, optarg);
    case kOp:
      return take_op(o, optarg);
    case kInPlace:
      o.is_in_place = true;
      return;
    case 'k':
      return take_root(o, optarg);
    case kMemory:
      return take_memory(o, optarg);
    case 'M':
      o.most_memory = memory_of(optarg);
      return;
    case kSame:
      o.keeps_buffer = true;
      return;
    case kSkew:
      o.skew_us = microseconds("--skew", optarg, 0);
      return;
    case kSeed:
      o.seed = static_cast<std::uint64_t>(option_number("seed", "--seed", optarg, 0, 1LL << 60));
      return;
    case 'a':
      o.algorithm = optarg;
      return;
    case 'n':
      o.ranks = whole("ranks", "-n", optarg, 1, kMostRanks);
      return;
    case kNoFloors:
      o.has_floors = false;
      return;
    case kJsonl:
      o.jsonl = optarg;
      return;
    case kCsv:
      o.csv = optarg;
      return;
    case 'h':
      o.help = true;
      return;
    default:
      refuse_option(id, kLetters, argv);
  }
}

}  // namespace

CollOptions parse_coll(int argc, char** argv) {
  CollOptions options;
  opterr = 0;
  for (int id; (id = getopt_long(argc, argv, kLetters, kNames, nullptr)) != -1;) {
    take(options, id, argv);
    if (options.help) return options;
  }
  if (optind == argc) fail("%s: which collective? (see --help)", argv[0]);
  if (optind < argc - 1)
    fail("%s: '%s' is too much: one collective is measured at a time", argv[0], argv[optind + 1]);
  take_call(options, argv[optind]);
  check(options);
  return options;
}

void coll_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s <collective> [options]                 by ranks that it starts itself\n"
      "  mpiexec -n <ranks> %s <collective> ...    (or verbatim run, or srun --mpi=pmi2)\n"
      "\n"
      "Collectives: barrier, bcast, gather, gatherv, scatter, scatterv, allgather, allgatherv,\n"
      "alltoall, alltoallv, alltoallw, reduce, allreduce, reduce_scatter, reduce_scatter_block,\n"
      "scan, exscan; iallreduce and so on are their nonblocking forms.\n"
      "\n"
      "Options:\n"
      "  -n, --ranks=<number>          ranks to start, without a launcher (default 2)\n"
      "  -m, --message-size=[min:]max  sizes by twos (default up to 1M), with K, M or G: of a\n"
      "                                slice for or of each rank, or of a vector that is reduced\n"
      "  -s, --sizes=<list>            these alone, as 8,3000,4K or 8..64K\n"
      "  -i, --iterations=<number>     of each size (default 1000, above 8 KiB 100)\n"
      "  -x, --warmup=<number>         before them (default 100, above 8 KiB 10)\n"
      "  -c, --validation              check each result\n"
      "  -f, --full                    the slowest rank, fastest and slowest calls, more of "
      "arrival\n"
      "  -b, --nonblocking             the nonblocking form, and how much of it a computation "
      "that\n"
      "                                takes as long hides\n"
      "  -t, --num-test-calls=<number> MPI_Test calls during the computation (default: one in "
      "each\n"
      "      --test-interval=<us>      interval of so many us, 10)\n"
      "      --type=<type>             char, byte, int8_t, uint8_t, int16_t, int, int64_t, float,\n"
      "                                double (default char, of reductions double)\n"
      "      --op=<operation>          sum, prod, min, max, land, lor, lxor, band, bor, bxor\n"
      "      --in-place                by MPI_IN_PLACE\n"
      "  -k, --root-rank=<rank>        root (default 0), or rotate\n"
      "      --memory=malloc|alloc     buffers of malloc (default) or of MPI_Alloc_mem\n"
      "  -M, --mem-limit=<size>        of the buffers of a rank (default 1G)\n"
      "      --same-buffer             one buffer that is written once; by default four in turn, "
      "and\n"
      "                                what is given is written anew before each call\n"
      "      --skew=<us>               ranks come late by up to so much, by chance "
      "(--seed=<number>)\n"
      "  -a, --algorithm=<name>        by it, as VERBATIM_COLL_* does; table: by messages, as "
      "'verbatim\n"
      "                                mpi --explain' chooses (default: what the library does)\n"
      "      --no-floors               do not measure this host's floors beside it\n"
      "      --jsonl=<file>, --csv=<file>   records too; - is the standard output\n"
      "  -h, --help                    print a help text and exit\n"
      "\n"
      "Times are in us, from a rank's call to its return: least, median and mean of the means of\n"
      "ranks, and percentiles of all calls of all ranks. A barrier goes before each call. arrival "
      "is\n"
      "the time between the first rank's call and the last one's, the median of calls. "
      "Nonblocking:\n"
      "overlap is 100 %% x (pure + compute - overall) / the lesser of pure and compute, of a "
      "rank's\n"
      "medians.\n",
      name, name);
}

std::vector<std::uint64_t> coll_sizes(const CollOptions& options, int ranks) {
  const CollCall& call = *options.call;
  if (call.gives == CollSide::kNone) return {0};
  const std::uint64_t one = options.type->size;
  // A block for each rank has an element.
  const bool is_of_blocks = std::string_view(call.name) == "reduce_scatter_block";
  const std::uint64_t least = is_of_blocks ? one * static_cast<std::uint64_t>(ranks) : one;
  for (const std::uint64_t size : options.sizes)
    if (size < least)
      fail("%llu bytes are less than %s, whose least are %llu: another -s",
           static_cast<unsigned long long>(size),
           is_of_blocks ? "an element for each rank" : options.type->mpi_name,
           static_cast<unsigned long long>(least));
  if (!options.sizes.empty()) return options.sizes;
  std::vector<std::uint64_t> sizes;
  const std::uint64_t most = options.most.value_or(kLargestByItself);
  for (std::uint64_t size = std::max(options.least.value_or(least), std::uint64_t{1}); size <= most;
       size *= 2)
    if (size >= least) sizes.push_back(size);
  if (sizes.empty())
    fail("no size up to %llu holds %s of %llu bytes: a larger -m",
         static_cast<unsigned long long>(most),
         is_of_blocks ? "an element for each rank" : options.type->mpi_name,
         static_cast<unsigned long long>(least));
  return sizes;
}

int coll_iterations(const CollOptions& options, std::uint64_t bytes) {
  return options.iterations.value_or(bytes > kLong ? 100 : 1000);
}

std::uint64_t coll_seed(const CollOptions& options) { return options.seed.value_or(1); }

int coll_warmup(const CollOptions& options, std::uint64_t bytes) {
  return options.warmup.value_or(bytes > kLong ? 10 : 100);
}

}  // namespace verbatim::cli
