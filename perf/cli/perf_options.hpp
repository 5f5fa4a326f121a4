// SPDX-License-Identifier: BSD-2-Clause
// The command lines of `verbatim perf <send|write|read|atomic>-<lat|bw>` and of perftest's names.
//
// Main thread, once per process (getopt). Options, their letters and defaults are perftest's;
// numbers are read strictly. An option that is not for a test, or that this program does not have,
// is a Failure that says so: none is ignored.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "perf/cli/commands.hpp"
#include "perf/cli/perf_test.hpp"
#include "perf/cli/perftest_messages.hpp"

namespace verbatim::cli {

enum class PerfOutput : unsigned char { kAll, kBandwidth, kMessageRate, kLatency };

struct PerfOptions {
  explicit PerfOptions(PerfTest which);

  PerfTest test;
  PerfConnection connection = PerfConnection::kRc;
  std::string server;  // empty: be the server
  std::uint16_t tcp_port = 18515;
  const char* device = nullptr;  // null: the first
  std::uint8_t ib_port = 1;
  int gid_index = -1;          // -1: none, or the best one where the link needs one
  std::optional<ibv_mtu> mtu;  // nothing: the port's
  std::uint8_t timeout = 14;   // 4.096 us * 2^it
  std::uint8_t retries = 7;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint16_t pkey_index = 0;

  std::uint32_t size;
  bool size_given = false;        // else a datagram's may be shortened
  bool all_sizes = false;         // from 2 bytes on, by twos
  std::uint64_t iterations;       // of each queue pair
  std::uint32_t duration = 0;     // seconds; 0: by iterations
  std::uint32_t margin = 0;       // of them at either end that are not counted
  std::uint32_t queue_pairs = 1;  // that send in one direction
  std::uint32_t tx_depth;
  std::uint32_t rx_depth;
  std::uint32_t post_list = 1;
  std::uint32_t cq_moderation = 100;  // sends between two completions
  std::optional<std::uint32_t> inline_size;
  std::optional<std::uint32_t> reads;  // outstanding
  int vector = 0;                      // of completion events
  std::uint32_t latency_gap = 0;       // microseconds before each message
  bool bidirectional = false;
  bool events = false;
  bool shared_receives = false;
  bool classic_post = false;  // ibv_post_send, never ibv_wr_*
  bool on_demand = false;
  bool compare_swap = false;  // else fetch and add
  bool warm_up = false;

  bool no_peak = false;
  bool gbits = false;
  bool report_both = false;
  bool histogram = false;
  bool unsorted = false;
  bool cycles = false;
  PerfOutput output = PerfOutput::kAll;
  std::optional<std::string> json_file;
  std::optional<std::string> jsonl_file, csv_file;
  std::optional<double> least_bandwidth;
  std::optional<double> least_rate;

  bool client() const { return !server.empty(); }
  bool xrc() const { return connection == PerfConnection::kXrc; }
  bool datagrams() const { return connection == PerfConnection::kUd; }
  /// This end posts what is measured.
  bool sends() const { return client() || bidirectional || test.answered(); }
  /// This end posts receives.
  bool receives() const {
    return test.verb == PerfVerb::kSend && (!client() || bidirectional || test.latency());
  }
  /// XRC has queue pairs for each direction.
  bool both_directions() const { return bidirectional || test.latency(); }
  std::uint32_t all_queue_pairs() const {
    return xrc() && both_directions() ? 2 * queue_pairs : queue_pairs;
  }
  bool uses_srq() const { return shared_receives && receives(); }
  /// That are posted for each queue pair before a test.
  std::uint32_t receives_each() const {
    return uses_srq() ? rx_depth / all_queue_pairs() : rx_depth;
  }
};

/// Fills `options`, or answers the exit status when there is nothing to run.
std::optional<int> parse_perf(Calling calling, int argc, char** argv, PerfOptions* options);

}  // namespace verbatim::cli
