// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_options.hpp"

#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/option_values.hpp"
#include "perf/cli/perf_option_table.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::cli {
namespace {

// perftest's bounds.
constexpr long long kLongestMessage = (1LL << 31) - 1, kFewestIterations = 5,
                    kMostIterations = 100'000'000;
constexpr long long kMostTx = 15'000, kMostRx = 16'384, kMostPairs = 16'384;
constexpr long long kMostModeration = 1024, kMostInline = 912, kMostGids = 255, kMostVectors = 2048;
constexpr std::uint32_t kAllSizesEnd = 1u << 23;
constexpr std::uint32_t kDefaultReceives = 512, kMostUnreliableRx = 16'000;
constexpr std::uint32_t kModeratedSize = 8192;  // above it each send has its completion
constexpr std::uint64_t kMostWithPeak = 20'000;

void usage(const char* name, PerfTest test) {
  std::printf(
      "Usage:\n"
      "  %s            start a server and wait for connection\n"
      "  %s <host>     connect to server at <host>\n"
      "\n"
      "Options:\n",
      name, name);
  for (const PerfOption& option : perf_options()) {
    if (option.refused || (option.tests & perf_option_bit(test)) == 0) continue;
    std::string words = "      --";
    if (option.id < kUseSrq)
      words = {' ', ' ', '-', static_cast<char>(option.id), ',', ' ', '-', '-'};
    words += option.name;
    if (option.value != nullptr) words.append("=<").append(option.value).append(">");
    std::printf("%-32s  %s\n", words.c_str(), option.help);
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

std::uint32_t message_size(const char* text) {
  const auto size = perf::parse_size(text);
  if (size && *size >= 1 && *size <= static_cast<std::uint64_t>(kLongestMessage)) {
    return static_cast<std::uint32_t>(*size);
  }
  fail("size '%s' is not a number from 1 to %lld, with K or M behind it for more (-s)", text,
       kLongestMessage);
}

PerfConnection connection_of(const char* text, PerfTest test) {
  for (const auto connection :
       {PerfConnection::kRc, PerfConnection::kUc, PerfConnection::kUd, PerfConnection::kXrc}) {
    if (std::strcmp(text, connection_name(connection)) != 0) continue;
    if ((connection == PerfConnection::kUd && test.verb != PerfVerb::kSend) ||
        (connection == PerfConnection::kUc && test.fetches())) {
      fail("connection type %s has no %s: choose RC or XRC%s (-c)", text, test_name(test).c_str(),
           test.verb == PerfVerb::kWrite ? ", or UC" : "");
    }
    return connection;
  }
  fail("connection type '%s' is none of RC, UC, UD, XRC (-c)", text);
}

PerfOutput output_of(const char* text, PerfTest test) {
  const std::string_view what = text;
  if (test.bandwidth() && what == "bandwidth") return PerfOutput::kBandwidth;
  if (test.bandwidth() && what == "message_rate") return PerfOutput::kMessageRate;
  if (test.latency() && what == "latency") return PerfOutput::kLatency;
  fail("'%s' is not %s (--output)", text, test.latency() ? "latency" : "bandwidth or message_rate");
}

double limit_of(const char* option, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value >= 0) return value;
  fail("limit '%s' is not a number from 0 on (%s)", text, option);
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

/// What an option says that cannot be seen in PerfOptions any more.
struct Asked {
  bool moderation = false;
  std::optional<std::uint32_t> margin;
};

void store(const Found& found, PerfOptions* o, Asked* asked) {
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
      o->connection = connection_of(optarg, o->test);
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
      o->size = message_size(optarg);
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
      o->least_bandwidth = limit_of("-w", optarg);
      break;
    case 'x':
      value.into(&o->gid_index, "GID index", 0, kMostGids);
      break;
    case 'X':
      value.into(&o->vector, "completion vector", 0, kMostVectors);
      break;
    case 'y':
      o->least_rate = limit_of("-y", optarg);
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
      o->output = output_of(optarg, o->test);
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
  }
}

/// Refuses what contradicts itself, in words that name the options.
void check(const PerfOptions& o, const Asked& asked) {
  if (o.duration != 0 && o.all_sizes) fail("-D runs one size: leave out -a, or give -n");
  if (o.duration != 0 && o.events) fail("-D does not sleep on events: leave out -e, or give -n");
  if (o.duration != 0 && (o.histogram || o.unsorted)) {
    fail("-D keeps no single results: leave out -H and -U, or give -n");
  }
  if (o.duration == 0 && asked.margin) fail("a margin is one of -D: leave out -f, or give -D");
  if (o.duration != 0 && o.duration <= 2 * o.margin) {
    fail("nothing of %u s is left between margins of %u s: a longer -D, or a smaller -f",
         o.duration, o.margin);
  }
  if (o.duration == 0 && o.iterations % o.post_list != 0) {
    fail("%llu iterations are no multiple of a post list of %u (-n, -l)",
         static_cast<unsigned long long>(o.iterations), o.post_list);
  }
  if (o.post_list > o.tx_depth) {
    fail("a post list of %u is more than the tx depth of %u (-l, -t)", o.post_list, o.tx_depth);
  }
  if (o.post_list > 1 && o.post_list % o.cq_moderation != 0) {
    fail("a post list of %u is no multiple of a CQ moderation of %u (-l, -Q)", o.post_list,
         o.cq_moderation);
  }
  if (o.shared_receives && o.all_queue_pairs() > o.rx_depth) {
    fail("%u receives cannot be shared by %u queue pairs: a larger -r", o.rx_depth,
         o.all_queue_pairs());
  }
  if (o.report_both && (!o.bidirectional || o.duration != 0)) {
    fail("--report-both is of -b by iterations: give -b, without -D");
  }
  if (o.on_demand && !(o.connection == PerfConnection::kRc)) {
    fail("--odp is of RC: leave out -c %s", connection_name(o.connection));
  }
  if (o.vector != 0 && !o.events) fail("a completion vector is one of events: give -e too (-X)");
  if (o.client() && o.tcp_port == 0) {
    fail("TCP port 0 is for servers, which then say which one they got: give the server's (-p)");
  }
}

/// What perftest derives from what was given.
void derive(PerfOptions* o, const Asked& asked) {
  if (o->all_sizes) o->size = kAllSizesEnd;
  if (o->xrc() && o->test.verb == PerfVerb::kSend) o->shared_receives = true;
  if (o->duration == 0) {
    const auto most =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(o->iterations, UINT32_MAX));
    o->tx_depth = std::min(o->tx_depth, most);
    if (o->test.verb == PerfVerb::kSend) {
      const bool unreliable = o->datagrams() || o->connection == PerfConnection::kUc;
      if (unreliable && o->rx_depth == kDefaultReceives) o->rx_depth = kMostUnreliableRx;
      // Shared ones are for the messages of all queue pairs.
      const std::uint64_t messages = o->iterations * (o->shared_receives ? o->queue_pairs : 1);
      o->rx_depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(o->rx_depth, messages));
    }
  } else {
    o->no_peak = true;
    o->margin = asked.margin.value_or(o->duration / 4);
  }
  if (o->post_list > 1 && !asked.moderation) o->cq_moderation = o->post_list;
  if (o->post_list == 1 && o->size > kModeratedSize && !asked.moderation && !o->datagrams() &&
      !o->all_sizes && !o->events) {
    o->cq_moderation = 1;
  }
  o->cq_moderation = std::min(o->cq_moderation, o->tx_depth);
  if (o->iterations > kMostWithPeak) o->no_peak = true;
  // Of messages that are answered or received by another nothing is known of single ones.
  if (o->test.verb == PerfVerb::kSend && o->test.bandwidth() && !o->client() && !o->bidirectional) {
    o->no_peak = true;
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
      rx_depth{which.verb == PerfVerb::kSend ? kDefaultReceives : 1u} {}

std::optional<int> parse_perf(Calling, int argc, char** argv, PerfOptions* options) {
  const PerfOptionLists lists;
  Asked asked;
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
    options->server = argv[optind];
    if (options->server.empty()) {
      fail("'' is no host: give the server's address, or leave it out to be the server");
    }
  }
  derive(options, asked);
  check(*options, asked);
  return {};
}

}  // namespace verbatim::cli
