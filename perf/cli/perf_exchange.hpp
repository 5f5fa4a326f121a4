// SPDX-License-Identifier: BSD-2-Clause
// The conversation of two perftest programs over TCP, Debian's or ours at either end.
//
//   introduce()        versions, the sizes of buffers' walk and of cache lines, MTUs
//   negotiate()        options, with a client of version 6.28 or later
//   swap() ...         addresses: of each queue pair, and again wherever the ends wait for each
//                      other; the client says its own first
//   swap_reports()     what the other end has measured
//   part()             a last address, then "done"; of latency by WRITE nothing: leave()
//
// Main thread. A stranger's bytes end in a Failure. While the other end measures, this one waits
// for as long as the connection lives; else every wait is bounded.
#pragma once

#include <optional>
#include <string>

#include "perf/cli/perf_options.hpp"
#include "perf/cli/perftest_messages.hpp"
#include "perf/cli/perftest_negotiation.hpp"
#include "perf/cli/tcp_exchange.hpp"

namespace verbatim::cli {

inline constexpr std::uint32_t kRoutingHeader = 40;  // before a datagram (IBTA 11.4.1.2)

/// What both ends have agreed on.
struct PerfTerms {
  std::uint32_t walk = 4096;  // small messages go through so many bytes in turn
  std::uint32_t cache_line = 64;
  ibv_mtu mtu = IBV_MTU_4096;
};

/// What an end has by itself.
PerfTerms own_perf_terms(ibv_mtu mtu);

/// The end of an endless test: the other end was stopped.
struct PeerHasLeft {};

class PerfExchange {
 public:
  /// Waits for the client, or finds the server; `listener` is the server's.
  PerfExchange(const PerfOptions& options, std::optional<Listener> listener,
               const StopSignals& stop);

  /// Throws Failure when the other end runs another test, or a version that speaks otherwise.
  PerfTerms introduce(const PerfIdentity& ours, ibv_mtu mtu);
  /// With a client of a version that does; throws Failure when its options are others.
  void negotiate(const PerftestNegotiation& ours);

  PerftestAddress swap(const PerftestAddress& ours);
  /// A swap for which the other end measures first.
  void wait_for_peer(const PerftestAddress& ours) { swap_within(ours, kForEver); }
  PerftestReport swap_reports(const PerftestReport& ours);
  void part(const PerftestAddress& ours);
  /// Parts without a word, as both ends of a latency by WRITE do.
  void leave();

  /// Both ends run until one is stopped, which is no failure of the other.
  bool endless() const { return options_.endless; }
  bool peer_has_left() const { return conversation_.hung_up(); }
  /// A client that has measured says its address again.
  bool peer_is_through() const { return conversation_.has_spoken(); }

 private:
  static constexpr long kForEver = -1;

  void send(std::string_view bytes) { conversation_.send_bytes(bytes); }
  template <class Bytes>
  Bytes swap_bytes(const Bytes& ours, const char* what);
  PerftestVersion swap_versions(const PerfIdentity& ours);
  PerftestAddress receive_address(long milliseconds);
  PerftestAddress swap_within(const PerftestAddress& ours, long milliseconds);

  const PerfOptions& options_;
  Conversation conversation_;
  bool gid_ = false;
  double negotiated_version_ = 0;  // of a client, which a server of ours negotiates with
};

}  // namespace verbatim::cli
