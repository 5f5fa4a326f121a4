// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_records.hpp"

#include <algorithm>
#include <cstdio>

#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

std::string rate_text(const PerfOptions& o) {
  constexpr const char* kUnits[] = {" MiB/s", " Gbit/s", " messages/s"};
  char number[32];
  std::snprintf(number, sizeof number, "%g", *o.rate);
  return number + std::string(kUnits[static_cast<unsigned>(o.rate_unit)]);
}

/// What makes two runs of one test comparable stands in its name.
std::string record_name(const PerfOptions& o) {
  std::string name = test_name(o.test);
  name.append(" ").append(connection_name(o.connection));
  if (o.test.verb == PerfVerb::kAtomic) name += o.compare_swap ? " compare-and-swap" : " fetch-add";
  if (o.bidirectional) name += " both ways";
  if (o.shared_receives) name += " SRQ";
  if (o.events) name += " events";
  if (o.multicast) name += " multicast";
  if (o.immediate) name += " with immediate data";
  if (o.validates) name += " validated";
  if (o.on_demand) name += " ODP";
  if (o.huge_pages) name += " huge pages";
  if (o.memory_file) name += " of a file";
  if (o.null_region) name += " null MR";
  if (o.region_per_pair) name += " MR per QP";
  if (o.unlocked) name += " without locks";
  if (o.ends == PerfEnds::kProcess) name += " in one process";
  if (o.classic_post) name += " by ibv_post_send";
  if (o.queue_pairs > 1) name += " " + std::to_string(o.queue_pairs) + " QPs";
  if (o.post_list > 1) name += " in lists of " + std::to_string(o.post_list);
  if (o.receive_list > 1) name += " receives in lists of " + std::to_string(o.receive_list);
  if (o.inline_size) name += " inline to " + std::to_string(*o.inline_size);
  if (o.mtu) name += " MTU " + std::to_string(128 << *o.mtu);
  if (o.reads) name += " outstanding " + std::to_string(*o.reads);
  if (o.latency_gap != 0) name += " gaps of " + std::to_string(o.latency_gap) + " us";
  if (o.counts_calls) name += " counting system calls";
  if (o.rate) name += " limited to " + rate_text(o);
  if (o.test.bandwidth()) name += " depth " + std::to_string(o.tx_depth);
  return name;
}

void count_use(perf::Record* record, const perf::Usage& used, std::uint64_t messages) {
  if (messages == 0) return;
  record->cpu_ns = used.cpu_ns / static_cast<double>(messages);
  record->switches = used.switches / static_cast<double>(messages);
  record->system_calls = used.system_calls / static_cast<double>(messages);
}

}  // namespace

PerfRecords::PerfRecords(const PerfOptions& options)
    : options_{options}, files_{options.jsonl_file, options.csv_file} {}

perf::Record PerfRecords::record(const char* kind, const char* unit, std::uint64_t size) const {
  perf::Record record;
  record.kind = kind;
  record.name = record_name(options_);
  record.unit = unit;
  record.at = size;
  return record;
}

void PerfRecords::latency(std::uint32_t size, const PerfLatencies& found) {
  if (!wanted()) return;
  const double ns = perf::ns_per_tick() / (options_.test.answered() ? 2 : 1);
  perf::Record made = record("latency", "ns", size);
  if (options_.duration != 0) {
    for (std::size_t i = 1; i < found.marks.size(); ++i) {
      const auto& [done, when] = found.marks[i];
      const auto messages = static_cast<double>(done - found.marks[i - 1].done);
      if (messages > 0) {
        made.blocks.add(static_cast<double>(when - found.marks[i - 1].when) * ns / messages);
      }
    }
    made.levels = perf::levels_of(found.single, ns);
    count_use(&made, found.used, found.all_messages);
  } else {
    perf::Histogram single;
    const std::size_t messages = found.stamps.empty() ? 0 : found.stamps.size() - 1;
    const std::size_t length = std::max<std::size_t>(1, messages / PerfBlocks::kBlocks);
    for (std::size_t i = 1; i <= messages; ++i) {
      single.record(found.stamps[i] - found.stamps[i - 1]);
      if (i % length != 0) continue;
      const auto ticks = static_cast<double>(found.stamps[i] - found.stamps[i - length]);
      made.blocks.add(ticks * ns / static_cast<double>(length));
    }
    made.levels = perf::levels_of(single, ns);
    count_use(&made, found.used, messages);
  }
  if (!made.blocks.empty()) records_.push_back(std::move(made));
}

void PerfRecords::bandwidth(std::uint32_t size, const PerfThroughput& found) {
  if (!wanted()) return;
  perf::Record bytes = record("bandwidth", "GB/s", size);
  perf::Record messages = record("rate", "million/s", size);
  // Of SENDs in both directions -D counts both; a record is of one.
  const bool both = options_.bidirectional && options_.delivers() && options_.duration != 0;
  const auto add = [&](double done, double ticks) {
    if (done <= 0 || ticks <= 0) return;
    const double per_ns = done / (ticks * perf::ns_per_tick() * (both ? 2 : 1));
    messages.blocks.add(1e3 * per_ns);
    bytes.blocks.add(static_cast<double>(size) * per_ns);
  };
  for (std::size_t i = 1; i < found.marks.size(); ++i) {
    add(static_cast<double>(found.marks[i].done - found.marks[i - 1].done),
        static_cast<double>(found.marks[i].when - found.marks[i - 1].when));
  }
  if (bytes.blocks.empty()) {
    add(static_cast<double>(found.messages), static_cast<double>(found.ticks));
  }
  if (bytes.blocks.empty()) return;
  const std::uint64_t used_for = options_.duration != 0 ? found.all_messages : found.messages;
  count_use(&bytes, found.used, used_for);
  count_use(&messages, found.used, used_for);
  records_.push_back(std::move(bytes));
  records_.push_back(std::move(messages));
}

void PerfRecords::hold(const PerfRunFloors& floors) {
  for (perf::Record& one : records_) floors.hold(&one);
  const std::vector<perf::Record> beside = floors.records();
  records_.insert(records_.end(), beside.begin(), beside.end());
  floor_spread_ = floors.spread();
}

perf::Noise PerfRecords::noise() const {
  perf::Noise noise = files_.noise();
  noise.floor_spread = floor_spread_;
  return noise;
}

void PerfRecords::told(const PerftestReport& theirs) {
  if (!wanted() || theirs.rate <= 0) return;
  perf::Record messages = record("rate", "million/s", theirs.size);
  messages.blocks.add(theirs.rate);
  records_.push_back(messages);
  perf::Record bytes = record("bandwidth", "GB/s", theirs.size);
  bytes.blocks.add(theirs.rate * static_cast<double>(theirs.size) / 1e3);
  records_.push_back(bytes);
}

void PerfRecords::finish() { files_.write(records_, provider_, 0, floor_spread_); }

}  // namespace verbatim::cli
