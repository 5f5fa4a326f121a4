// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/costs.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/topo/hash.hpp"

namespace vmpi {
namespace {

constexpr std::uint32_t kNs = 1000;
constexpr std::uint32_t kUs = 1000 * kNs;
constexpr std::uint32_t kMs = 1000 * kUs;

// Built in is what a usual server of today does, and what perf/sim takes for a network.
constexpr CostFacts kFacts[kCosts] = {
    {"near.latency", "a cache line to a core of the same L3 cache", 60 * kNs, 5 * kNs, kMs},
    {"far.latency", "and to one of another", 150 * kNs, 5 * kNs, kMs},
    {"host.overhead", "o of a message within a host", 30 * kNs, kNs, kMs},
    {"host.gap", "g of messages within a host", 30 * kNs, kNs, kMs},
    {"host.handshake", "before the data of a long one", 800 * kNs, kNs, kMs},
    {"host.put", "a byte, to memory that others map", 40, 2, 100 * kNs},
    {"host.fetch", "a byte, from where another core has put it", 60, 2, 100 * kNs},
    {"host.kernel", "a byte, copied by the kernel", 110, 2, 100 * kNs},
    {"host.combine", "a byte, added up", 60, 2, 100 * kNs},
    {"net.latency", "L between hosts", kUs, 10 * kNs, kMs},
    {"net.overhead", "o between hosts", 200 * kNs, kNs, kMs},
    {"net.gap", "g between hosts", 100 * kNs, kNs, kMs},
    {"net.byte", "G between hosts", 100, 2, 100 * kNs},
    {"net.handshake", "before the data of a long one", 2400 * kNs, kNs, 4 * kMs},
};

[[nodiscard]] constexpr std::uint64_t digest_of(const std::uint32_t (&ps)[kCosts]) noexcept {
  std::uint64_t hash = kCosts;
  for (const std::uint32_t each : ps) hash = verbatim::topo::mix(hash, each);
  return hash;
}

constexpr Costs kBuiltIn = [] {
  Costs costs = {};
  for (int i = 0; i < kCosts; ++i) costs.ps[i] = kFacts[i].built_in;
  costs.digest = digest_of(costs.ps);
  return costs;
}();

[[gnu::format(printf, 2, 3)]] const char* refuse(std::span<char> wrong, const char* format,
                                                 ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(wrong.data(), wrong.size(), format, arguments);
  va_end(arguments);
  return wrong.data();
}

/// Digits, and up to three behind a point, as ps; `is_exact`: all three, so that a text that was cut is none.
/// Null: they are none, or too many.
[[nodiscard]] const char* parse_ns(const char* at, bool is_exact, std::uint64_t& ps) noexcept {
  constexpr int kMostDigits = 9;
  ps = 0;
  int digits = 0;
  for (; *at >= '0' && *at <= '9'; ++at, ++digits) {
    if (digits == kMostDigits) return nullptr;
    ps = 10 * ps + static_cast<unsigned>(*at - '0');
  }
  if (digits == 0) return nullptr;
  int decimals = 0;
  if (*at == '.')
    for (++at; *at >= '0' && *at <= '9'; ++at, ++decimals) {
      if (decimals == 3) return nullptr;
      ps = 10 * ps + static_cast<unsigned>(*at - '0');
    }
  if (is_exact && decimals != 3) return nullptr;
  for (; decimals < 3; ++decimals) ps *= 10;
  return at;
}

/// -1: there is none of this name.
[[nodiscard]] int find_name(const char* at, std::size_t length) noexcept {
  for (int i = 0; i < kCosts; ++i)
    if (std::strlen(kFacts[i].name) == length && std::memcmp(kFacts[i].name, at, length) == 0)
      return i;
  return -1;
}

}  // namespace

const CostFacts& facts_of(CostOf which) noexcept { return kFacts[static_cast<std::size_t>(which)]; }

const Costs& built_in_costs() noexcept { return kBuiltIn; }

void Costs::set(CostOf which, double ns) noexcept {
  const CostFacts& facts = facts_of(which);
  const double wanted = ns * 1000;
  // Written so that a NaN is the least.
  const double held = wanted > facts.least ? std::min<double>(wanted, facts.most) : facts.least;
  ps[static_cast<std::size_t>(which)] = static_cast<std::uint32_t>(held);
  digest = digest_of(ps);
}

void Costs::set_measured(CostOf which, double ns) noexcept {
  set(which, ns);
  measured |= 1u << static_cast<unsigned>(which);
}

void write_costs(const Costs& costs, std::span<char, kCostsText> out) noexcept {
  std::size_t length = 0;
  out[0] = '\0';
  for (int i = 0; i < kCosts && length < out.size(); ++i) {
    const bool is_measured = costs.is_measured(static_cast<CostOf>(i));
    const int more = std::snprintf(out.data() + length, out.size() - length, "%s%s:%u.%03u%s",
                                   i == 0 ? "" : ",", kFacts[i].name, costs.ps[i] / 1000,
                                   costs.ps[i] % 1000, is_measured ? "m" : "");
    length += more > 0 ? static_cast<std::size_t>(more) : 0;
  }
}

const char* parse_costs(const char* text, bool are_all, Costs& into,
                        std::span<char> wrong) noexcept {
  Costs said = into;
  std::uint32_t seen = 0;
  for (const char* at = text;;) {
    const std::size_t length = std::strcspn(at, ":,");
    const int which = at[length] == ':' ? find_name(at, length) : -1;
    if (which < 0) return refuse(wrong, "\"%.40s\" names no cost", at);
    const CostFacts& facts = kFacts[which];
    if ((seen >> which & 1) != 0) return refuse(wrong, "%s is there twice", facts.name);
    seen |= 1u << which;
    std::uint64_t ps = 0;
    const char* end = parse_ns(at + length + 1, are_all, ps);
    if (end == nullptr || ps < facts.least || ps > facts.most)
      return refuse(wrong, "%s is \"%.20s\", which is no time from %u.%03u to %u ns", facts.name,
                    at + length + 1, facts.least / 1000, facts.least % 1000, facts.most / 1000);
    said.ps[which] = static_cast<std::uint32_t>(ps);
    const bool is_measured = *end == 'm';
    said.measured = (said.measured & ~(1u << which)) | (is_measured && are_all ? 1u << which : 0);
    end += is_measured ? 1 : 0;
    if (*end == '\0') break;
    if (*end != ',') return refuse(wrong, "\"%.20s\" follows %s", end, facts.name);
    at = end + 1;
  }
  for (int i = 0; i < kCosts; ++i)
    if (are_all && (seen >> i & 1) == 0) return refuse(wrong, "%s is not there", kFacts[i].name);
  said.digest = digest_of(said.ps);
  into = said;
  return nullptr;
}

}  // namespace vmpi
