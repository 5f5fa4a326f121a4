// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_pattern_report.hpp"

#include <mpi.h>

#include <cstdio>
#include <limits>

#include "perf/cli/perf_ranks.hpp"

namespace verbatim::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr char kRule[] =
    "--------------------------------------------------------------------------------------------";

using Numbers = std::vector<double>;

/// At rank 0: each number of all ranks, by `op`.
Numbers of_all_ranks(const Numbers& own, MPI_Op op) {
  Numbers all(own.size());
  MPI_Reduce(own.data(), all.data(), static_cast<int>(own.size()), MPI_DOUBLE, op, 0,
             MPI_COMM_WORLD);
  return all;
}

}  // namespace

/// What rank 0 knows of all, block by block; bytes and messages in a second.
struct PatternReport::Found {
  perf::Blocks bytes, messages, least, most;
  double cpu_ns, switches;  // of a message
};

PatternReport::PatternReport(const std::string& pattern, const PerfOptions& options, int rank,
                             int ranks)
    : options_(options),
      rank_(rank),
      ranks_(ranks),
      pattern_(pattern),
      prints_(rank == 0 && options.jsonl_file != "-" && options.csv_file != "-") {
  if (rank == 0) files_.emplace(options.jsonl_file, options.csv_file);
}

void PatternReport::set_floors(std::optional<PerfRunFloors> floors) {
  floors_ = std::move(floors);
  if (files_) files_->watch_anew();
}

void PatternReport::heading(const char* device, ibv_mtu mtu) {
  device_ = device;
  if (!prints_) return;
  std::puts(kRule);
  std::printf("                    RDMA_Write BW Test, pattern %s\n", pattern_.c_str());
  std::printf(" Processes       : %d\t\tDevice         : %s\n", ranks_, device);
  std::printf(" TX depth        : %u\n CQ Moderation   : %u\n Mtu             : %d[B]\n",
              options_.tx_depth, options_.cq_moderation, 128 << mtu);
  std::puts(kRule);
  const char* unit = options_.gbits ? "Gb" : "MB";
  std::printf(
      " #bytes     #iterations    BW sum[%s/sec]    BW least[%s/sec]   BW most[%s/sec]   "
      "MsgRate[Mpps]\n",
      unit, unit, unit);
  std::fflush(stdout);
}

void PatternReport::row(std::uint32_t size, const std::vector<PatternFigures>& own) {
  Numbers bytes, messages, seconds, rates, rates_of_senders;
  perf::Usage used;
  for (const PatternFigures& block : own) {
    const bool sends = block.bytes > 0 && block.seconds > 0;
    const double rate = sends ? static_cast<double>(block.bytes) / block.seconds : 0;
    bytes.push_back(static_cast<double>(block.bytes));
    messages.push_back(static_cast<double>(block.messages));
    seconds.push_back(block.seconds);
    rates.push_back(rate);
    rates_of_senders.push_back(sends ? rate : kNever);
    used.cpu_ns += block.used.cpu_ns;
    used.switches += block.used.switches;
  }
  bytes = of_all_ranks(bytes, MPI_SUM);
  messages = of_all_ranks(messages, MPI_SUM);
  seconds = of_all_ranks(seconds, MPI_MAX);
  rates = of_all_ranks(rates, MPI_MAX);
  rates_of_senders = of_all_ranks(rates_of_senders, MPI_MIN);
  const Numbers all_used = of_all_ranks({used.cpu_ns, used.switches}, MPI_SUM);
  if (rank_ != 0) return;
  Found found{{}, {}, perf::Blocks(rates_of_senders), perf::Blocks(rates), 0, 0};
  double all_messages = 0;
  for (std::size_t block = 0; block < seconds.size(); ++block) {
    found.bytes.add(bytes[block] / seconds[block]);
    found.messages.add(messages[block] / seconds[block]);
    all_messages += messages[block];
  }
  found.cpu_ns = all_used[0] / all_messages;
  found.switches = all_used[1] / all_messages;
  const UninterruptedReport whole;
  add_records(size, found);
  if (!prints_) return;
  const double unit = options_.gbits ? 125e6 : 1048576;
  std::printf(" %-7u    %-10llu       %-7.2f            %-7.2f            %-7.2f\t\t   %-7.6f\n",
              size, static_cast<unsigned long long>(options_.iterations),
              found.bytes.median() / unit, found.least.median() / unit, found.most.median() / unit,
              found.messages.median() / 1e6);
  std::fflush(stdout);
}

void PatternReport::add_records(std::uint32_t size, const Found& found) {
  const auto add = [&](const char* kind, const char* what, const perf::Blocks& each,
                       const char* unit, double one_of_unit) -> perf::Record& {
    perf::Record& made = records_.emplace_back();
    made.kind = kind;
    made.name = "write pattern " + pattern_ + " of " + std::to_string(ranks_) + " ranks depth " +
                std::to_string(options_.tx_depth) + what;
    made.unit = unit;
    made.at = size;
    for (const double value : each.values()) made.blocks.add(value / one_of_unit);
    return made;
  };
  const auto count_use = [&](perf::Record& record) {
    record.cpu_ns = found.cpu_ns;
    record.switches = found.switches;
  };
  count_use(add("bandwidth", "", found.bytes, "GB/s", 1e9));
  count_use(add("rate", "", found.messages, "million/s", 1e6));
  slowest_.push_back(add("bandwidth", ", slowest rank", found.least, "GB/s", 1e9));
  add("bandwidth", ", fastest rank", found.most, "GB/s", 1e9);
  if (floors_)
    for (perf::Record& one : records_) floors_->hold(&one);
  files_->append(records_, device_, 0, floor_spread());
  records_.clear();
}

double PatternReport::floor_spread() const {
  return floors_ ? floors_->spread() : std::numeric_limits<double>::quiet_NaN();
}

void PatternReport::finish() {
  if (prints_) std::puts(kRule);
  if (floors_ && prints_) floors_->print(slowest_, files_->noise());
  if (!files_) return;
  if (floors_) {
    records_ = floors_->records();
    files_->append(records_, device_, 0, floor_spread());
  }
  files_->close();
}

}  // namespace verbatim::cli
