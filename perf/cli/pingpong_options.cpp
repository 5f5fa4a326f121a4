// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/pingpong_options.hpp"

#include <getopt.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/option_values.hpp"

namespace verbatim::cli {
namespace {

constexpr long long kMaxMessage = 1LL << 31;  // IBTA 9.7.7: the largest message there can be
constexpr long long kMaxCount = 1'000'000'000;
constexpr long long kMaxClients = 1000;
constexpr long long kMaxQueuePairs = 255;  // what the classic tool takes

constexpr unsigned bit(Transport transport) { return 1u << static_cast<unsigned>(transport); }
constexpr unsigned kRc = bit(Transport::kRc), kUc = bit(Transport::kUc);
constexpr unsigned kUd = bit(Transport::kUd), kSrq = bit(Transport::kSrq);
constexpr unsigned kXsrq = bit(Transport::kXsrq);
constexpr unsigned kAll = kRc | kUc | kUd | kSrq;

struct Option {
  char letter;
  const char* name;
  int argument;      // as struct option has it
  unsigned of;       // the transports whose tool has it
  const char* help;  // its line in the usage text, which scripts compare: blanks and tabs included
};

// In the order of the usage texts; a letter stands twice where the tools word it differently.
constexpr Option kOptions[] = {
    {'p', "port", required_argument, kAll | kXsrq,
     "  -p, --port=<port>      listen on/connect to port <port> (default 18515)"},
    {'d', "ib-dev", required_argument, kAll | kXsrq,
     "  -d, --ib-dev=<dev>     use IB device <dev> (default first device found)"},
    {'i', "ib-port", required_argument, kAll | kXsrq,
     "  -i, --ib-port=<port>   use port <port> of IB device (default 1)"},
    {'s', "size", required_argument, (kAll & ~kUd) | kXsrq,
     "  -s, --size=<size>      size of message to exchange (default 4096)"},
    {'s', "size", required_argument, kUd,
     "  -s, --size=<size>      size of message to exchange (default 2048)"},
    {'m', "mtu", required_argument, kAll & ~kUd,
     "  -m, --mtu=<size>       path MTU (default 1024)"},
    {'m', "mtu", required_argument, kXsrq, "  -m, --mtu=<size>       path MTU (default 2048)"},
    {'c', "clients", required_argument, kXsrq,
     "  -c, --clients=<n>      number of clients (on server only, default 1)"},
    {'n', "num_tests", required_argument, kXsrq,
     "  -n, --num_tests=<n>    number of tests per client (default 5)"},
    {'q', "num-qp", required_argument, kSrq,
     "  -q, --num-qp=<num>     number of QPs to use (default 16)"},
    {'r', "rx-depth", required_argument, kAll,
     "  -r, --rx-depth=<dep>   number of receives to post at a time (default 500)"},
    {'n', "iters", required_argument, kAll & ~kSrq,
     "  -n, --iters=<iters>    number of exchanges (default 1000)"},
    {'n', "iters", required_argument, kSrq,
     "  -n, --iters=<iters>    number of exchanges per QP(default 1000)"},
    {'l', "sl", required_argument, (kAll & ~kUd) | kXsrq,
     "  -l, --sl=<sl>          service level value"},
    {'l', "sl", required_argument, kUd,
     "  -l, --sl=<SL>          send messages with service level <SL> (default 0)"},
    {'e', "events", no_argument, kAll | kXsrq,
     "  -e, --events           sleep on CQ events (default poll)"},
    {'o', "odp", no_argument, kXsrq, "  -o, --odp\t\t    use on demand paging"},
    {'g', "gid-idx", required_argument, kAll | kXsrq,
     "  -g, --gid-idx=<gid index> local port gid index"},
    {'o', "odp", no_argument, kRc | kSrq, "  -o, --odp\t\t    use on demand paging"},
    {'O', "iodp", no_argument, kRc, "  -O, --iodp\t\t    use implicit on demand paging"},
    {'P', "prefetch", no_argument, kRc, "  -P, --prefetch\t    prefetch an ODP MR"},
    {'t', "ts", no_argument, kRc, "  -t, --ts\t            get CQE with timestamp"},
    {'c', "chk", no_argument, kRc, "  -c, --chk\t            validate received buffer"},
    {'c', "chk", no_argument, kAll & ~kRc, "  -c, --chk              validate received buffer"},
    {'j', "dm", no_argument, kRc, "  -j, --dm\t            use device memory"},
    {'N', "new_send", no_argument, kRc, "  -N, --new_send            use new post send WR API"}};

void usage(const char* name, Transport transport) {
  std::printf(
      "Usage:\n"
      "  %s            start a server and wait for connection\n"
      "  %s <host>     connect to server at <host>\n"
      "\n"
      "Options:\n",
      name, name);
  for (const Option& line : kOptions) {
    if ((line.of & bit(transport)) != 0) std::puts(line.help);
  }
}

/// A tool's own options, as getopt_long wants them.
struct OptionLists {
  explicit OptionLists(Transport transport) {
    for (const Option& line : kOptions) {
      if ((line.of & bit(transport)) == 0) continue;
      letters += line.letter;
      if (line.argument == required_argument) letters += ':';
      names.push_back({line.name, line.argument, nullptr, line.letter});
    }
    names.push_back({});
  }
  std::string letters;
  std::vector<option> names;
};

long long number(const char* what, char letter, long long low, long long high) {
  const char option[] = {'-', letter, '\0'};
  return option_number(what, option, optarg, low, high);
}

/// Stores one option; false when it is not one.
bool store(int letter, PingpongOptions* o) {
  switch (letter) {
    case 'p':
      o->tcp_port = static_cast<std::uint16_t>(number("TCP port", 'p', 0, 65535));
      break;
    case 'd':
      o->device = optarg;
      break;
    case 'i':
      o->ib_port = static_cast<std::uint8_t>(number("port", 'i', 1, 255));
      break;
    case 's':
      o->size = static_cast<std::uint32_t>(number("size", 's', 1, kMaxMessage));
      break;
    case 'm':
      o->mtu = option_mtu(optarg);
      break;
    case 'q':
      o->queue_pairs = static_cast<std::uint32_t>(number("number of QPs", 'q', 1, kMaxQueuePairs));
      break;
    case 'r':
      o->rx_depth = static_cast<std::uint32_t>(number("rx depth", 'r', 1, kMaxCount));
      break;
    case 'n':
      o->iters = static_cast<std::uint32_t>(number("iterations", 'n', 1, kMaxCount));
      break;
    case 'l':
      o->service_level = static_cast<std::uint8_t>(number("service level", 'l', 0, 15));
      break;
    case 'g':
      o->gid_index = static_cast<int>(number("GID index", 'g', -1, 65535));
      break;
    case 'e':
      o->events = true;
      break;
    case 'o':
      o->on_demand = true;
      break;
    case 'O':
      o->on_demand = o->implicit_on_demand = true;
      break;
    case 'P':
      o->prefetch = true;
      break;
    case 't':
      o->timestamps = true;
      break;
    case 'c':
      if (o->transport == Transport::kXsrq)
        o->queue_pairs =
            static_cast<std::uint32_t>(number("number of clients", 'c', 1, kMaxClients));
      else
        o->check = true;
      break;
    case 'j':
      o->device_memory = true;
      break;
    case 'N':
      o->new_send = true;
      break;
    default:
      return false;
  }
  return true;
}

}  // namespace

std::optional<int> parse_pingpong(Calling calling, int argc, char** argv,
                                  PingpongOptions* options) {
  if (calling == Calling::kSubcommand && argc == 2) {
    const std::string_view only = argv[1];
    if (only == "-h" || only == "--help") {
      usage(argv[0], options->transport);
      return 0;
    }
  }
  const OptionLists own(options->transport);
  for (;;) {
    const int letter = getopt_long(argc, argv, own.letters.c_str(), own.names.data(), nullptr);
    if (letter == -1) break;
    if (!store(letter, options)) {
      usage(argv[0], options->transport);
      return 1;
    }
  }
  if (optind < argc - 1) {
    usage(argv[0], options->transport);
    fail("'%s' is too much: there is one server, '%s'", argv[optind + 1], argv[optind]);
  }
  if (optind == argc - 1) {
    options->server = argv[optind];
    if (options->server.empty()) {
      fail("'' is no host: give the server's address, or leave it out to be the server");
    }
  }
  if (options->transport == Transport::kXsrq) {
    if (!options->server.empty()) options->queue_pairs = 1;  // clients are the server's
    options->rx_depth = 2 * options->queue_pairs;            // one message of each is under way
  }
  if (options->queue_pairs > options->rx_depth) {
    fail(
        "rx_depth %u is too small for %u QPs -- must have at least one receive per QP.  Choose a "
        "larger -r, or a smaller -q",
        options->rx_depth, options->queue_pairs);
  }
  if (options->on_demand && options->device_memory) {
    fail("DM memory region can't be on demand: leave out -j, or -o and -O");
  }
  if (options->prefetch && !options->on_demand) {
    fail("prefetch is valid only with on-demand memory region: add -o or -O, or leave out -P");
  }
  if (!options->server.empty() && options->tcp_port == 0) {
    fail("TCP port 0 is for servers, which then say which one they got: give the server's (-p)");
  }
  return {};
}

}  // namespace verbatim::cli
