// SPDX-License-Identifier: BSD-2-Clause
// The command line of `verbatim pingpong rc`, `ibv_rc_pingpong`.
//
// Main thread, once per process (getopt). Options and usage text are those of the classic tool;
// numbers are read strictly, and a bad one is a Failure that names the option and its range.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "perf/cli/commands.hpp"

namespace verbatim::cli {

struct PingpongOptions {
  std::string server;  // empty: be the server
  std::uint16_t tcp_port = 18515;
  const char* device = nullptr;  // null: the first
  std::uint8_t ib_port = 1;
  std::uint32_t size = 4096;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t rx_depth = 500;
  std::uint32_t iters = 1000;
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
