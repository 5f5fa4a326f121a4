// SPDX-License-Identifier: BSD-2-Clause
// What the two ends of a perftest program write to each other over TCP, as bytes: versions 5.70 to
// 6.27, and later ones, which speak so to an end of an earlier version.
//
//   version    16 bytes, text and NULs
//   number     4 bytes, big-endian: the size that buffers are walked in, then that of a cache line
//   MTU        its enumerator as a digit, and a NUL
//   address    59 bytes: "%04x:%04x:%06x:%06x:%08x:%016x:%08x" lid, reads outstanding, qpn, psn,
//              rkey, address, srqn, NUL. With a GID 108: its bytes, "%02x:" each, before the srqn,
//              and a ':' behind that
//   report     8 bytes each, big-endian: size, iterations, and as doubles peak, average, rate
//
// Behind its version an end of ours says what it runs, where the others have NULs: what does not
// fit can then be told before anything is made. Any thread; pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "perf/cli/perf_test.hpp"
#include "perf/cli/qp_address.hpp"

namespace verbatim::cli {

/// The version that we speak: Debian 12's.
inline constexpr const char* kPerftestVersion = "6.06";
/// The earliest whose exchange is this one.
inline constexpr double kEarliestPerftest = 5.70;

struct PerftestAddress {
  QpAddress qp;
  std::uint32_t reads = 0;  // of 16 bits: how many reads may be outstanding at this end
  std::uint32_t rkey = 0;
  std::uint64_t memory = 0;  // where the peer's operations go
  std::uint32_t srqn = 0;
};

inline constexpr std::size_t kPerftestAddressSize = 59;
inline constexpr std::size_t kPerftestAddressSizeWithGid = 108;

std::string encode(const PerftestAddress& address, bool with_gid);
/// Nothing unless `bytes` have one of the two sizes, and are as encode() would have written them.
std::optional<PerftestAddress> decode_perftest_address(std::span<const char> bytes);

/// What must fit between two ends.
struct PerfIdentity {
  PerfTest test{};
  PerfConnection connection = PerfConnection::kRc;
  bool all_sizes = false;
  bool bidirectional = false;
  bool duration = false;
  bool gid = false;
  bool reversed = false;
  bool endless = false;
  bool multicast = false;
  bool immediate = false;
  bool validates = false;
  std::uint32_t queue_pairs = 1;
  std::uint32_t size = 0;
  std::uint16_t iterations = 0;  // their number folded: unequal ones differ, but for a few

  /// "send-lat -c RC -s 2 -q 1": what the user types for it.
  std::string words() const;
};

/// For PerfIdentity.
constexpr std::uint16_t fold_iterations(std::uint64_t iterations) {
  return static_cast<std::uint16_t>(iterations % 65521);
}

using PerftestVersion = std::array<char, 16>;
PerftestVersion encode(const PerfIdentity& identity, const char* version = kPerftestVersion);
/// The number in front; 0 when there is none.
double version_number(const PerftestVersion& version);
/// Nothing when another program than ours has written it.
std::optional<PerfIdentity> decode_identity(const PerftestVersion& version);

struct PerftestReport {
  std::uint64_t size = 0;
  std::uint64_t iterations = 0;
  double peak = 0;     // MiB or Gbit in a second, as the options say
  double average = 0;  // likewise
  double rate = 0;     // million messages in a second
};

using PerftestNumber = std::array<char, 4>;
PerftestNumber encode_number(std::uint32_t value);
std::uint32_t decode_number(const PerftestNumber& bytes);
using PerftestValue = std::array<char, 8>;
PerftestValue encode_value(std::uint64_t value);
std::uint64_t decode_value(const PerftestValue& bytes);

}  // namespace verbatim::cli
