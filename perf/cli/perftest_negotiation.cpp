// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perftest_negotiation.hpp"

#include <array>
#include <cstring>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

// perftest's default, which it tells of tests without -D too.
constexpr std::uint32_t kSeconds = 5;
constexpr std::size_t kDeviceAt = 80;
static_assert(kDeviceAt + sizeof(ibv_device_attr) == kNegotiationSize);

/// Each number of a negotiation with its place, its size, and how a mismatch is told.
struct Field {
  std::size_t at;
  std::uint32_t PerftestNegotiation::*narrow;  // null: the other
  std::uint64_t PerftestNegotiation::*wide;
  const char* what;
  std::array<const char*, 7> values;  // by their number; null: the number is what is told
};

constexpr Field narrow(std::size_t at, std::uint32_t PerftestNegotiation::*member, const char* what,
                       std::array<const char*, 7> values = {}) {
  return {at, member, nullptr, what, values};
}
constexpr Field wide(std::size_t at, std::uint64_t PerftestNegotiation::*member, const char* what) {
  return {at, nullptr, member, what, {}};
}

using N = PerftestNegotiation;
constexpr std::array kFields = {
    narrow(8, &N::verb, "operation",
           {"SEND", "SEND with immediate", "WRITE", "WRITE with immediate", "READ", "atomics"}),
    narrow(12, &N::bandwidth, "test", {"latency", "bandwidth", "latency by bandwidth", "FS rate"}),
    narrow(4, &N::connection, "connection type (-c)",
           {"RC", "UC", "UD", "RawEth", "XRC", "DC", "SRD"}),
    narrow(0, &N::method, "kind of run (-a, --run_infinitely)",
           {"of one size", "of all sizes", "without an end"}),
    narrow(20, &N::timed, "measure (-n, -D)", {"a number of messages", "a time"}),
    narrow(16, &N::atomic, "atomic (-A)", {"CMP_AND_SWAP", "FETCH_AND_ADD"}),
    narrow(24, &N::report, "unit of results (--report_gbits)", {"Gbit/s", "MiB/s"}),
    wide(32, &N::size, "size (-s)"),
    wide(40, &N::iterations, "number of messages (-n)"),
    narrow(52, &N::queue_pairs, "number of queue pairs (-q)"),
    narrow(56, &N::seconds, "time (-D)"),
    narrow(48, &N::encryption, "encryption (--aes_xts)", {"off", "on"}),
    narrow(60, &N::rdma_cm, "use of rdma_cm (-R, -z)", {"off", "on"}),
    narrow(64, &N::write_immediate, "immediate data (--write_with_imm)", {"off", "on"}),
    narrow(68, &N::no_reorder, "order (--no_enhanced_reorder)", {"off", "on"}),
    narrow(72, &N::signatures, "signatures", {"off", "on"}),
    narrow(76, &N::validation, "validation (--data_validation)", {"off", "on"}),
};

std::uint64_t value_of(const Field& field, const PerftestNegotiation& told) {
  return field.narrow != nullptr ? told.*field.narrow : told.*field.wide;
}

std::string spoken(const Field& field, std::uint64_t value) {
  if (field.values.front() == nullptr) return std::to_string(value);
  const char* word = value < field.values.size() ? field.values[value] : nullptr;
  return word != nullptr ? word : "number " + std::to_string(value);
}

std::uint32_t verb_of(const PerfOptions& options) {
  switch (options.test.verb) {
    case PerfVerb::kSend:
      return options.immediate ? 1 : 0;
    case PerfVerb::kWrite:
      return options.immediate ? 3 : 2;
    case PerfVerb::kRead:
      return 4;
    case PerfVerb::kAtomic:
      break;
  }
  return 5;
}

std::uint32_t connection_of(PerfConnection connection) {
  constexpr std::uint32_t kXrc = 4;  // behind raw packets
  return connection == PerfConnection::kXrc ? kXrc : static_cast<std::uint32_t>(connection);
}

}  // namespace

PerftestNegotiation negotiation_of(const PerfOptions& options, const ibv_device_attr& device) {
  PerftestNegotiation told;
  told.method = options.endless ? 2 : options.all_sizes ? 1 : 0;
  told.connection = connection_of(options.connection);
  told.verb = verb_of(options);
  told.bandwidth = options.test.bandwidth() ? 1 : 0;
  told.atomic = options.test.verb == PerfVerb::kAtomic && !options.compare_swap ? 1 : 0;
  told.timed = options.duration != 0 ? 1 : 0;
  told.report = options.gbits ? 0 : 1;
  told.size = options.size;
  told.iterations = options.duration != 0 ? 0 : options.iterations;
  told.queue_pairs = options.all_queue_pairs();
  told.seconds = options.duration != 0 ? options.duration : kSeconds;
  told.validation = options.validates ? 1 : 0;
  told.device = device;
  return told;
}

std::string encode(const PerftestNegotiation& told) {
  std::string bytes(kNegotiationSize, '\0');
  for (const Field& field : kFields) {
    const std::size_t size = field.narrow != nullptr ? 4 : 8;
    std::uint64_t value = value_of(field, told);
    for (std::size_t byte = size; byte-- > 0; value >>= 8) {
      bytes[field.at + byte] = static_cast<char>(value);
    }
  }
  std::memcpy(&bytes[kDeviceAt], &told.device, sizeof told.device);
  return bytes;
}

PerftestNegotiation decode_negotiation(std::span<const char, kNegotiationSize> bytes) {
  PerftestNegotiation told;
  for (const Field& field : kFields) {
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < (field.narrow != nullptr ? 4u : 8u); ++byte) {
      value = value << 8 | static_cast<unsigned char>(bytes[field.at + byte]);
    }
    if (field.narrow != nullptr)
      told.*field.narrow = static_cast<std::uint32_t>(value);
    else
      told.*field.wide = value;
  }
  std::memcpy(&told.device, &bytes[kDeviceAt], sizeof told.device);
  return told;
}

void check_negotiation(const PerftestNegotiation& ours, const PerftestNegotiation& theirs,
                       double version) {
  for (const Field& field : kFields) {
    if (field.narrow == &PerftestNegotiation::validation && version < kValidatingPerftest) continue;
    // Of a run without an end perftest tells what it would have been.
    if (field.wide == &PerftestNegotiation::iterations && ours.method == 2) continue;
    const std::uint64_t own = value_of(field, ours), other = value_of(field, theirs);
    if (own == other) continue;
    fail(
        "the other side, perftest %.2f, has another %s: %s there, %s here: give both the same "
        "options",
        version, field.what, spoken(field, other).c_str(), spoken(field, own).c_str());
  }
}

}  // namespace verbatim::cli
