// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf <test>`, and perftest's names: the order of a test from its options to its last
// line, in step with the other end, which may be Debian's.
//
// Main thread. Every wait but the server's for its client is bounded, or ends with the connection.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/perf_both_ends.hpp"
#include "perf/cli/perf_counters.hpp"
#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/perf_placement.hpp"
#include "perf/cli/perf_progress.hpp"
#include "perf/cli/perf_queues.hpp"
#include "perf/cli/perf_report.hpp"
#include "perf/cli/perf_run.hpp"
#include "perf/cli/perf_run_floors.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/stoppable.hpp"
#include "perf/support/call_count.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr long kLookMs = 200;
constexpr std::uint32_t kFirstOfAllSizes = 2, kLastOfAllSizes = 1u << 23;

/// A datagram is one packet: a size that nobody asked for is shortened, as perftest does.
void fit_datagrams(PerfOptions* options, ibv_mtu mtu, const char* where) {
  const auto packet = static_cast<std::uint32_t>(128 << mtu);
  if (!options->datagrams() || options->size <= packet) return;
  if (options->size_given && !options->all_sizes) {
    fail("a datagram is one packet, of %u bytes at most %s; choose a smaller -s", packet, where);
  }
  options->size = packet;
}

/// Groups of a real InfiniBand subnet are joined at its manager, by messages to QP 1.
void check_multicast(const Device& device, const PerfOptions& o) {
  const std::string node = std::string("/sys/class/infiniband/") + device.name();
  if (perf_link_layer(device, o) != IBV_LINK_LAYER_ETHERNET && access(node.c_str(), F_OK) == 0) {
    fail(
        "%s is on an InfiniBand subnet, whose groups are joined at its subnet manager: this "
        "program speaks to none (-g)",
        device.name());
  }
  if (device.attr.orig_attr.max_mcast_grp == 0)
    fail("%s has no multicast: leave out -g", device.name());
}

/// What the port and the device can, known before anybody is waited for.
ibv_mtu check_device(const Device& device, PerfOptions* options) {
  const PerfOptions& o = *options;
  if (device.context->device->transport_type == IBV_TRANSPORT_IWARP) {
    fail("%s is iWARP, which connects by rdma_cm alone: another -d", device.name());
  }
  if (o.mtu && *o.mtu > device.port.active_mtu) {
    fail("path MTU %d is more than the port's %d; choose a smaller -m", 128 << *o.mtu,
         128 << device.port.active_mtu);
  }
  const ibv_mtu mtu = o.mtu.value_or(device.port.active_mtu);
  fit_datagrams(options, mtu, "here");
  if (o.size > device.port.max_msg_sz) {
    fail("size %u is more than %s sends in one message (%u bytes); choose a smaller -s", o.size,
         device.name(), device.port.max_msg_sz);
  }
  if (o.test.verb == PerfVerb::kAtomic && device.attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE) {
    fail("%s has no atomics: another -d", device.name());
  }
  if (o.xrc() && (device.attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC) == 0) {
    fail("%s has no XRC: another -c or -d", device.name());
  }
  if (o.two_ports) {
    const unsigned ports = device.attr.orig_attr.phys_port_cnt;
    fail("%s has %u port%s, and this program drives one at a time: run one with -i for each (-O)",
         device.name(), ports, ports == 1 ? "" : "s");
  }
  if (o.multicast) check_multicast(device, o);
  const auto deepest = static_cast<std::uint32_t>(std::max(0, device.attr.orig_attr.max_qp_wr));
  if (o.tx_depth > deepest || (!o.shared_receives && o.rx_depth > deepest)) {
    fail("depths of %u and %u requests are more than %s takes (%u); choose a smaller -t or -r",
         o.tx_depth, o.rx_depth, device.name(), deepest);
  }
  check_inline_size(device, o);
  return mtu;
}

/// Ends the count.
perf::Usage used_since(const perf::Usage& before, std::optional<perf::CallCount>* count) {
  const std::optional<std::uint64_t> calls =
      *count ? (*count)->calls() : std::optional<std::uint64_t>();
  count->reset();
  perf::Usage used = perf::usage_since(before);
  if (calls) used.system_calls = static_cast<double>(*calls);
  return used;
}

class Perf {
 public:
  /// Of both ends the server is given its `listener`.
  Perf(PerfOptions options, std::optional<Listener> listener, const StopSignals& stop)
      : o_{std::move(options)}, listener_{std::move(listener)}, stop_{stop} {}

  void run() {
    (void)perf::ns_per_tick();  // which is measured once, and not in the middle of a test
    place(o_);
    if (o_.counts_calls && !perf::CallCount().calls()) {
      fail(
          "this host lets no system calls be counted (x86-64, Linux 5.11): leave out "
          "--system_calls");
    }
    PerfPrinter printer(o_, use_);
    const Device device = open_device(o_.device, o_.ib_port);
    const ibv_mtu mtu = check_device(device, &o_);
    identity_.gid = perf_gid_index(device, o_) >= 0;
    PortCounters counters(device.name(), o_.ib_port, o_.counters);
    counters_ = &counters;
    make_floors(device);
    PerfExchange exchange(o_, listen(printer), stop_);
    const PerfTerms terms = exchange.introduce(identity(), mtu);
    fit_datagrams(&o_, terms.mtu, "on the other side");
    exchange.negotiate(negotiation_of(o_, device.attr.orig_attr));
    PerfQueues queues(device, o_, terms);
    printer.heading(device, queues, terms);
    connect(exchange, queues, printer);
    if (has_results()) printer.columns();
    try {
      if (waits_only())
        watch(exchange, queues, printer);
      else
        measure({o_, queues, exchange, stop_}, exchange, printer);
      // Of two hosts the other end may be on its way into the next test.
      if (floors_ && o_.ends != PerfEnds::kOne) floors_->take(stop_);
    } catch (const PeerHasLeft&) {
      if (!o_.quiet) std::printf(" Client closed connection\n");
    } catch (const Stopped&) {
      // What was measured till the signal came, of earlier sizes too, is printed and written.
      conclude(printer);
      throw;
    } catch (const Failure&) {
      // Sizes before the one that failed were measured.
      if (printer.has_results()) printer.finish();
      throw;
    }
    conclude(printer);
    check_limits(o_, average_, rate_);
    wait_at_end();
  }

 private:
  /// Right before the test: the other end sleeps until this one connects.
  void make_floors(const Device& device) {
    const bool carried =
        o_.output == PerfOutput::kAll || o_.json_file || o_.jsonl_file || o_.csv_file;
    if (!o_.floors || !carried || !PerfRunFloors::possible()) return;
    const perf::CorePair cores =
        perf::choose_core_pair(o_.end_cores ? std::vector{o_.end_cores->first, o_.end_cores->second}
                                            : perf::allowed_cpus());
    const bool by_memory = std::string_view(device.name()).starts_with("shm");
    floors_.emplace(o_, plan_floors(o_, by_memory, sizes()), cores);
    floors_->take(stop_);
  }

  void conclude(PerfPrinter& printer) {
    printer.line();
    if (floors_) printer.floors(*floors_);
    printer.finish();
  }

  void wait_at_end() const {
    if (o_.wait_at_end == 0) return;
    if (!o_.quiet)
      std::printf(" Waiting %u seconds before releasing resources...\n", o_.wait_at_end);
    (void)wait_for(-1, 0, 1000L * o_.wait_at_end, stop_);
  }

  const PerfIdentity& identity() {
    identity_.test = o_.test;
    identity_.connection = o_.connection;
    identity_.all_sizes = o_.all_sizes;
    identity_.bidirectional = o_.bidirectional;
    identity_.duration = o_.duration != 0;
    identity_.reversed = o_.reversed;
    identity_.endless = o_.endless;
    identity_.multicast = o_.multicast;
    identity_.immediate = o_.immediate;
    identity_.validates = o_.validates;
    identity_.queue_pairs = o_.queue_pairs;
    identity_.size = o_.size;
    identity_.iterations = fold_iterations(o_.iterations);
    return identity_;
  }

  std::optional<Listener> listen(const PerfPrinter& printer) {
    if (o_.connects()) return {};
    if (listener_) return std::move(listener_);
    Listener listener(o_.tcp_port, 1, o_.source);
    if (o_.tcp_port == 0) std::fprintf(stderr, "listening on port %d\n", listener.port());
    printer.waiting();
    return listener;
  }

  /// A server whose client needs nothing of it.
  bool waits_only() const { return !o_.sends() && !o_.receives(); }
  /// Of a latency such a server has nothing to print.
  bool has_results() const { return !waits_only() || o_.test.bandwidth(); }

  void connect(PerfExchange& exchange, PerfQueues& queues, const PerfPrinter& printer) {
    const std::uint32_t pairs = o_.all_queue_pairs();
    const bool send = o_.test.verb == PerfVerb::kSend;
    const auto swap_all = [&] {
      peer_.clear();
      for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        peer_.push_back(exchange.swap(queues.address(pair)));
      }
    };
    // perftest's order, which is another one for each kind of test.
    if (o_.test.latency() && !send) exchange.swap(queues.address(0));
    swap_all();
    queues.connect(peer_);
    if (send) exchange.swap(queues.address(0));
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      printer.address("local", queues.address(pair), identity_.gid);
    }
    swap_all();
    for (const PerftestAddress& address : peer_) {
      printer.address("remote", address, identity_.gid);
    }
    if (!send) exchange.swap(queues.address(0));
  }

  std::vector<std::uint32_t> sizes() const {
    if (!o_.all_sizes) return {o_.size};
    std::vector<std::uint32_t> all;
    for (std::uint32_t size = kFirstOfAllSizes; size <= std::min(kLastOfAllSizes, o_.size);
         size *= 2) {
      all.push_back(size);
    }
    return all;
  }

  void measure(const PerfRun& run, PerfExchange& exchange, PerfPrinter& printer) {
    const PerftestAddress& first = run.queues.address(0);
    const bool send = o_.test.verb == PerfVerb::kSend;
    PerftestReport last;
    for (const std::uint32_t size : sizes()) {
      run.queues.prepare(size, peer_);
      if (o_.receives()) {
        for (std::uint32_t pair = 0; pair < o_.queue_pairs; ++pair) {
          for (std::uint32_t posted = 0; posted < o_.receives_each(); posted += o_.receive_list) {
            run.queues.post_receives(pair);
          }
        }
      }
      if (o_.warm_up) warm_up(run);
      // Who receives must be ready, and both directions begin at once.
      if (o_.delivers() || (o_.bidirectional && !o_.endless)) exchange.wait_for_peer(first);
      begin_use();
      std::optional<PerfProgress> progress;
      if (o_.speaks()) progress.emplace(progress_text(size), o_.duration);
      const perf::Usage before = perf::usage_now();
      std::optional<perf::CallCount> count;
      if (o_.counts_calls) count.emplace();
      if (o_.test.latency()) {
        PerfLatencies found = measure_latency(run, size);
        found.used = used_since(before, &count);
        progress.reset();
        const bool stopped = found.stopped;
        printer.latency(size, std::move(found));
        print_counters();
        if (stopped) throw Stopped{};
        continue;
      }
      PerfThroughput found = measure_bandwidth(run, size, [&](const PerfThroughput& part) {
        PerftestReport report = report_of(o_, size, part);
        // Of both directions the other is taken for as fast, as perftest does.
        if (o_.bidirectional) report = twice(report);
        printer.bandwidth(report);
        print_counters();
        average_ = report.average;
        rate_ = report.rate;
      });
      found.used = used_since(before, &count);
      progress.reset();
      printer.measured(size, found);
      if (found.stopped) {
        if (found.messages != 0 && found.ticks != 0) {
          printer.bandwidth(report_of(o_, size, found));
        }
        throw Stopped{};
      }
      if (o_.all_sizes && !send && (o_.bidirectional || o_.immediate))
        exchange.wait_for_peer(first);
      last = report_of(o_, size, found);
      report(exchange, printer, last);
      print_counters();
      if (o_.all_sizes && send) exchange.wait_for_peer(first);
    }
    if (o_.test.bandwidth() && !o_.delivers() && !o_.bidirectional) {
      exchange.wait_for_peer(first);
      exchange.swap_reports(last);
    } else if (o_.validates) {
      exchange.wait_for_peer(first);  // till then the other end's messages may be on their way
    }
    validate(run.queues);
    if (o_.test.latency() && o_.test.verb == PerfVerb::kWrite) return exchange.leave();
    exchange.part(first);
  }

  std::string progress_text(std::uint32_t size) const {
    return test_name(o_.test) + ", " + std::to_string(size) + " bytes";
  }

  /// Of both directions each end has measured its own.
  void report(PerfExchange& exchange, PerfPrinter& printer, const PerftestReport& ours) {
    const bool counts_both = o_.delivers() && o_.duration != 0;
    std::optional<PerftestReport> theirs;
    if (o_.bidirectional && !counts_both) theirs = exchange.swap_reports(ours);
    printer.bandwidth(ours, theirs ? &*theirs : nullptr);
    average_ = ours.average + (theirs ? theirs->average : 0);
    rate_ = ours.rate + (theirs ? theirs->rate : 0);
    if (o_.report_both && theirs) printer.both(ours, *theirs);
  }

  void watch(PerfExchange& exchange, const PerfQueues& queues, PerfPrinter& printer) {
    const PerftestAddress& first = queues.address(0);
    begin_use();
    if (o_.endless) {
      while (!exchange.peer_has_left()) (void)wait_for(-1, 0, kLookMs, stop_);
      throw PeerHasLeft{};
    }
    if (o_.test.bandwidth()) {
      exchange.wait_for_peer(first);
      const PerftestReport theirs = exchange.swap_reports({});
      printer.bandwidth(theirs);
      printer.told(theirs);
      average_ = theirs.average;
      rate_ = theirs.rate;
      print_counters();
    }
    validate(queues);
    exchange.part(first);
  }

  void print_counters() const {
    if (!o_.quiet) counters_->print();
  }

  void begin_use() {
    counters_->start();
    use_.start();
  }

  void validate(const PerfQueues& queues) const {
    if (!o_.validates) return;
    queues.validate(o_.size, o_.iterations);
    if (o_.output == PerfOutput::kAll && !o_.quiet) std::printf(" Data validation: passed\n");
  }

  static PerftestReport twice(PerftestReport report) {
    report.average *= 2;
    report.rate *= 2;
    return report;
  }

  PerfOptions o_;
  std::optional<Listener> listener_;
  const StopSignals& stop_;
  PerfIdentity identity_;
  PortCounters* counters_ = nullptr;
  std::optional<PerfRunFloors> floors_;
  ProcessorUse use_;
  std::vector<PerftestAddress> peer_;
  double average_ = 0, rate_ = 0;
};

void run_end(const PerfOptions& options, std::optional<Listener> listener,
             const StopSignals& stop) {
  try {
    Perf(options, std::move(listener), stop).run();
  } catch (const std::bad_alloc&) {
    fail("not enough memory for the results of %llu messages: a smaller -n or -q, or -D",
         static_cast<unsigned long long>(options.iterations));
  }
}

int run_perf(PerfTest test, Calling calling, int argc, char** argv) {
  PerfOptions options(test);
  PerfOptions client(test);  // where both ends are started here
  client.server = kOwnHost;
  const auto parse = [&] {
    const std::optional<int> done = parse_perf(calling, argc, argv, &options);
    if (done || options.ends == PerfEnds::kOne) return done;
    return parse_perf(calling, argc, argv, &client);
  };
  return run_stoppable(parse, [&](const StopSignals& stop) {
    if (options.ends == PerfEnds::kOne) return run_end(options, std::nullopt, stop);
    run_both_ends(options, client, stop, run_end);
  });
}

}  // namespace

int perf_send_lat(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kSend, PerfMeasure::kLatency}, calling, argc, argv);
}
int perf_send_bw(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kSend, PerfMeasure::kBandwidth}, calling, argc, argv);
}
int perf_write_lat(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kWrite, PerfMeasure::kLatency}, calling, argc, argv);
}
int perf_write_bw(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kWrite, PerfMeasure::kBandwidth}, calling, argc, argv);
}
int perf_read_lat(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kRead, PerfMeasure::kLatency}, calling, argc, argv);
}
int perf_read_bw(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kRead, PerfMeasure::kBandwidth}, calling, argc, argv);
}
int perf_atomic_lat(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kAtomic, PerfMeasure::kLatency}, calling, argc, argv);
}
int perf_atomic_bw(Calling calling, int argc, char** argv) {
  return run_perf({PerfVerb::kAtomic, PerfMeasure::kBandwidth}, calling, argc, argv);
}

}  // namespace verbatim::cli
