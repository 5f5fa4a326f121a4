// SPDX-License-Identifier: BSD-2-Clause
// The options of perftest 6.06, and those that later versions (to 6.29) have, each with the tests that
// have it; those that this program does not have, with the reason; and some of its own. Any thread;
// constant.
#pragma once

#include <span>

#include "perf/cli/perf_test.hpp"

namespace verbatim::cli {

/// Options without a letter.
enum PerfLongOption : int {
  kUseSrq = 1000,
  kReportGbits,
  kReportBoth,
  kOldPostSend,
  kOutJson,
  kOutJsonFile,
  kJsonLines,
  kCsv,
  kOutput,
  kRetryCount,
  kTclass,
  kPkeyIndex,
  kLatencyGap,
  kOdp,
  kWarmUp,
  kReceiveList,
  kReversed,
  kEndless,
  kSendImmediate,
  kWriteImmediate,
  kBurstSize,
  kRateLimit,
  kRateUnits,
  kRateLimitType,
  kHugePages,
  kRegionPerPair,
  kNullRegion,
  kNoLock,
  kMemoryFile,
  kMemoryOffset,
  kPayloadFile,
  kDataValidation,
  kPinCores,
  kNumaNode,
  kDisableNuma,
  kProcessorUse,
  kSystemCalls,
  kWaitDestroy,
  kDestinationLid,
  kNoVersions,
  kForceLink,
  kIpv6,
  kSourceIp,
  kNoRelaxed,
  kInlineReceive,
  kBothEnds,
  kSingleProcess,
  kFloors,
  kNoFloors,
  kRefused,
};

struct PerfOption {
  int id;             // its letter, or a PerfLongOption
  const char* name;   // behind "--"
  unsigned tests;     // see perf_option_bit()
  const char* value;  // what is behind it, for the usage text; null: nothing
  const char* help;   // or, where it is refused, what is not there
  bool refused = false;
};

/// Which tests have an option: a bit for each.
constexpr unsigned perf_option_bit(PerfTest test) {
  return 1u << (2 * static_cast<unsigned>(test.verb) + static_cast<unsigned>(test.measure));
}

/// In the order of the usage text.
std::span<const PerfOption> perf_options();

}  // namespace verbatim::cli
