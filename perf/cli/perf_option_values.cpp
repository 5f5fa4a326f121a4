// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_option_values.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "perf/cli/option_values.hpp"
#include "perf/support/arguments.hpp"
#include "runtime/topo/cpu_list.hpp"

namespace verbatim::cli {
namespace {

constexpr long long kLongestMessage = (1LL << 31) - 1;

}  // namespace

std::uint32_t perf_message_size(const char* text) {
  const auto size = perf::parse_size(text);
  if (size && *size >= 1 && *size <= static_cast<std::uint64_t>(kLongestMessage)) {
    return static_cast<std::uint32_t>(*size);
  }
  fail("size '%s' is not a number from 1 to %lld, with K or M behind it for more (-s)", text,
       kLongestMessage);
}

PerfConnection perf_connection(const char* text, PerfTest test) {
  for (const auto connection :
       {PerfConnection::kRc, PerfConnection::kUc, PerfConnection::kUd, PerfConnection::kXrc}) {
    if (std::strcmp(text, connection_name(connection)) != 0) continue;
    if ((connection == PerfConnection::kUd && test.verb != PerfVerb::kSend) ||
        (connection == PerfConnection::kUc && test.fetches())) {
      fail("connection type %s has no %s: choose RC or XRC%s (-c)", text, test_name(test).c_str(),
           test.verb == PerfVerb::kWrite ? ", or UC" : "");
    }
    return connection;
  }
  fail("connection type '%s' is none of RC, UC, UD, XRC (-c)", text);
}

ibv_gid perf_group(const char* text) {
  ibv_gid gid = {};
  const char* at = text;
  for (std::size_t byte = 0; byte < sizeof gid.raw; ++byte) {
    char* end = nullptr;
    const unsigned long value = std::strtoul(at, &end, 0);
    const char wanted = byte + 1 < sizeof gid.raw ? ':' : '\0';
    if (end == at || value > 0xff || *end != wanted) break;
    gid.raw[byte] = static_cast<std::uint8_t>(value);
    if (wanted == '\0') {
      if (gid.raw[0] == 0xff) return gid;
      fail("group '%s' is no multicast GID: those begin with 255 (-M)", text);
    }
    at = end + 1;
  }
  fail("group '%s' is not 16 numbers from 0 to 255 with ':' between (-M)", text);
}

std::vector<std::string> perf_counter_names(std::string_view list, const char* option) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    // They are files under the port's folder, and nowhere else.
    if (name.empty() || name.front() == '/' || name.find("..") != std::string_view::npos) {
      fail("'%.*s' is the name of no counter (%s)", static_cast<int>(name.size()), name.data(),
           option);
    }
    names.emplace_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (names.empty()) fail("no counters are named (%s)", option);
  return names;
}

std::vector<int> perf_cores(const char* text) {
  constexpr std::uint32_t kEnd = 1024;  // of a cpu_set_t
  std::vector<int> cores;
  // A part at a time: their order says which end of a test runs where.
  for (std::string_view list = text;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string part(list.substr(0, comma));
    topo::NumberSet set;
    if (!set.parse(part.c_str()) || set.count() == 0 || set.next(kEnd) != topo::NumberSet::kEnd) {
      fail("'%s' is no list of cores below %u, as 0,2-5 (--pin_cores)", text, kEnd);
    }
    for (std::uint32_t core = set.next(0); core < kEnd; core = set.next(core + 1)) {
      cores.push_back(static_cast<int>(core));
    }
    if (comma == list.size()) return cores;
    list.remove_prefix(comma + 1);
  }
}

PerfRateUnit perf_rate_unit(const char* text) {
  if (std::strcmp(text, "g") == 0) return PerfRateUnit::kGigabits;
  if (std::strcmp(text, "M") == 0) return PerfRateUnit::kMebibytes;
  if (std::strcmp(text, "p") == 0) return PerfRateUnit::kMessages;
  fail("unit '%s' is none of M, g, p (--rate_units)", text);
}

double perf_rate(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value > 0 && value < 1e12) return value;
  fail("rate '%s' is not a number above 0 (--rate_limit)", text);
}

void check_perf_limiter(const char* text) {
  if (std::strcmp(text, "SW") == 0) return;
  if (std::strcmp(text, "HW") == 0 || std::strcmp(text, "PP") == 0) {
    fail(
        "a rate limiter of the device is set by no verb that all have: take SW "
        "(--rate_limit_type)");
  }
  fail("limiter '%s' is none of HW, SW, PP (--rate_limit_type)", text);
}

std::uint8_t perf_link(const char* text) {
  if (std::strcmp(text, "IB") == 0) return IBV_LINK_LAYER_INFINIBAND;
  if (std::strcmp(text, "Ethernet") == 0) return IBV_LINK_LAYER_ETHERNET;
  fail("link '%s' is none of IB, Ethernet (--force-link)", text);
}

PerfOutput perf_output(const char* text, PerfTest test) {
  const std::string_view what = text;
  if (test.bandwidth() && what == "bandwidth") return PerfOutput::kBandwidth;
  if (test.bandwidth() && what == "message_rate") return PerfOutput::kMessageRate;
  if (test.latency() && what == "latency") return PerfOutput::kLatency;
  fail("'%s' is not %s (--output)", text, test.latency() ? "latency" : "bandwidth or message_rate");
}

double perf_limit(const char* option, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end != text && *end == '\0' && value >= 0) return value;
  fail("limit '%s' is not a number from 0 on (%s)", text, option);
}

}  // namespace verbatim::cli
