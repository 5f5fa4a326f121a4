// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "perf/figures/plan.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/table.hpp"

namespace verbatim::perf {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::string microseconds(double ns) { return fixed_text(ns / 1000, ns < 100'000 ? 3 : 1); }

double floor_median(const Group& group, const Cell& cell) {
  const Cell* floor = group.floor_of(cell);
  return floor == nullptr ? kNothing : floor->blocks.median();
}

void print_handover(std::FILE* out, const Group& group, const char* family, const char* title,
                    const char* mark) {
  const Cell* best = group.best_variant(family);
  if (best == nullptr) return;
  std::fprintf(out, "\n%s (one way, us)\n", title);
  Table table({"<polling", "median", "min", "p50", "p99", "<"});
  for (const Cell& cell : group.cells) {
    if (cell.variant_of != family || cell.blocks.empty()) continue;
    table.add({name_of(cell.request.pace), microseconds(cell.blocks.median()),
               microseconds(cell.blocks.min()), microseconds(cell.percentile_ns(0.5)),
               microseconds(cell.percentile_ns(0.99)), &cell == best ? mark : ""});
  }
  table.print(out);
}

const char* polling_of(const Cell& cell) {
  const Request& request = cell.request;
  return request.waiting == Waiting::kSpin ? name_of(request.pace) : name_of(request.waiting);
}

/// What each way to wait costs: the same messages, in turn.
void print_waiting(std::FILE* out, const std::deque<Group>& groups) {
  Table table({"<waiting", "median us", "p99 us", "CPU us", "context switches", "system calls"});
  bool has_any = false;
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      const Request& request = cell.request;
      const bool belongs = cell.section == Section::kLatency && request.size == 8 &&
                           request.operation == Operation::kSend &&
                           request.memory == Memory::kShared && request.service <= Service::kEvents;
      if (!belongs || !group.is_shown(cell) || cell.operations == 0) continue;
      has_any = true;
      table.add({name_of(request.waiting), microseconds(cell.blocks.median()),
                 microseconds(cell.percentile_ns(0.99)),
                 microseconds(cell.cpu_ns / cell.operations),
                 fixed_text(cell.switches / cell.operations, 3), fixed_text(cell.system_calls, 3)});
    }
  }
  if (!has_any) return;
  std::fprintf(out,
               "\nWays to wait: a send of 8 bytes one way, and what it costs both processes; who "
               "is adaptive polls some 20 us and then sleeps\n");
  table.print(out);
}

void print_latency(std::FILE* out, const std::deque<Group>& groups) {
  Table table({"<operation", "<service", "<memory", "size", "<polling", "median", "min", "p50",
               "p99", "floor", "ratio", "spread"});
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (cell.section != Section::kLatency || !group.is_shown(cell)) continue;
      const Blocks ratio = group.ratio_of(cell);
      table.add({name_of(cell.request.operation), name_of(cell.request.service),
                 name_of(cell.request.memory), size_text(cell.request.size), polling_of(cell),
                 microseconds(cell.blocks.median()), microseconds(cell.blocks.min()),
                 microseconds(cell.percentile_ns(0.5)), microseconds(cell.percentile_ns(0.99)),
                 microseconds(floor_median(group, cell)), fixed_text(ratio.median(), 2),
                 percent_text(ratio.spread())});
    }
  }
  std::fprintf(out,
               "\nLatency (us): send and write one way, half a round trip; read and atomics until "
               "completed\n");
  table.print(out);
}

void print_rate(std::FILE* out, const std::deque<Group>& groups) {
  Table table({"<operation", "<service", "<memory", "size", "<posted", "<by", "median", "max",
               "spread", "of classic"});
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (cell.section != Section::kRate || cell.blocks.empty()) continue;
      table.add({name_of(cell.request.operation), name_of(cell.request.service),
                 name_of(cell.request.memory), size_text(cell.request.size),
                 cell.request.batch == 1 ? "singly" : "in lists of 32", name_of(cell.request.calls),
                 fixed_text(cell.blocks.median(), 2), fixed_text(cell.blocks.max(), 2),
                 percent_text(cell.blocks.spread()),
                 cell.floor.empty() ? "" : fixed_text(group.ratio_of(cell).median(), 2)});
    }
  }
  std::fprintf(out, "\nMessage rate (million/s), one pair\n");
  table.print(out);
  for (const Group& group : groups) {
    const Cell* call = group.find(kEmptyCall);
    if (call == nullptr || call->blocks.empty()) continue;
    std::fprintf(out,
                 "A verb that does nothing takes %s ns. ibv_wr_* call two for each request of a "
                 "list, ibv_start_poll one for each completion.\n",
                 fixed_text(call->blocks.median(), 2).c_str());
  }
}

void print_bandwidth(std::FILE* out, const std::deque<Group>& groups) {
  Table table(
      {"<operation", "<memory", "size", "stream", "fresh", "max", "floor", "ratio", "spread"});
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (cell.section != Section::kBandwidth || cell.request.kind != Kind::kTrain) continue;
      std::string stream_name = cell.name;
      stream_name.replace(0, 5, "stream");  // "fresh ..."
      const Cell* stream = group.find(stream_name);
      const Blocks ratio = group.ratio_of(cell);
      table.add({name_of(cell.request.operation), name_of(cell.request.memory),
                 size_text(cell.request.size),
                 fixed_text(stream == nullptr ? kNothing : stream->blocks.median(), 2),
                 fixed_text(cell.blocks.median(), 2), fixed_text(cell.blocks.max(), 2),
                 fixed_text(floor_median(group, cell), 2), fixed_text(ratio.median(), 2),
                 percent_text(ratio.spread())});
    }
  }
  std::fprintf(
      out,
      "\nBandwidth (GB/s): stream = one buffer over and over; fresh = data just written by "
      "its producer, against the floor under equal conditions\n");
  table.print(out);
}

void print_mpi(std::FILE* out, const std::deque<Group>& groups) {
  Table table({"<what", "<memory", "size", "median", "best", "<unit", "verbs", "ratio", "spread"});
  bool is_missing = false;
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (cell.section != Section::kMpi) continue;
      is_missing |= cell.unavailable;
      if (cell.blocks.empty()) continue;
      const bool is_rate = cell.unit == Unit::kMillionPerSecond;
      const auto text = [&](double value) {
        return is_rate ? fixed_text(value, 2) : microseconds(value);
      };
      const Blocks ratio = group.ratio_of(cell);
      table.add({is_rate ? "rate, 64 at a time" : "message",
                 is_rate                                  ? ""
                 : cell.request.memory == Memory::kShared ? "MPI_Alloc_mem"
                                                          : "malloc",
                 size_text(cell.request.size), text(cell.blocks.median()),
                 text(is_rate ? cell.blocks.max() : cell.blocks.min()),
                 is_rate ? "million/s" : "us", text(floor_median(group, cell)),
                 fixed_text(ratio.median(), 2), percent_text(ratio.spread())});
    }
  }
  std::fprintf(out,
               "\nMPI: MPI_Send and MPI_Recv one way, half a round trip, beside SENDs of as many "
               "bytes from such memory\n");
  table.print(out);
  if (is_missing)
    std::fprintf(out,
                 "What is missing was not measured: its program or 'verbatim' is not built.\n");
}

void print_copies(std::FILE* out, const std::deque<Group>& groups) {
  Table latency({"size", "copy mapped", "copy CMA", "read mapped", "read CMA"});
  Table bandwidth({"size", "memcpy one core", "to mapped", "from mapped", "CMA write", "CMA read"});
  const auto median = [](const Group& group, const char* name) {
    const Cell* cell = group.find(name);
    return cell == nullptr || cell->unavailable ? kNothing : cell->blocks.median();
  };
  for (const Group& group : groups) {
    if (group.find("copy ping-pong cma") != nullptr) {
      latency.add({size_text(group.size), microseconds(median(group, "copy ping-pong mapped")),
                   microseconds(median(group, "copy ping-pong cma")),
                   microseconds(median(group, "single read mapped")),
                   microseconds(median(group, "single read cma"))});
    } else if (group.find("memcpy one core") != nullptr) {
      bandwidth.add({size_text(group.size), fixed_text(median(group, "memcpy one core"), 2),
                     fixed_text(median(group, "train mapped write"), 2),
                     fixed_text(median(group, "train mapped read"), 2),
                     fixed_text(median(group, "train cma write"), 2),
                     fixed_text(median(group, "train cma read"), 2)});
    }
  }
  std::fprintf(out,
               "\nFloors, time (us): a message of so many bytes copied into the peer's memory, one "
               "way, and one copy from it\n");
  latency.print(out);
  std::fprintf(out, "\nFloors, bandwidth (GB/s): source just written by the peer\n");
  bandwidth.print(out);
}

bool has_section(const std::deque<Group>& groups, Section section) {
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (cell.section == section) return true;
    }
  }
  return false;
}

}  // namespace

void print_head(std::FILE* out, const RunFacts& facts) {
  std::fprintf(out, "%s, CPU %d and CPU %d (%s)\n", facts.processor.c_str(), facts.cores.near,
               facts.cores.far, facts.cores.note.c_str());
  if (facts.interrupted) {
    std::fprintf(out, "interrupted after %.0f s: what was measured till then\n", facts.seconds);
  } else {
    std::fprintf(out, "at least %zu rounds, blocks of %.1f ms, tests and floors in turn, %.0f s\n",
                 facts.rounds, facts.block_ms, facts.seconds);
  }
  if (facts.retaken != 0) {
    std::fprintf(out,
                 "%d blocks were taken again since other programs had one of the cores; %d stayed "
                 "disturbed\n",
                 facts.retaken, facts.disturbed);
  }
  if (!facts.unreliable.empty()) {
    std::fprintf(out, "unreliable: %s\n", facts.unreliable.c_str());
  }
}

void print_floor_table(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups) {
  print_head(out, facts);
  Table table(
      {"<floor", "<what", "size", "median", "min", "max", "<unit", "spread", "p50", "p99", "<"});
  std::vector<std::pair<int, std::vector<std::string>>> rows;
  const auto time = [](const Cell& cell, double value) {
    return cell.unit == Unit::kNanoseconds ? fixed_text(value, 1) : fixed_text(value, 2);
  };
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      if (!cell.unavailable && !group.is_shown(cell)) continue;
      const int number = std::atoi(cell.number.c_str() + 1);
      const std::string size = cell.request.size == 0 ? "" : size_text(cell.request.size);
      if (cell.unavailable) {
        rows.push_back({number,
                        {cell.number, cell.name, cell.number == "F12" ? "" : size, "", "", "", "",
                         "", "", "", "not measurable here: " + cell.why}});
        continue;
      }
      rows.push_back(
          {number,
           {cell.number, curve_of(cell), size, time(cell, cell.blocks.median()),
            time(cell, cell.blocks.min()), time(cell, cell.blocks.max()), name_of(cell.unit),
            percent_text(cell.blocks.spread()), time(cell, cell.percentile_ns(0.5)),
            time(cell, cell.percentile_ns(0.99)), ""}});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::fprintf(out, "\n");
  for (auto& [number, row] : rows) table.add(std::move(row));
  table.print(out);
}

void print_tables(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups) {
  print_head(out, facts);
  for (const Group& group : groups) {
    print_handover(out, group, "f1", "F1, one cache line from core to core", "<- F1");
    print_handover(out, group, "f1 read-only", "The same where who polls the line may not write it",
                   "<-");
  }
  print_copies(out, groups);
  if (has_section(groups, Section::kLatency)) print_latency(out, groups);
  print_waiting(out, groups);
  if (has_section(groups, Section::kRate)) print_rate(out, groups);
  if (has_section(groups, Section::kBandwidth)) print_bandwidth(out, groups);
  if (has_section(groups, Section::kMpi)) print_mpi(out, groups);
}

}  // namespace verbatim::perf
