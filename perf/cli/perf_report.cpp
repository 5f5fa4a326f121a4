// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_report.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <string>
#include <utility>

#include "perf/cli/failure.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr char kRule[] =
    "---------------------------------------------------------------------------------------";

const char* link_name(const Device& device, const PerfOptions& options) {
  switch (perf_link_layer(device, options)) {
    case IBV_LINK_LAYER_ETHERNET:
      return "Ethernet";
    case IBV_LINK_LAYER_UNSPECIFIED:
    case IBV_LINK_LAYER_INFINIBAND:
      return "IB";
    default:
      return "Unknown";
  }
}

std::string title(const PerfOptions& options) {
  constexpr const char* kVerbs[] = {"Send ", "RDMA_Write ", "RDMA_Read ", "Atomic "};
  std::string text = kVerbs[static_cast<unsigned>(options.test.verb)];
  if (options.test.verb == PerfVerb::kAtomic) {
    text += options.compare_swap ? "CMP_AND_SWAP " : "FETCH_AND_ADD ";
  }
  if (options.bidirectional) text += "Bidirectional ";
  if (options.post_list > 1) text += "Post List ";
  if (options.multicast) text += "Multicast ";
  return text + (options.test.latency() ? "Latency Test" : "BW Test");
}

/// Of what one message's latency is a part: there and back is two.
double messages_of_a_round(PerfTest test) { return test.answered() ? 2 : 1; }

}  // namespace

PerfPrinter::PerfPrinter(const PerfOptions& options, const ProcessorUse& use)
    : options_{options}, use_{use}, records_{options} {
  if (!options.json_file) return;
  file_.reset(std::fopen(options.json_file->c_str(), "we"));
  if (!file_) {
    fail("Couldn't write '%s': %s (--out_json_file)", options.json_file->c_str(),
         std::strerror(errno));
  }
}

void PerfPrinter::line() const {
  if (full()) std::puts(kRule);
}

void PerfPrinter::waiting() const {
  if (!full()) return;
  std::printf(
      "\n************************************\n"
      "* Waiting for client to connect... *\n"
      "************************************\n");
}

void PerfPrinter::heading(const Device& device, const PerfQueues& queues, const PerfTerms& terms) {
  const PerfOptions& o = options_;
  const int gid_index = perf_gid_index(device, o);
  const bool iwarp = device.context->device->transport_type == IBV_TRANSPORT_IWARP;
  const bool srq = o.shared_receives || o.xrc();
  records_.set_device(device.name());
  about_["test"] = title(o);
  about_["Device"] = device.name();
  about_["Number_of_qps"] = o.all_queue_pairs();
  about_["Transport_type"] = iwarp ? "IW" : "IB";
  about_["Connection_type"] = connection_name(o.connection);
  about_["Using_SRQ"] = srq;
  about_["ibv_wr_API"] = queues.extended();
  about_["TX_depth"] = o.tx_depth;
  if (o.test.verb == PerfVerb::kSend) about_["RX_depth"] = o.rx_depth;
  if (o.test.bandwidth()) about_["CQ_Moderation"] = o.cq_moderation;
  about_["MTU"] = 128 << terms.mtu;
  about_["Link_type"] = link_name(device, o);
  about_["Perftest_exchange"] = kPerftestVersion;
  if (!full()) return;
  line();
  std::printf("                    %s\n", title(o).c_str());
  if (o.events) std::printf(" Test with events. Using %s_comp%d\n", device.name(), o.vector);
  if (o.multicast) std::puts(" MultiCast runs on UD!");
  std::printf(" Dual-port       : OFF\t\tDevice         : %s\n", device.name());
  std::printf(" Number of qps   : %u\t\tTransport type : %s\n", o.all_queue_pairs(),
              iwarp ? "IW" : "IB");
  std::printf(" Connection type : %s\t\tUsing SRQ      : %s\n", connection_name(o.connection),
              srq ? "ON" : "OFF");
  std::printf(" PCIe relax order: OFF\n");
  std::printf(" ibv_wr* API     : %s\n", queues.extended() ? "ON" : "OFF");
  if (o.client() || o.bidirectional) std::printf(" TX depth        : %u\n", o.tx_depth);
  if (o.post_list > 1) std::printf(" Post List       : %u\n", o.post_list);
  if (o.test.verb == PerfVerb::kSend && (!o.client() || o.bidirectional)) {
    std::printf(" RX depth        : %u\n", o.rx_depth);
  }
  if (o.test.bandwidth()) std::printf(" CQ Moderation   : %u\n", o.cq_moderation);
  std::printf(" Mtu             : %d[B]\n", 128 << terms.mtu);
  std::printf(" Link type       : %s\n", link_name(device, o));
  if (gid_index >= 0) std::printf(" GID index       : %d\n", gid_index);
  if (o.test.fetches())
    std::printf(" Outstand reads  : %u\n", queues.reads());
  else
    std::printf(" Max inline data : %u[B]\n", queues.inline_size());
  if (o.ends != PerfEnds::kOne) {
    std::printf(" Both ends       : %s%s\n",
                o.ends == PerfEnds::kHost ? "two processes" : "two threads of one process",
                o.cores.size() == 1 ? ", each bound to a core" : "");
  }
  std::printf(" rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n");
  line();
}

void PerfPrinter::address(const char* whose, const PerftestAddress& address, bool with_gid) const {
  if (!full()) return;
  std::printf(" %s address: LID %#04x QPN %#06x PSN %#06x", whose, address.qp.lid, address.qp.qpn,
              address.qp.psn);
  // perftest prints of atomics what it prints of messages.
  if (options_.test.verb == PerfVerb::kRead) std::printf(" OUT %#04x", address.reads);
  if (options_.test.verb == PerfVerb::kRead || options_.test.verb == PerfVerb::kWrite) {
    std::printf(" RKey %#08x VAddr %#016" PRIx64, address.rkey, address.memory);
  }
  if (options_.xrc()) std::printf(" SRQn %#08x", address.srqn);
  std::printf("\n");
  if (!with_gid) return;
  const std::uint8_t* raw = address.qp.gid.raw;
  std::printf(" GID: ");
  for (int byte = 0; byte < 16; ++byte) std::printf("%02d%c", raw[byte], byte == 15 ? '\n' : ':');
}

void PerfPrinter::bandwidth_columns() const {
  const char* unit = options_.gbits ? "Gb" : "MB";
  std::printf(" #bytes     #iterations    BW peak[%s/sec]    BW average[%s/sec]   MsgRate[Mpps]",
              unit, unit);
  end_columns();
}

void PerfPrinter::columns() const {
  if (!full()) return;
  line();
  if (options_.test.bandwidth()) return bandwidth_columns();
  const char* unit = options_.cycles ? "cycles" : "usec";
  if (options_.duration != 0) {
    std::printf(" #bytes        #iterations       t_avg[%s]    tps average", unit);
    return end_columns();
  }
  std::printf(
      " #bytes #iterations    t_min[%s]    t_max[%s]  t_typical[%s]    t_avg[%s]    "
      "t_stdev[%s]   99%% percentile[%s]   99.9%% percentile[%s] \n",
      unit, unit, unit, unit, unit, unit, unit);
}

void PerfPrinter::samples(const std::vector<double>& all, const char* unit) const {
  std::printf("#, %s\n", unit);
  std::size_t number = 0;
  for (const double sample : all) std::printf("%zu, %g\n", ++number, sample);
}

void PerfPrinter::latency(std::uint32_t size, PerfLatencies found) {
  if (found.stopped && found.stamps.size() < 2 && found.messages == 0) return;
  records_.latency(size, found);
  const double factor =
      (options_.cycles ? 1 : perf::ns_per_tick() / 1e3) / messages_of_a_round(options_.test);
  if (options_.duration != 0) return latency_of_duration(size, found, factor);
  std::vector<double> all;
  all.reserve(found.stamps.size());
  for (std::size_t number = 1; number < found.stamps.size(); ++number) {
    all.push_back(static_cast<double>(found.stamps[number] - found.stamps[number - 1]) * factor);
  }
  const char* unit = options_.cycles ? "cycles" : "usec";
  const bool prints = !options_.quiet;
  if (options_.unsorted && prints) samples(all, unit);
  std::sort(all.begin(), all.end());
  if (options_.histogram && prints) samples(all, unit);
  if (options_.unsorted || options_.histogram) columns();
  // All that were asked for, but for a test that was stopped.
  const std::uint64_t messages = found.stopped ? all.size() : options_.iterations;
  const LatencyFigures figures = latency_figures(all);
  add_result({{"MsgSize", size},
              {"n_iterations", messages},
              {"t_min", figures.least},
              {"t_max", figures.most},
              {"t_typical", figures.typical},
              {"t_avg", figures.average},
              {"t_stdev", figures.deviation},
              {"percentile_99", figures.percentile_99},
              {"percentile_99.9", figures.percentile_99_9},
              {"unit", unit}});
  if (!prints) return;
  if (!full()) {
    std::printf("%f\n", figures.average);
    return;
  }
  std::printf(" %-7u %" PRIu64
              "          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f"
              "\t\t%-7.2f \t\t%-7.2f\n",
              size, messages, figures.least, figures.most, figures.typical, figures.average,
              figures.deviation, figures.percentile_99, figures.percentile_99_9);
}

void PerfPrinter::latency_of_duration(std::uint32_t size, const PerfLatencies& found,
                                      double factor) {
  if (found.messages == 0) fail("not one message came in %u s", options_.duration);
  const auto ticks = static_cast<double>(found.ticks);
  const auto messages = static_cast<double>(found.messages);
  const double average = ticks * factor / messages;
  const double per_second = messages / (ticks * perf::ns_per_tick() / 1e9);
  perf::Json result = {{"MsgSize", size},
                       {"n_iterations", found.messages},
                       {"t_avg", average},
                       {"tps_average", per_second},
                       {"unit", options_.cycles ? "cycles" : "usec"}};
  add_result(std::move(result));
  if (options_.quiet) return;
  if (!full()) {
    std::printf("%f\n", average);
    return;
  }
  std::printf(" %-7u       %" PRIu64 "            %-7.2f        %-7.2f", size, found.messages,
              average, per_second);
  end_row();
}

void PerfPrinter::add_result(perf::Json result) {
  if (options_.processor_use) result["CPU_util"] = use_.percent();
  results_.push_back(std::move(result));
  has_results_ = true;
}

void PerfPrinter::end_row() const {
  if (options_.processor_use)
    std::printf("\t    %-3.2f\n", use_.percent());
  else
    std::putchar('\n');
}

void PerfPrinter::bandwidth_row(const PerftestReport& report) const {
  if (options_.quiet) return;
  if (options_.output == PerfOutput::kBandwidth) {
    std::printf("%f\n", report.average);
  } else if (options_.output == PerfOutput::kMessageRate) {
    std::printf("%f\n", report.rate);
  } else if (options_.gbits && report.average < 0.1) {
    std::printf(" %-7" PRIu64 "    %" PRIu64
                "           %-7.6f            %-7.6f            %-7.6f",
                report.size, report.iterations, report.peak, report.average, report.rate);
    end_row();
  } else {
    std::printf(" %-7" PRIu64 "    %-10" PRIu64 "       %-7.2f            %-7.2f\t\t   %-7.6f",
                report.size, report.iterations, report.peak, report.average, report.rate);
    end_row();
  }
}

void PerfPrinter::bandwidth(const PerftestReport& ours, const PerftestReport* theirs) {
  PerftestReport sum = ours;
  if (theirs != nullptr) {
    sum.peak += theirs->peak;
    sum.average += theirs->average;
    sum.rate += theirs->rate;
  }
  perf::Json result = {{"MsgSize", sum.size}, {"n_iterations", sum.iterations},
                       {"BW_peak", sum.peak}, {"BW_average", sum.average},
                       {"MsgRate", sum.rate}, {"unit", options_.gbits ? "Gb/sec" : "MB/sec"}};
  add_result(std::move(result));
  bandwidth_row(sum);
}

void PerfPrinter::both(const PerftestReport& ours, const PerftestReport& theirs) const {
  if (!full()) return;
  for (const auto& [whose, report] : {std::pair("Local", &ours), std::pair("Remote", &theirs)}) {
    line();
    std::printf("\n %s results: \n", whose);
    line();
    bandwidth_columns();
    bandwidth_row(*report);
  }
}

void PerfPrinter::floors(const PerfRunFloors& floors) {
  records_.hold(floors);
  if (file_) about_["floors"] = floors.json(records_.all());
  if (!full()) return;
  floors.print(records_.all(), records_.noise());
}

void PerfPrinter::finish() {
  records_.finish();
  if (!file_) return;
  about_["results"] = std::move(results_);
  const std::string text = about_.text() + "\n";
  const bool written = std::fputs(text.c_str(), file_.get()) >= 0;
  if (std::fclose(file_.release()) != 0 || !written) {
    fail("Couldn't write all of '%s': %s (--out_json_file)", options_.json_file->c_str(),
         std::strerror(errno));
  }
}

PerftestReport report_of(const PerfOptions& options, std::uint32_t size,
                         const PerfThroughput& found) {
  if (found.messages == 0 && !options.endless) {
    fail("not one message came in %u s", options.duration);
  }
  const double unit = options.gbits ? 125e6 : 1048576;
  const double second = 1e9 / perf::ns_per_tick();
  const auto per_second = [&](double messages, double ticks) {
    return ticks > 0 ? messages * second / ticks : 0;
  };
  PerftestReport report;
  report.size = size;
  report.iterations = found.messages;
  const double rate =
      per_second(static_cast<double>(found.messages), static_cast<double>(found.ticks));
  report.average = rate * size / unit;
  report.rate = rate / 1e6;
  report.peak = per_second(1, found.peak_ticks) * size / unit;
  return report;
}

void check_limits(const PerfOptions& options, double average, double rate) {
  if (options.least_bandwidth && average < *options.least_bandwidth) {
    fail("BW result is below bw limit: %.2f of %.2f (-w)", average, *options.least_bandwidth);
  }
  if (options.least_rate && rate < *options.least_rate) {
    fail("Msg rate is below msg_rate limit: %.6f of %.6f (-y)", rate, *options.least_rate);
  }
}

}  // namespace verbatim::cli
