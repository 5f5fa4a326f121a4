// SPDX-License-Identifier: BSD-2-Clause
// The command lines of `verbatim pingpong rc`, `uc`, `ud`, `srq` and `xsrq`, and of their classic
// names.
//
// Main thread, once per process (getopt). Options, defaults and usage text are those of the classic
// tools; numbers are read strictly, and a bad one is a Failure that names the option and its range.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "perf/cli/commands.hpp"

namespace verbatim::cli {

/// kSrq: RC queue pairs that share their receives. kXsrq: XRC, with a pair for each client.
enum class Transport { kRc, kUc, kUd, kSrq, kXsrq };

constexpr bool shares_receives(Transport transport) {
  return transport == Transport::kSrq || transport == Transport::kXsrq;
}

struct PingpongOptions {
  explicit PingpongOptions(Transport which)
      : transport{which},
        size{which == Transport::kUd ? 1024u : 4096u},
        queue_pairs{which == Transport::kSrq ? 16u : 1u},
        iters{which == Transport::kXsrq ? 5u : 1000u} {}

  Transport transport;
  std::string server;  // empty: be the server
  std::uint16_t tcp_port = 18515;
  const char* device = nullptr;  // null: the first
  std::uint8_t ib_port = 1;
  std::uint32_t size;  // of UD not the 2048 of its usage text: the classic tool's is 1024
  // Not of UD, whose messages are packets; of XRC not the 2048 of its usage text either: the other
  // side may be the classic tool.
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t queue_pairs;
  std::uint32_t rx_depth = 500;
  std::uint32_t iters;  // of all queue pairs together; of XRC with each client
  std::uint8_t service_level = 0;
  int gid_index = -1;  // -1: none
  bool events = false;
  bool check = false;
  bool on_demand = false;
  bool implicit_on_demand = false;
  bool prefetch = false;
  bool timestamps = false;
  bool device_memory = false;
  bool new_send = false;
};

/// Fills `options`, or answers the exit status when there is nothing to run.
std::optional<int> parse_pingpong(Calling calling, int argc, char** argv, PingpongOptions* options);

}  // namespace verbatim::cli
