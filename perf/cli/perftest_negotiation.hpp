// SPDX-License-Identifier: BSD-2-Clause
// What perftest programs of version 6.28 and later tell each other of their options, once versions,
// sizes and MTUs are exchanged, when both are of such a version: those that differ end the test.
//
//   0 test method   4 connection   8 verb   12 test   16 atomic type   20 by time   24 report format
//   32 size (8 bytes)   40 iterations (8)   48 encryption   52 queue pairs   56 seconds   60 rdma_cm
//   64 write with immediate   68 no enhanced reorder   72 signatures   76 validation (from 6.29 on)
//   80 struct ibv_device_attr as its host has it (232)   312 what an mlx5 device can (8)
//
// Big-endian, 4 bytes each where nothing is said. The last field is there when the program was built
// with that vendor's library, which nothing before tells: an end that speaks first cannot know how
// much the other reads. So a client of ours says that it is of 6.06, and is not asked; a server
// knows what has come, and answers as much. Any thread; pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "perf/cli/perf_options.hpp"

namespace verbatim::cli {

/// The earliest version that negotiates, and what a server of ours says to such a client.
inline constexpr double kNegotiatingPerftest = 6.28;
inline constexpr const char* kNegotiatedVersion = "6.29";
inline constexpr double kValidatingPerftest = 6.29;

inline constexpr std::size_t kNegotiationSize = 312;
inline constexpr std::size_t kNegotiationOfOneVendor = 8;

struct PerftestNegotiation {
  std::uint32_t method = 0;  // 0: one size, 1: all, 2: without an end
  std::uint32_t connection = 0;
  std::uint32_t verb = 0;
  std::uint32_t bandwidth = 0;
  std::uint32_t atomic = 0;  // 1: fetch and add
  std::uint32_t timed = 0;
  std::uint32_t report = 1;  // 0: Gbit/s, 1: MiB/s
  std::uint64_t size = 0;
  std::uint64_t iterations = 0;
  std::uint32_t encryption = 0;
  std::uint32_t queue_pairs = 1;
  std::uint32_t seconds = 0;
  std::uint32_t rdma_cm = 0;
  std::uint32_t write_immediate = 0;
  std::uint32_t no_reorder = 0;
  std::uint32_t signatures = 0;
  std::uint32_t validation = 0;
  ibv_device_attr device = {};
};

/// What an end with these options says.
PerftestNegotiation negotiation_of(const PerfOptions& options, const ibv_device_attr& device);
/// kNegotiationSize bytes.
std::string encode(const PerftestNegotiation& told);
PerftestNegotiation decode_negotiation(std::span<const char, kNegotiationSize> bytes);

/// Throws Failure, which names both values and the option, when perftest of `version` would find
/// that the two do not fit.
void check_negotiation(const PerftestNegotiation& ours, const PerftestNegotiation& theirs,
                       double version);

}  // namespace verbatim::cli
