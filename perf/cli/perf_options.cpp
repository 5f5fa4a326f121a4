// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_options.hpp"

#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/option_values.hpp"
#include "perf/cli/perf_option_rules.hpp"
#include "perf/cli/perf_option_table.hpp"
#include "perf/cli/perf_option_values.hpp"

namespace verbatim::cli {
namespace {

// perftest's bounds.
constexpr long long kFewestIterations = 5, kMostIterations = 100'000'000;
constexpr long long kMostTx = 15'000, kMostRx = 16'384, kMostPairs = 16'384;
constexpr long long kMostModeration = 1024, kMostInline = 912, kMostGids = 255, kMostVectors = 2048;

void usage_line(const PerfOption& option) {
  std::string words = "      --";
  if (option.id < kUseSrq)
    words = {' ', ' ', '-', static_cast<char>(option.id), ',', ' ', '-', '-'};
  words += option.name;
  if (option.value != nullptr) words.append("=<").append(option.value).append(">");
  std::printf("%-32s  %s\n", words.c_str(), option.help);
}

void usage(const char* name, PerfTest test) {
  std::printf(
      "Usage:\n"
      "  %s            start a server and wait for connection\n"
      "  %s <host>     connect to server at <host>\n"
      "\n"
      "Options:\n",
      name, name);
  for (const PerfOption& option : perf_options()) {
    if (!option.refused && (option.tests & perf_option_bit(test)) != 0) usage_line(option);
  }
  std::printf("\nRefused, since this program has no\n");
  for (const PerfOption& option : perf_options()) {
    if (option.refused) usage_line(option);
  }
}

/// All options of perftest, whose letters are the ones of every test, as getopt_long wants them.
struct PerfOptionLists {
  PerfOptionLists() {
    for (const PerfOption& option : perf_options()) {
      const int argument = option.value != nullptr ? required_argument : no_argument;
      names.push_back({option.name, argument, nullptr, option.id});
      if (option.id >= kUseSrq) continue;
      letters += static_cast<char>(option.id);
      if (argument == required_argument) letters += ':';
    }
    names.push_back({"report-histogrm", no_argument, nullptr, 'H'});  // its name in perftest
    names.push_back({});
  }
  std::string letters;
  std::vector<option> names;
};

/// The option that getopt_long has found, and how to call it in a line.
struct Found {
  const PerfOption* option;
  std::string called;
  std::string with_name;  // beside its letter, where it has one
};

Found find_option(int id, int index, const std::vector<option>& names) {
  const std::span<const PerfOption> all = perf_options();
  const auto at =
      id < kUseSrq || index < 0
          ? std::find_if(all.begin(), all.end(), [id](auto& one) { return one.id == id; })
          : std::find_if(all.begin(), all.end(), [&](auto& one) {
              return std::strcmp(one.name, names[static_cast<std::size_t>(index)].name) == 0;
            });
  const std::string name = std::string("--") + at->name;
  if (id >= kUseSrq) return {&*at, name, name};
  const std::string letter = {'-', static_cast<char>(id)};
  return {&*at, letter, letter + " (" + name + ")"};
}

/// Reads the numbers of one option.
class Value {
 public:
  explicit Value(const Found& found) : found_{found} {}
  template <class Number>
  void into(Number* to, const char* what, long long low, long long high) const {
    *to = static_cast<Number>(option_number(what, found_.called.c_str(), optarg, low, high));
  }
  template <class Number>
  void into(std::optional<Number>* to, const char* what, long long low, long long high) const {
    *to = static_cast<Number>(option_number(what, found_.called.c_str(), optarg, low, high));
  }

 private:
  const Found& found_;
};

/// What is rarer: how the test runs, where its memory is, what is printed beside its results.
void store_newer(const Found& found, PerfOptions* o, PerfAsked* asked) {
  const Value value(found);
  switch (found.option->id) {
    case 'g':
      o->multicast = true;
      break;
    case 'M':
      o->group = perf_group(optarg);
      break;
    case 'O':
      o->two_ports = true;
      break;
    case 'W':
      o->counters = perf_counter_names(optarg, "-W");
      break;
    case kReceiveList:
      value.into(&o->receive_list, "list of receives", 1, kMostRx);
      break;
    case kReversed:
      o->reversed = true;
      break;
    case kEndless:
      o->endless = true;
      break;
    case kSendImmediate:
    case kWriteImmediate:
      o->immediate = true;
      break;
    case kRateLimit:
      o->rate = perf_rate(optarg);
      break;
    case kRateUnits:
      o->rate_unit = perf_rate_unit(optarg);
      asked->of_rate = found.called;
      break;
    case kRateLimitType:
      check_perf_limiter(optarg);
      asked->of_rate = found.called;
      break;
    case kBurstSize:
      value.into(&o->burst, "burst", 1, kMostIterations);
      asked->of_rate = found.called;
      break;
    case kHugePages:
      o->huge_pages = true;
      break;
    case kRegionPerPair:
      o->region_per_pair = true;
      break;
    case kNullRegion:
      o->null_region = true;
      break;
    case kNoLock:
      o->unlocked = true;
      break;
    case kMemoryFile:
      o->memory_file = optarg;
      break;
    case kMemoryOffset:
      value.into(&o->memory_offset, "offset", 0, INT64_MAX);
      asked->file_offset = true;
      break;
    case kPayloadFile:
      o->payload_file = optarg;
      break;
    case kDataValidation:
      o->validates = true;
      break;
    case kPinCores:
      o->cores = perf_cores(optarg);
      break;
    case kNumaNode:
      value.into(&o->numa_node, "NUMA node", 0, 1023);
      break;
    case kProcessorUse:
      o->processor_use = true;
      break;
    case kSystemCalls:
      o->counts_calls = true;
      break;
    case kWaitDestroy:
      value.into(&o->wait_at_end, "seconds", 0, 1'000'000);
      break;
    case kDestinationLid:
      value.into(&o->destination_lid, "LID", 1, 65535);
      break;
    case kNoVersions:
      o->introduces = false;
      break;
    case kForceLink:
      o->link_layer = perf_link(optarg);
      break;
    case kIpv6:
      o->prefers_ipv6 = true;
      break;
    case kSourceIp:
      o->source = optarg;
      if (o->source.empty()) fail("'' is no address of this host (%s)", found.called.c_str());
      break;
    case kBothEnds:
      if (o->ends == PerfEnds::kOne) o->ends = PerfEnds::kHost;
      break;
    case kSingleProcess:
      o->ends = PerfEnds::kProcess;
      break;
    case kFloors:
    case kNoFloors:
      o->floors = found.option->id == kFloors;
      break;
    case kInlineReceive:
      if (option_number("size", found.called.c_str(), optarg, 0, kMostInline) != 0) {
        fail("receives inline are not in verbs: no device here takes them; leave out %s",
             found.called.c_str());
      }
      break;
  }
}

void store(const Found& found, PerfOptions* o, PerfAsked* asked) {
  const Value value(found);
  switch (found.option->id) {
    case 'a':
      o->all_sizes = true;
      break;
    case 'A':
      o->compare_swap = std::strcmp(optarg, "CMP_AND_SWAP") == 0;
      if (!o->compare_swap && std::strcmp(optarg, "FETCH_AND_ADD") != 0) {
        fail("'%s' is none of CMP_AND_SWAP, FETCH_AND_ADD (-A)", optarg);
      }
      break;
    case 'b':
      o->bidirectional = true;
      break;
    case 'c':
      o->connection = perf_connection(optarg, o->test);
      break;
    case 'C':
      o->cycles = true;
      break;
    case 'd':
      o->device = optarg;
      break;
    case 'D':
      value.into(&o->duration, "duration", 1, 1'000'000);
      break;
    case 'e':
      o->events = true;
      break;
    case 'f':
      value.into(&asked->margin, "margin", 0, 1'000'000);
      break;
    case 'F':
      break;
    case 'H':
      o->histogram = true;
      break;
    case 'i':
      value.into(&o->ib_port, "port", 1, 255);
      break;
    case 'I':
      value.into(&o->inline_size, "inline size", 0, kMostInline);
      break;
    case 'l':
      value.into(&o->post_list, "post list", 1, kMostTx);
      break;
    case 'm':
      o->mtu = option_mtu(optarg);
      break;
    case 'n':
      value.into(&o->iterations, "iterations", kFewestIterations, kMostIterations);
      break;
    case 'N':
      o->no_peak = true;
      break;
    case 'o':
      value.into(&o->reads, "outstanding requests", 1, 255);
      break;
    case 'p':
      value.into(&o->tcp_port, "TCP port", 0, 65535);
      asked->port = true;
      break;
    case 'q':
      value.into(&o->queue_pairs, "number of QPs", 1, kMostPairs);
      break;
    case 'Q':
      value.into(&o->cq_moderation, "CQ moderation", 1, kMostModeration);
      asked->moderation = true;
      break;
    case 'r':
      value.into(&o->rx_depth, "rx depth", 1, kMostRx);
      break;
    case 's':
      o->size = perf_message_size(optarg);
      o->size_given = true;
      break;
    case 'S':
      value.into(&o->service_level, "service level", 0, 15);
      break;
    case 't':
      value.into(&o->tx_depth, "tx depth", 1, kMostTx);
      break;
    case 'u':
      value.into(&o->timeout, "QP timeout", 0, 31);
      break;
    case 'U':
      o->unsorted = true;
      break;
    case 'w':
      o->least_bandwidth = perf_limit("-w", optarg);
      break;
    case 'x':
      value.into(&o->gid_index, "GID index", 0, kMostGids);
      break;
    case 'X':
      value.into(&o->vector, "completion vector", 0, kMostVectors);
      break;
    case 'y':
      o->least_rate = perf_limit("-y", optarg);
      break;
    case kUseSrq:
      o->shared_receives = true;
      break;
    case kReportGbits:
      o->gbits = true;
      break;
    case kReportBoth:
      o->report_both = true;
      break;
    case kOldPostSend:
      o->classic_post = true;
      break;
    case kOutJson:
      if (!o->json_file) o->json_file = "perftest_out.json";
      break;
    case kOutJsonFile:
      o->json_file = optarg;
      break;
    case kJsonLines:
      o->jsonl_file = optarg;
      break;
    case kCsv:
      o->csv_file = optarg;
      break;
    case kOutput:
      o->output = perf_output(optarg, o->test);
      break;
    case kRetryCount:
      value.into(&o->retries, "retry count", 0, 7);
      break;
    case kTclass:
      value.into(&o->traffic_class, "traffic class", 0, 255);
      break;
    case kPkeyIndex:
      value.into(&o->pkey_index, "P_Key index", 0, 65535);
      break;
    case kLatencyGap:
      value.into(&o->latency_gap, "latency gap", 0, 1'000'000);
      break;
    case kOdp:
      o->on_demand = true;
      break;
    case kWarmUp:
      o->warm_up = true;
      break;
    default:
      store_newer(found, o, asked);
  }
}

}  // namespace

PerfOptions::PerfOptions(PerfTest which)
    : test{which},
      size{which.verb == PerfVerb::kAtomic ? 8u
           : which.latency()               ? 2u
                                           : 65536u},
      iterations{which.bandwidth() && which.verb == PerfVerb::kWrite ? 5000u : 1000u},
      tx_depth{which.latency() ? 1u : 128u},
      rx_depth{which.verb == PerfVerb::kSend ? kPerfReceives : 1u} {}

std::optional<int> parse_perf(Calling calling, int argc, char** argv, PerfOptions* options) {
  const PerfOptionLists lists;
  PerfAsked asked;
  // Scripts that know perftest's names get its output and its pace.
  options->floors = calling == Calling::kSubcommand;
  optind = 0;  // a test of both ends reads its line twice
  for (;;) {
    int index = -1;
    const int id = getopt_long(argc, argv, lists.letters.c_str(), lists.names.data(), &index);
    if (id == -1) break;
    if (id == '?') return 1;  // getopt_long has said why
    const Found found = find_option(id, index, lists.names);
    if (found.option->refused) {
      fail("%s is refused: this program has no %s", found.with_name.c_str(), found.option->help);
    }
    if ((found.option->tests & perf_option_bit(options->test)) == 0) {
      fail("%s is no option of %s", found.with_name.c_str(), test_name(options->test).c_str());
    }
    if (id == 'h') {
      usage(argv[0], options->test);
      return 0;
    }
    if (id == 'V') {
      std::printf("Version: %s\n", kPerftestVersion);
      return 0;
    }
    store(found, options, &asked);
  }
  if (optind < argc - 1) {
    fail("'%s' is too much: there is one server, '%s'", argv[optind + 1], argv[optind]);
  }
  if (optind == argc - 1) {
    if (options->ends != PerfEnds::kOne) {
      fail("'%s' is too much: both ends are started here, and none is looked for (--both-ends)",
           argv[optind]);
    }
    options->server = argv[optind];
    if (options->server.empty()) {
      fail("'' is no host: give the server's address, or leave it out to be the server");
    }
  }
  derive_perf_options(options, asked);
  check_perf_options(*options, asked);
  return {};
}

}  // namespace verbatim::cli
