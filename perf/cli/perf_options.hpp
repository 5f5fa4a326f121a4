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
#include <utility>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/perf_test.hpp"
#include "perf/cli/perftest_messages.hpp"

namespace verbatim::cli {

/// Of a limited rate: 2^20 bytes, 10^9 bits, or messages in a second.
enum class PerfRateUnit : unsigned char { kMebibytes, kGigabits, kMessages };
/// Which ends of a test a program starts.
enum class PerfEnds : unsigned char { kOne, kHost, kProcess };
enum class PerfOutput : unsigned char { kAll, kBandwidth, kMessageRate, kLatency };

struct PerfOptions {
  explicit PerfOptions(PerfTest which);

  PerfTest test;
  PerfConnection connection = PerfConnection::kRc;
  std::string server;  // empty: be the server
  PerfEnds ends = PerfEnds::kOne;
  std::uint16_t tcp_port = 18515;
  std::string source;            // an address of this host that TCP is spoken from; empty: any
  bool introduces = true;        // versions and MTUs are exchanged
  const char* device = nullptr;  // null: the first
  std::uint8_t ib_port = 1;
  bool two_ports = false;      // at once, which no device of ours has
  int gid_index = -1;          // -1: none, or the best one where the link needs one
  std::optional<ibv_mtu> mtu;  // nothing: the port's
  std::uint8_t timeout = 14;   // 4.096 us * 2^it
  std::uint8_t retries = 7;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint16_t pkey_index = 0;
  std::uint16_t destination_lid = 0;       // 0: the one that the peer tells
  std::optional<std::uint8_t> link_layer;  // nothing: the port's
  bool prefers_ipv6 = false;               // of the GIDs where none is named
  std::optional<ibv_gid> group;            // of multicast; nothing: perftest's

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
  std::uint32_t receive_list = 1;     // receives that are posted at once
  std::uint32_t cq_moderation = 100;  // sends between two completions
  std::optional<std::uint32_t> inline_size;
  std::optional<std::uint32_t> reads;  // outstanding
  int vector = 0;                      // of completion events
  std::uint32_t latency_gap = 0;       // microseconds before each message
  bool bidirectional = false;
  bool reversed = false;       // the server sends, and the client is what it usually is
  bool endless = false;        // until stopped, with results each `duration`
  bool multicast = false;      // datagrams go to a group that the receiver is in
  bool immediate = false;      // with four bytes of immediate data, which a WRITE is received by
  std::optional<double> rate;  // that is not exceeded
  PerfRateUnit rate_unit = PerfRateUnit::kGigabits;
  std::uint32_t burst = 0;  // messages between two pauses of a limited rate
  bool events = false;
  bool shared_receives = false;
  bool classic_post = false;  // ibv_post_send, never ibv_wr_*
  bool on_demand = false;
  bool huge_pages = false;
  bool region_per_pair = false;  // a memory region for each queue pair
  bool null_region = false;      // the device's region that keeps nothing
  bool unlocked = false;         // of one thread, which the device need not guard against others
  std::optional<std::string> memory_file;
  std::uint64_t memory_offset = 0;
  std::optional<std::string> payload_file;
  bool validates = false;  // what has come is compared with what was sent
  std::vector<int> cores;  // that the program runs on; none: any
  std::optional<std::uint32_t> numa_node;
  std::uint32_t wait_at_end = 0;  // seconds before what was made is destroyed
  bool compare_swap = false;      // else fetch and add
  bool warm_up = false;

  bool quiet = false;  // the other end of this program prints, or records go to the standard output
  bool floors = false;                           // the report carries those of its run
  std::optional<std::pair<int, int>> end_cores;  // the client's and the server's, bound here
  bool no_peak = false;
  bool gbits = false;
  bool report_both = false;
  bool histogram = false;
  bool unsorted = false;
  bool cycles = false;
  bool processor_use = false;
  bool counts_calls = false;
  std::vector<std::string> counters;  // of the port, by their names in sysfs
  PerfOutput output = PerfOutput::kAll;
  std::optional<std::string> json_file;
  std::optional<std::string> jsonl_file, csv_file;
  std::optional<double> least_bandwidth;
  std::optional<double> least_rate;

  /// Over TCP; which end measures is another matter where the test is reversed.
  bool connects() const { return !server.empty(); }
  bool client() const { return connects() != reversed; }
  bool xrc() const { return connection == PerfConnection::kXrc; }
  bool datagrams() const { return connection == PerfConnection::kUd; }
  /// Of both ends in one program one says how far they are.
  bool speaks() const { return ends == PerfEnds::kOne || connects(); }
  /// This end posts what is measured.
  bool sends() const { return client() || bidirectional || test.answered(); }
  /// Each message uses up a receive at the other end.
  bool delivers() const { return test.verb == PerfVerb::kSend || immediate; }
  /// This end posts receives.
  bool receives() const { return delivers() && (!client() || bidirectional || test.latency()); }
  /// XRC has queue pairs for each direction.
  bool both_directions() const { return bidirectional || test.latency(); }
  std::uint32_t all_queue_pairs() const {
    return xrc() && both_directions() ? 2 * queue_pairs : queue_pairs;
  }
  bool uses_srq() const { return shared_receives && receives(); }
  /// That are posted for each queue pair before a test.
  std::uint32_t receives_each() const {
    const std::uint32_t each = uses_srq() ? rx_depth / all_queue_pairs() : rx_depth;
    return each / receive_list * receive_list;
  }
};

/// Fills `options`, whose server may be there already, or answers the exit status when there is
/// nothing to run.
std::optional<int> parse_perf(Calling calling, int argc, char** argv, PerfOptions* options);

}  // namespace verbatim::cli
