// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perftest_messages.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/cli/address_hex.hpp"

namespace verbatim::cli {
namespace {

constexpr std::size_t kMostDigits = 16;
// Where an end of ours has written what it runs, behind the version's NUL.
constexpr std::size_t kMarkAt = 5, kTestAt = 6, kFlagsAt = 7, kPairsAt = 8, kSizeAt = 10,
                      kIterationsAt = 14;
constexpr char kMark = 'V';
constexpr unsigned kAllSizes = 1, kBidirectional = 2, kDuration = 4, kGid = 8, kReversed = 16,
                   kEndless = 32, kMulticast = 64, kImmediate = 128;
constexpr unsigned kValidates = 32;  // beside the test

template <std::size_t kSize>
void store(char* to, std::uint64_t value) {
  for (std::size_t at = 0; at < kSize; ++at) {
    to[at] = static_cast<char>(value >> (8 * (kSize - 1 - at)));
  }
}

template <std::size_t kSize>
std::uint64_t load(const char* from) {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < kSize; ++at) {
    value = value << 8 | static_cast<unsigned char>(from[at]);
  }
  return value;
}

/// Takes fields of hex digits off the front; the first that is none spoils all.
class Fields {
 public:
  explicit Fields(std::span<const char> bytes) : rest_{bytes} {}
  std::uint64_t take(std::size_t digits, char end) {
    if (!good_ || rest_.size() <= digits || rest_[digits] != end) return spoil();
    std::uint64_t value = 0;
    for (std::size_t at = 0; at < digits; at += digits < 8 ? digits : 8) {
      const auto part = parse_hex(rest_.subspan(at, digits < 8 ? digits : 8));
      if (!part) return spoil();
      value = value << 32 | *part;
    }
    rest_ = rest_.subspan(digits + 1);
    return value;
  }
  std::uint32_t take32(std::size_t digits, char end) {
    return static_cast<std::uint32_t>(take(digits, end));
  }
  bool all_read() const { return good_ && rest_.empty(); }

 private:
  std::uint64_t spoil() {
    good_ = false;
    return 0;
  }
  std::span<const char> rest_;
  bool good_ = true;
};

}  // namespace

std::string encode(const PerftestAddress& address, bool with_gid) {
  char bytes[kPerftestAddressSizeWithGid + kMostDigits];
  // Masked, so that no value can change the length.
  int length =
      std::snprintf(bytes, sizeof bytes, "%04x:%04x:%06x:%06x:%08x:%016llx:", address.qp.lid,
                    address.reads & 0xffff, address.qp.qpn & 0xffffff, address.qp.psn & 0xffffff,
                    address.rkey, static_cast<unsigned long long>(address.memory));
  if (with_gid) {
    for (const std::uint8_t byte : address.qp.gid.raw) {
      length += std::snprintf(bytes + length, sizeof bytes - static_cast<std::size_t>(length),
                              "%02x:", byte);
    }
  }
  length += std::snprintf(bytes + length, sizeof bytes - static_cast<std::size_t>(length),
                          with_gid ? "%08x:" : "%08x", address.srqn);
  return std::string(bytes, static_cast<std::size_t>(length) + 1);
}

std::optional<PerftestAddress> decode_perftest_address(std::span<const char> bytes) {
  const bool with_gid = bytes.size() == kPerftestAddressSizeWithGid;
  if (!with_gid && bytes.size() != kPerftestAddressSize) return {};
  Fields fields(with_gid ? bytes.first(bytes.size() - 1) : bytes);
  PerftestAddress address;
  address.qp.lid = static_cast<std::uint16_t>(fields.take(4, ':'));
  address.reads = fields.take32(4, ':');
  address.qp.qpn = fields.take32(6, ':');
  address.qp.psn = fields.take32(6, ':');
  address.rkey = fields.take32(8, ':');
  address.memory = fields.take(16, ':');
  if (with_gid) {
    for (std::uint8_t& byte : address.qp.gid.raw)
      byte = static_cast<std::uint8_t>(fields.take(2, ':'));
  }
  address.srqn = fields.take32(8, with_gid ? ':' : '\0');
  if (!fields.all_read() || bytes.back() != '\0') return {};
  return address;
}

std::string PerfIdentity::words() const {
  std::string text = test_name(test) + " -c " + connection_name(connection);
  text += all_sizes ? " -a" : " -s " + std::to_string(size);
  if (queue_pairs != 1) text += " -q " + std::to_string(queue_pairs);
  if (bidirectional) text += " -b";
  if (duration && !endless) text += " -D ...";
  if (reversed) text += " --reversed";
  if (endless) text += " --run_infinitely";
  if (multicast) text += " -g";
  if (immediate) text += test.verb == PerfVerb::kSend ? " --send_with_imm" : " --write_with_imm";
  if (validates) text += " --data_validation";
  if (gid) text += " -x ...";
  return text;
}

PerftestVersion encode(const PerfIdentity& identity, const char* number) {
  PerftestVersion version{};
  std::memcpy(version.data(), number, std::strlen(number));
  version[kMarkAt] = kMark;
  version[kTestAt] = static_cast<char>(static_cast<unsigned>(identity.test.verb) |
                                       static_cast<unsigned>(identity.test.measure) << 2 |
                                       static_cast<unsigned>(identity.connection) << 3 |
                                       (identity.validates ? kValidates : 0));
  version[kFlagsAt] = static_cast<char>(
      (identity.all_sizes ? kAllSizes : 0) | (identity.bidirectional ? kBidirectional : 0) |
      (identity.duration ? kDuration : 0) | (identity.gid ? kGid : 0) |
      (identity.reversed ? kReversed : 0) | (identity.endless ? kEndless : 0) |
      (identity.multicast ? kMulticast : 0) | (identity.immediate ? kImmediate : 0));
  store<2>(&version[kPairsAt], identity.queue_pairs);
  store<4>(&version[kSizeAt], identity.size);
  store<2>(&version[kIterationsAt], identity.iterations);
  return version;
}

double version_number(const PerftestVersion& version) {
  char text[std::tuple_size_v<PerftestVersion> + 1] = {};
  std::memcpy(text, version.data(), version.size());
  return std::strtod(text, nullptr);
}

std::optional<PerfIdentity> decode_identity(const PerftestVersion& version) {
  if (version[kMarkAt - 1] != '\0' || version[kMarkAt] != kMark) return {};
  const auto test = static_cast<unsigned char>(version[kTestAt]);
  const auto flags = static_cast<unsigned char>(version[kFlagsAt]);
  PerfIdentity identity;
  identity.test = {static_cast<PerfVerb>(test & 3), static_cast<PerfMeasure>(test >> 2 & 1)};
  identity.connection = static_cast<PerfConnection>(test >> 3 & 3);
  identity.all_sizes = (flags & kAllSizes) != 0;
  identity.bidirectional = (flags & kBidirectional) != 0;
  identity.duration = (flags & kDuration) != 0;
  identity.gid = (flags & kGid) != 0;
  identity.reversed = (flags & kReversed) != 0;
  identity.endless = (flags & kEndless) != 0;
  identity.multicast = (flags & kMulticast) != 0;
  identity.immediate = (flags & kImmediate) != 0;
  identity.validates = (test & kValidates) != 0;
  identity.queue_pairs = static_cast<std::uint32_t>(load<2>(&version[kPairsAt]));
  identity.size = static_cast<std::uint32_t>(load<4>(&version[kSizeAt]));
  identity.iterations = static_cast<std::uint16_t>(load<2>(&version[kIterationsAt]));
  return identity;
}

PerftestNumber encode_number(std::uint32_t value) {
  PerftestNumber bytes;
  store<4>(bytes.data(), value);
  return bytes;
}
std::uint32_t decode_number(const PerftestNumber& bytes) {
  return static_cast<std::uint32_t>(load<4>(bytes.data()));
}
PerftestValue encode_value(std::uint64_t value) {
  PerftestValue bytes;
  store<8>(bytes.data(), value);
  return bytes;
}
std::uint64_t decode_value(const PerftestValue& bytes) { return load<8>(bytes.data()); }

}  // namespace verbatim::cli
