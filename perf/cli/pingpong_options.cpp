// SPDX-License-Identifier: BSD-2-Clause
// See pingpong_options.hpp.
#include "perf/cli/pingpong_options.hpp"

#include <getopt.h>

#include <cstdio>
#include <string_view>

#include "perf/cli/failure.hpp"
#include "perf/cli/numbers.hpp"

namespace verbatim::cli {
namespace {

constexpr long long kMaxMessage = 1LL << 31;  // IBTA 9.7.7: the largest message there can be
constexpr long long kMaxCount = 1'000'000'000;

void usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s            start a server and wait for connection\n"
      "  %s <host>     connect to server at <host>\n"
      "\n"
      "Options:\n"
      "  -p, --port=<port>      listen on/connect to port <port> (default 18515)\n"
      "  -d, --ib-dev=<dev>     use IB device <dev> (default first device found)\n"
      "  -i, --ib-port=<port>   use port <port> of IB device (default 1)\n"
      "  -s, --size=<size>      size of message to exchange (default 4096)\n"
      "  -m, --mtu=<size>       path MTU (default 1024)\n"
      "  -r, --rx-depth=<dep>   number of receives to post at a time (default 500)\n"
      "  -n, --iters=<iters>    number of exchanges (default 1000)\n"
      "  -l, --sl=<sl>          service level value\n"
      "  -e, --events           sleep on CQ events (default poll)\n"
      "  -g, --gid-idx=<gid index> local port gid index\n"
      "  -o, --odp\t\t    use on demand paging\n"
      "  -O, --iodp\t\t    use implicit on demand paging\n"
      "  -P, --prefetch\t    prefetch an ODP MR\n"
      "  -t, --ts\t            get CQE with timestamp\n"
      "  -c, --chk\t            validate received buffer\n"
      "  -j, --dm\t            use device memory\n"
      "  -N, --new_send            use new post send WR API\n",
      name, name);
}

long long number(const char* what, char letter, long long low, long long high) {
  if (const auto value = number_in(optarg, low, high)) return *value;
  fail("%s '%s' is not a number from %lld to %lld (-%c)", what, optarg, low, high, letter);
}

ibv_mtu mtu(long long bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    case 4096:
      return IBV_MTU_4096;
    default:
      fail("path MTU '%s' is none of 256, 512, 1024, 2048, 4096 (-m)", optarg);
  }
}

constexpr char kLetters[] = "p:d:i:s:m:r:n:l:eg:oOPtcjN";
constexpr option kLong[] = {
    {"port", required_argument, nullptr, 'p'},    {"ib-dev", required_argument, nullptr, 'd'},
    {"ib-port", required_argument, nullptr, 'i'}, {"size", required_argument, nullptr, 's'},
    {"mtu", required_argument, nullptr, 'm'},     {"rx-depth", required_argument, nullptr, 'r'},
    {"iters", required_argument, nullptr, 'n'},   {"sl", required_argument, nullptr, 'l'},
    {"events", no_argument, nullptr, 'e'},        {"gid-idx", required_argument, nullptr, 'g'},
    {"odp", no_argument, nullptr, 'o'},           {"iodp", no_argument, nullptr, 'O'},
    {"prefetch", no_argument, nullptr, 'P'},      {"ts", no_argument, nullptr, 't'},
    {"chk", no_argument, nullptr, 'c'},           {"dm", no_argument, nullptr, 'j'},
    {"new_send", no_argument, nullptr, 'N'},      {}};

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
      o->mtu = mtu(number("path MTU", 'm', 0, kMaxCount));
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
      usage(argv[0]);
      return 0;
    }
  }
  for (;;) {
    const int letter = getopt_long(argc, argv, kLetters, kLong, nullptr);
    if (letter == -1) break;
    if (!store(letter, options)) {
      usage(argv[0]);
      return 1;
    }
  }
  if (optind < argc - 1) {
    usage(argv[0]);
    fail("'%s' is too much: there is one server, '%s'", argv[optind + 1], argv[optind]);
  }
  if (optind == argc - 1) {
    options->server = argv[optind];
    if (options->server.empty()) {
      fail("'' is no host: give the server's address, or leave it out to be the server");
    }
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
