// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_exchange.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

constexpr long kPartingMs = 500;
// Before its addresses perftest fills all its memory with random numbers, one by one.
constexpr long kPreparingMs = 120'000;
constexpr std::uint32_t kMostWalk = 1u << 20, kMostCacheLine = 4096;
constexpr long kMoreMs = 50;
constexpr char kParameters[] = "Couldn't exchange parameters";
constexpr char kAddresses[] = "Couldn't exchange addresses";

std::uint32_t page_size() { return static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)); }

std::uint32_t cache_line_size() {
  const long said = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  return said >= 16 && said <= 1024 ? static_cast<std::uint32_t>(said) : 64;
}

/// Who sends is alone with it: the other end only has the memory.
bool one_sided(const PerfIdentity& ours) {
  return ours.test.verb != PerfVerb::kSend && !ours.test.answered() && !ours.bidirectional &&
         !ours.immediate;
}

/// Both can run against each other.
bool fit(const PerfIdentity& ours, const PerfIdentity& theirs, bool client) {
  if (ours.test.verb != theirs.test.verb || ours.test.measure != theirs.test.measure ||
      ours.connection != theirs.connection || ours.all_sizes != theirs.all_sizes ||
      ours.bidirectional != theirs.bidirectional || ours.duration != theirs.duration ||
      ours.gid != theirs.gid || ours.queue_pairs != theirs.queue_pairs ||
      ours.reversed != theirs.reversed || ours.endless != theirs.endless ||
      ours.multicast != theirs.multicast || ours.immediate != theirs.immediate ||
      ours.validates != theirs.validates) {
    return false;
  }
  if (!one_sided(ours)) return ours.size == theirs.size;
  // The server's memory is all that there is of it.
  return client ? ours.size <= theirs.size : ours.size >= theirs.size;
}

}  // namespace

PerfTerms own_perf_terms(ibv_mtu mtu) { return {page_size(), cache_line_size(), mtu}; }

PerfExchange::PerfExchange(const PerfOptions& options, std::optional<Listener> listener,
                           const StopSignals& stop)
    : options_{options},
      conversation_{listener ? Conversation::accept(std::move(*listener), stop)
                             : Conversation::connect(options.server, options.tcp_port, stop,
                                                     kConnectMs, options.source)} {
  conversation_.call_peer("a perftest program of this test");
}

template <class Bytes>
Bytes PerfExchange::swap_bytes(const Bytes& ours, const char* what) {
  Bytes theirs{};
  if (options_.connects()) send({ours.data(), ours.size()});
  conversation_.receive_bytes(theirs, what);
  if (!options_.connects()) send({ours.data(), ours.size()});
  return theirs;
}

/// A server hears first, and says a version that its client negotiates with.
PerftestVersion PerfExchange::swap_versions(const PerfIdentity& ours) {
  constexpr char kVersions[] = "Couldn't exchange versions";
  if (options_.connects()) return swap_bytes(encode(ours), kVersions);
  PerftestVersion theirs{};
  conversation_.receive_bytes(theirs, kVersions);
  negotiated_version_ = version_number(theirs);
  const bool negotiates = negotiated_version_ >= kNegotiatingPerftest;
  const PerftestVersion own = encode(ours, negotiates ? kNegotiatedVersion : kPerftestVersion);
  send({own.data(), own.size()});
  return theirs;
}

void PerfExchange::negotiate(const PerftestNegotiation& ours) {
  if (negotiated_version_ < kNegotiatingPerftest) return;
  std::array<char, kNegotiationSize> theirs{};
  conversation_.receive_bytes(theirs, kParameters);
  std::array<char, kNegotiationOfOneVendor> more{};
  // It comes in one piece, and a client that has sent it waits: what is not there soon never comes.
  const bool longer = conversation_.speaks_within(kMoreMs);
  if (longer) conversation_.receive_bytes(more, kParameters);
  std::string own = encode(ours);
  if (longer) own.append(more.size(), '\0');
  send(own);
  check_negotiation(ours, decode_negotiation(theirs), negotiated_version_);
}

PerfTerms PerfExchange::introduce(const PerfIdentity& ours, ibv_mtu mtu) {
  gid_ = ours.gid;
  if (!options_.introduces) return own_perf_terms(mtu);
  const PerftestVersion theirs = swap_versions(ours);
  const double number = version_number(theirs);
  if (!(number >= kEarliestPerftest)) {
    fail("the other side is no perftest program from %.2f on (it says %.2f)", kEarliestPerftest,
         number);
  }
  const auto peer = decode_identity(theirs);
  if (!peer && ours.validates) {
    fail("the other side is perftest, whose validation is another: leave out --data_validation");
  }
  if (peer) {
    if (!fit(ours, *peer, options_.client())) {
      fail("the other side runs '%s', this one '%s': give both the same options",
           peer->words().c_str(), ours.words().c_str());
    }
    if (!one_sided(ours) && !ours.duration && ours.iterations != peer->iterations) {
      fail("the other side runs another number of messages than %llu: give both the same -n",
           static_cast<unsigned long long>(options_.iterations));
    }
  }
  PerfTerms terms = own_perf_terms(mtu);
  const auto larger = [this](std::uint32_t own, std::uint32_t most, const char* what) {
    const std::uint32_t other = decode_number(swap_bytes(encode_number(own), kAddresses));
    if (other > most)
      fail("%s: %s of %u bytes is none (at most %u)", kAddresses, what, other, most);
    return std::bit_ceil(std::max(own, other));
  };
  terms.walk = larger(terms.walk, kMostWalk, "a page");
  terms.cache_line = larger(terms.cache_line, kMostCacheLine, "a cache line");
  const std::array<char, 2> digit = {static_cast<char>('0' + mtu), '\0'};
  const auto other = static_cast<ibv_mtu>(swap_bytes(digit, kAddresses)[0] - '0');
  terms.mtu = other >= IBV_MTU_256 && other <= IBV_MTU_4096 ? std::min(mtu, other) : mtu;
  return terms;
}

PerftestAddress PerfExchange::receive_address(long milliseconds) {
  std::array<char, kPerftestAddressSizeWithGid> bytes{};
  const std::span<char> whole =
      std::span(bytes).first(gid_ ? kPerftestAddressSizeWithGid : kPerftestAddressSize);
  // Without a GID there is no more to come.
  const std::span<char> first = whole.first(kPerftestAddressSize);
  conversation_.receive_bytes(first, kAddresses, milliseconds);
  const bool ends = first.back() == '\0';
  if (ends != (whole.size() == first.size())) {
    fail("the other side runs with%s a GID, this one with%s: give both the same -x",
         ends ? "out" : "", ends ? "" : "out");
  }
  if (whole.size() > first.size()) {
    conversation_.receive_bytes(whole.subspan(first.size()), kAddresses);
  }
  const auto address = decode_perftest_address(whole);
  if (!address) fail("%s: the other side sent no address: is it a perftest program?", kAddresses);
  return *address;
}

PerftestAddress PerfExchange::swap_within(const PerftestAddress& ours, long milliseconds) {
  const std::string bytes = encode(ours, gid_);
  if (options_.connects()) send(bytes);
  const PerftestAddress theirs = receive_address(milliseconds);
  if (!options_.connects()) send(bytes);
  return theirs;
}

PerftestAddress PerfExchange::swap(const PerftestAddress& ours) {
  return swap_within(ours, kPreparingMs);
}

PerftestReport PerfExchange::swap_reports(const PerftestReport& ours) {
  const auto whole = [this](std::uint64_t value) {
    return decode_value(swap_bytes(encode_value(value), "Couldn't exchange reports"));
  };
  const auto real = [&](double value) {
    return std::bit_cast<double>(whole(std::bit_cast<std::uint64_t>(value)));
  };
  PerftestReport theirs;
  theirs.size = whole(ours.size);
  theirs.iterations = whole(ours.iterations);
  theirs.peak = real(ours.peak);
  theirs.average = real(ours.average);
  theirs.rate = real(ours.rate);
  for (const double value : {theirs.peak, theirs.average, theirs.rate}) {
    if (!std::isfinite(value) || value < 0) {
      fail("Couldn't exchange reports: the other side says %g of a rate; is it perftest?", value);
    }
  }
  return theirs;
}

void PerfExchange::part(const PerftestAddress& ours) {
  wait_for_peer(ours);
  conversation_.send_done();
  leave();
}

void PerfExchange::leave() { conversation_.finish(kPartingMs); }

}  // namespace verbatim::cli
