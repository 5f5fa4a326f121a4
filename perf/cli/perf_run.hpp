// SPDX-License-Identifier: BSD-2-Clause
// The measuring loops of `verbatim perf`, for one size each.
//
// Main thread. Both ends call the one of their test at the same time, but for the servers of
// bandwidth by WRITE, of READ and of atomics, which only wait. Failures name the status of what
// failed. Nothing here allocates while it measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "perf/cli/perf_blocks.hpp"
#include "perf/cli/perf_figures.hpp"
#include "perf/cli/perf_options.hpp"
#include "perf/cli/perf_queues.hpp"
#include "perf/cli/perf_waiting.hpp"
#include "perf/support/histogram.hpp"
#include "perf/support/noise.hpp"

namespace verbatim::cli {

struct PerfRun {
  const PerfOptions& options;
  PerfQueues& queues;
  const PerfExchange& exchange;
  const StopSignals& stop;
};

/// Room for so many, whose pages are there before anything is measured.
template <class Element>
void prepare_room(std::vector<Element>* room, std::size_t elements) {
  room->assign(elements, Element{});
  room->clear();
}

struct PerfLatencies {
  std::vector<std::uint64_t> stamps;       // before each message; of -D none
  std::uint64_t messages = 0;              // of -D: within the margins
  std::uint64_t all_messages = 0;          // of -D: also before and behind them
  std::uint64_t ticks = 0;                 // that `messages` took
  perf::Histogram single = {};             // of -D: ticks between one message and the next
  std::vector<PerfCompletion> marks = {};  // of -D: where its blocks begin and end
  perf::Usage used = {};
  bool stopped = false;  // by a signal: what was measured till then
};

PerfLatencies measure_latency(const PerfRun& run, std::uint32_t size);

struct PerfThroughput {
  std::uint64_t messages = 0;              // of -D: within the margins
  std::uint64_t all_messages = 0;          // of -D: also before and behind them
  std::uint64_t ticks = 0;                 // that `messages` took
  double peak_ticks = 0;                   // of one message at the best moment; 0: not asked for
  std::vector<PerfCompletion> marks = {};  // where its blocks begin and end
  perf::Usage used = {};
  bool stopped = false;  // by a signal: what was measured till then
};

/// Of an endless test, whose only end is Stopped or PeerHasLeft, `tell` hears of each interval.
PerfThroughput measure_bandwidth(const PerfRun& run, std::uint32_t size,
                                 const std::function<void(const PerfThroughput&)>& tell);
/// Messages that nothing counts, of a test that asks nothing of the peer.
void warm_up(const PerfRun& run);

}  // namespace verbatim::cli
