// SPDX-License-Identifier: BSD-2-Clause
// What a test of `verbatim perf` measures: an operation, how fast one is or how many there are, and
// the kind of queue pair. Any thread; pure.
#pragma once

#include <string>

namespace verbatim::cli {

enum class PerfVerb : unsigned char { kSend, kWrite, kRead, kAtomic };
enum class PerfMeasure : unsigned char { kLatency, kBandwidth };
enum class PerfConnection : unsigned char { kRc, kUc, kUd, kXrc };

struct PerfTest {
  PerfVerb verb;
  PerfMeasure measure;

  bool latency() const { return measure == PerfMeasure::kLatency; }
  bool bandwidth() const { return measure == PerfMeasure::kBandwidth; }
  /// Both ends post: a message and its answer. A READ or an atomic comes back by itself.
  bool answered() const {
    return latency() && (verb == PerfVerb::kSend || verb == PerfVerb::kWrite);
  }
  /// What comes back is the peer's memory, and no data goes there.
  bool fetches() const { return verb == PerfVerb::kRead || verb == PerfVerb::kAtomic; }
};

inline const char* connection_name(PerfConnection connection) {
  constexpr const char* kNames[] = {"RC", "UC", "UD", "XRC"};
  return kNames[static_cast<unsigned>(connection)];
}

/// "send-lat", as the subcommand is called.
inline std::string test_name(PerfTest test) {
  constexpr const char* kNames[] = {"send", "write", "read", "atomic"};
  return std::string(kNames[static_cast<unsigned>(test.verb)]) + (test.latency() ? "-lat" : "-bw");
}

}  // namespace verbatim::cli
