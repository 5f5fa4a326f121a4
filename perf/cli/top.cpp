// SPDX-License-Identifier: BSD-2-Clause
// `verbatim top`: the live objects of all processes of this user on this host, again and again, or
// once as JSON. Main thread; it opens no device and is a member of no fabric.
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/top_segments.hpp"
#include "perf/support/json.hpp"
#include "runtime/verbs/qp_words.hpp"

namespace verbatim::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TopOptions {
  double interval = 1;
  long count = 0;  // 0: for ever
  bool json = false;
};

void top_usage(std::FILE* out, const char* program) {
  std::fprintf(out,
               "Usage: %s [options]   show the live objects of all processes of this user\n"
               "\n"
               "  --interval=<seconds>  between two looks (default 1)\n"
               "  --count=<number>      of looks, then end (default: until a signal; 1 when the\n"
               "                        output is no terminal)\n"
               "  --json                one look, as JSON\n"
               "\n"
               "SENT and sent_messages count requests that were a success, the bytes beside them\n"
               "are theirs; what waits is in SENDS, what failed in ERRORS. What comes over XRC is\n"
               "counted for the shared receive queue that takes it, XRC_SRQ.\n",
               program);
}

double number_above_zero(const char* text, const char* what) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != 0 || !(value > 0) || value > 1e6)
    fail("'%s' is no %s: a number from above 0 to 1000000", text, what);
  return value;
}

/// False: help was asked for.
bool parse(int argc, char** argv, TopOptions& options) {
  static const option kLong[] = {{"interval", required_argument, nullptr, 'i'},
                                 {"count", required_argument, nullptr, 'n'},
                                 {"json", no_argument, nullptr, 'j'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {}};
  options.count = isatty(STDOUT_FILENO) != 0 ? 0 : 1;
  for (int chosen; (chosen = getopt_long(argc, argv, "i:n:jh", kLong, nullptr)) != -1;) {
    switch (chosen) {
      case 'i':
        options.interval = number_above_zero(optarg, "interval");
        break;
      case 'n':
        options.count = static_cast<long>(number_above_zero(optarg, "count"));
        if (options.count < 1) fail("'%s' is no count: at least 1", optarg);
        break;
      case 'j':
        options.json = true;
        break;
      case 'h':
        return false;
      default:
        throw Failure{""};  // getopt has said it
    }
  }
  if (optind < argc) fail("'%s' is too much: see --help", argv[optind]);
  return true;
}

const char* type_word(const QueuePairView& view) {
  return view.is_xrc_queue ? "XRC_SRQ" : qp_type_word(view.type);
}
const char* state_word(const QueuePairView& view) {
  return view.is_xrc_queue ? "-" : qp_state_word(view.state);
}

void print_json(const std::vector<ProcessView>& processes) {
  using perf::Json;
  Json all = Json::array();
  for (const ProcessView& process : processes) {
    Json pairs = Json::array();
    for (const QueuePairView& view : process.queue_pairs) {
      Json pair = {{"qpn", view.number},
                   {"type", type_word(view)},
                   {"state", state_word(view)},
                   {"peer_qpn", view.peer},
                   {"peer_pid", view.peer_pid},
                   {"sent_messages", view.sent_messages},
                   {"sent_bytes", view.sent_bytes},
                   {"received_messages", view.received_messages},
                   {"received_bytes", view.received_bytes},
                   {"errors", view.errors},
                   {"sends_outstanding", view.sends_outstanding},
                   {"send_depth", view.send_depth},
                   {"receives_posted", view.receives_posted},
                   {"receive_depth", view.receive_depth},
                   {"shares_receives", view.shares_receives}};
      pairs.push_back(std::move(pair));
    }
    all.push_back({{"pid", process.pid},
                   {"program", process.name},
                   {"cqs", process.cqs},
                   {"srqs", process.srqs},
                   {"keys", process.keys},
                   {"queue_pairs", std::move(pairs)}});
  }
  const Json whole = {{"version", 1}, {"processes", std::move(all)}};
  std::printf("%s\n", whole.text().c_str());
}

/// Messages of a queue pair at the last look, in both directions.
using Before = std::map<std::pair<pid_t, std::uint32_t>, std::uint64_t>;

void print_table(const std::vector<ProcessView>& processes, Before& before, double seconds) {
  std::printf("%7s %-15s %-8s %-8s %-5s %-16s %12s %10s %14s %12s %14s %6s %11s %11s\n", "PID",
              "PROGRAM", "QP", "TYPE", "STATE", "PEER", "SENT", "MSG/S", "BYTES", "RECEIVED",
              "BYTES", "ERRORS", "SENDS", "RECEIVES");
  Before now;
  for (const ProcessView& process : processes) {
    const auto queue_pairs =
        std::count_if(process.queue_pairs.begin(), process.queue_pairs.end(),
                      [](const QueuePairView& view) { return !view.is_xrc_queue; });
    std::printf("%7d %-15s %td QPs, %u CQs, %u SRQs, %u keys\n", static_cast<int>(process.pid),
                process.name.c_str(), queue_pairs, process.cqs, process.srqs, process.keys);
    for (const QueuePairView& view : process.queue_pairs) {
      const auto key = std::make_pair(process.pid, view.number);
      const std::uint64_t messages = view.sent_messages + view.received_messages;
      const auto old = before.find(key);
      const double rate = old == before.end() || messages < old->second || seconds <= 0
                              ? 0
                              : static_cast<double>(messages - old->second) / seconds;
      now[key] = messages;
      char peer[48] = "-", sends[24], receives[24];
      if (view.peer != 0 && view.peer_pid != 0)
        std::snprintf(peer, sizeof peer, "0x%06x@%d", view.peer, static_cast<int>(view.peer_pid));
      else if (view.peer != 0)
        std::snprintf(peer, sizeof peer, "0x%06x", view.peer);
      std::snprintf(sends, sizeof sends, "%u/%u", view.sends_outstanding, view.send_depth);
      std::snprintf(receives, sizeof receives, "%s%u/%u", view.shares_receives ? "s" : "",
                    view.receives_posted, view.receive_depth);
      std::printf("%23s 0x%06x %-8s %-5s %-16s %12llu %10.0f %14llu %12llu %14llu %6u %11s %11s\n",
                  "", view.number, type_word(view), state_word(view), peer,
                  static_cast<unsigned long long>(view.sent_messages), rate,
                  static_cast<unsigned long long>(view.sent_bytes),
                  static_cast<unsigned long long>(view.received_messages),
                  static_cast<unsigned long long>(view.received_bytes), view.errors, sends,
                  receives);
    }
  }
  before = std::move(now);
}

}  // namespace

int top(Calling, int argc, char** argv) {
  try {
    TopOptions options;
    if (!parse(argc, argv, options)) {
      top_usage(stdout, argv[0]);
      return 0;
    }
    if (options.json) {
      print_json(read_processes());
      return 0;
    }
    const bool is_terminal = isatty(STDOUT_FILENO) != 0;
    Before before;
    Clock::time_point last{};
    for (long look = 0; options.count == 0 || look < options.count; ++look) {
      if (look != 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
      const std::vector<ProcessView> processes = read_processes();
      const Clock::time_point now = Clock::now();
      if (is_terminal) std::printf("\x1b[H\x1b[J");
      print_table(processes, before,
                  look == 0 ? 0 : std::chrono::duration<double>(now - last).count());
      if (std::fflush(stdout) != 0) break;  // main() says it
      last = now;
    }
    return 0;
  } catch (const Failure& failure) {
    if (!failure.line.empty()) std::fprintf(stderr, "%s: %s\n", argv[0], failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
