// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_option_rules.hpp"

#include <algorithm>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_pacer.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint32_t kAllSizesEnd = 1u << 23;
constexpr std::uint32_t kMostUnreliableRx = 16'000;
constexpr std::uint32_t kModeratedSize = 8192;  // above it each send has its completion
constexpr std::uint64_t kMostWithPeak = 20'000;
constexpr std::uint32_t kEndlessInterval = 5;  // seconds

/// Where messages go, how fast, and what is received of them.
void check_sending(const PerfOptions& o, const PerfAsked& asked) {
  if (o.multicast && (o.queue_pairs > 1 || o.bidirectional)) {
    fail("multicast is from one queue pair in one direction: leave out -q and -b, or -g");
  }
  if (o.group && !o.multicast) fail("a group is one of multicast: give -g too (-M)");
  if (o.multicast && o.group && o.test.latency()) {
    fail("of latency each end has a group of its own: leave out -M");
  }
  if (o.immediate && o.test.verb == PerfVerb::kWrite && o.warm_up) {
    fail("messages that are received are not sent before they count: leave out --perform_warm_up");
  }
  if (!o.rate && !asked.of_rate.empty()) {
    fail("%s is of a limited rate: give --rate_limit too", asked.of_rate.c_str());
  }
  if (o.rate && o.bidirectional && o.delivers()) {
    fail("a rate of SEND is limited in one direction: leave out -b, or --rate_limit");
  }
  // Whoever waits so long for the other side gives it up.
  constexpr double kLongestPause = 10;
  if (o.rate && o.burst / limited_messages(o, o.size) > kLongestPause) {
    fail("a burst of %u messages at that rate is more than 10 seconds' (--burst_size)", o.burst);
  }
  if (o.rate && o.events) {
    fail("who sleeps for completions keeps no rate: leave out -e, or --rate_limit");
  }
  if (o.receive_list > 1 && !o.delivers()) {
    fail("%s posts no receives: leave out --recv_post_list", test_name(o.test).c_str());
  }
  if (o.duration == 0 && o.iterations % o.receive_list != 0) {
    fail("%llu iterations are no multiple of a list of %u receives (-n, --recv_post_list)",
         static_cast<unsigned long long>(o.iterations), o.receive_list);
  }
  if (o.receives() && o.receives_each() == 0) {
    fail("a list of %u receives is more than each queue pair has of %u (--recv_post_list, -r)",
         o.receive_list, o.rx_depth);
  }
  if (o.endless && (o.events || o.all_sizes)) {
    fail("--run_infinitely runs one size and does not sleep: leave out -a and -e");
  }
  if (o.endless && o.delivers() && o.bidirectional) {
    fail("--run_infinitely of SEND has one direction: leave out -b");
  }
  if (o.counts_calls && !o.jsonl_file && !o.csv_file) {
    fail("--system_calls is for records: give --jsonl or --csv too");
  }
  if (o.counts_calls && (o.ends == PerfEnds::kProcess || o.endless)) {
    fail(
        "--system_calls counts those of one end, once: leave out --single-process and "
        "--run_infinitely");
  }
  if (o.processor_use && o.duration == 0) fail("--cpu_util is of -D: give it too");
}

/// What messages are made of, and whether they can be looked at.
void check_memory(const PerfOptions& o, const PerfAsked& asked) {
  const int kinds = int{o.huge_pages} + int{o.memory_file.has_value()};
  if (kinds > 1) fail("memory is of huge pages or of a file: leave out --use_hugepages or --mmap");
  if (asked.file_offset && !o.memory_file) fail("an offset is one in a file: give --mmap too");
  if (o.null_region && o.region_per_pair) {
    fail("the region that keeps nothing is one for all: leave out --mr_per_qp or --use-null-mr");
  }
  if (o.numa_node && !o.cores.empty()) {
    fail("the cores are a node's or a list's: leave out --numa_node or --pin_cores");
  }
  if (o.ends != PerfEnds::kOne && o.cores.size() > 2) {
    fail("both ends run on a core each: name two, the server's first (--pin_cores)");
  }
  if (o.ends != PerfEnds::kOne && o.memory_file) {
    fail("both ends would have the same bytes of the file: leave out --mmap, or --both-ends");
  }
  if (!o.validates) return;
  if (o.all_sizes || o.duration != 0) {
    fail("--data_validation is of one size and a number of messages: leave out -a and -D");
  }
  if (o.null_region || o.payload_file) {
    fail("--data_validation sends what it knows: leave out --use-null-mr and --payload_file_path");
  }
}

}  // namespace

void check_perf_options(const PerfOptions& o, const PerfAsked& asked) {
  if (o.duration != 0 && o.all_sizes) fail("-D runs one size: leave out -a, or give -n");
  if (o.duration != 0 && o.events) fail("-D does not sleep on events: leave out -e, or give -n");
  if (o.duration != 0 && (o.histogram || o.unsorted)) {
    fail("-D keeps no single results: leave out -H and -U, or give -n");
  }
  if (o.duration == 0 && asked.margin) fail("a margin is one of -D: leave out -f, or give -D");
  if (!o.endless && o.duration != 0 && o.duration <= 2 * o.margin) {
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
  if (o.ends != PerfEnds::kOne && (asked.port || !o.source.empty())) {
    fail("both ends are started here and find each other: leave out -p and --source_ip");
  }
  if (o.connects() && o.tcp_port == 0 && o.ends == PerfEnds::kOne) {
    fail("TCP port 0 is for servers, which then say which one they got: give the server's (-p)");
  }
  if (o.jsonl_file == "-" && o.csv_file == "-") {
    fail("one of --jsonl and --csv can have the standard output (-)");
  }
  check_sending(o, asked);
  check_memory(o, asked);
}

void derive_perf_options(PerfOptions* o, const PerfAsked& asked) {
  // Who reads the records there cannot read a table between them.
  if (o->jsonl_file == "-" || o->csv_file == "-") o->quiet = true;
  if (o->all_sizes) o->size = kAllSizesEnd;
  if (o->multicast) {
    o->connection = PerfConnection::kUd;
    if (o->gid_index < 0) o->gid_index = 0;
  }
  if (o->endless && o->duration == 0) o->duration = kEndlessInterval;
  if (o->immediate && o->rx_depth == 1) o->rx_depth = kPerfReceives;
  if (o->xrc() && o->delivers()) o->shared_receives = true;
  if (o->duration == 0) {
    const auto most =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(o->iterations, UINT32_MAX));
    o->tx_depth = std::min(o->tx_depth, most);
    if (o->delivers()) {
      const bool unreliable = o->datagrams() || o->connection == PerfConnection::kUc;
      if (unreliable && o->rx_depth == kPerfReceives) o->rx_depth = kMostUnreliableRx;
      // Shared ones are for the messages of all queue pairs.
      const std::uint64_t messages = o->iterations * (o->shared_receives ? o->queue_pairs : 1);
      o->rx_depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(o->rx_depth, messages));
    }
  } else {
    o->no_peak = true;
    o->margin = o->endless ? 0 : asked.margin.value_or(o->duration / 4);
  }
  if (o->post_list > 1 && !asked.moderation) o->cq_moderation = o->post_list;
  if (o->post_list == 1 && o->size > kModeratedSize && !asked.moderation && !o->datagrams() &&
      !o->all_sizes && !o->events) {
    o->cq_moderation = 1;
  }
  o->cq_moderation = std::min(o->cq_moderation, o->tx_depth);
  if (o->iterations > kMostWithPeak) o->no_peak = true;
  // Of messages that are answered or received by another nothing is known of single ones.
  if (o->delivers() && o->test.bandwidth() && !o->client() && !o->bidirectional) o->no_peak = true;
  if (o->burst == 0) o->burst = o->tx_depth;
}

}  // namespace verbatim::cli
