// SPDX-License-Identifier: BSD-2-Clause
//
// Two ends of a perftest program, ours or the distribution's, played against each other over shm0.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/tools/classic.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct PerfEndings {
  Ending server;
  Ending client;
};

/// A server of ours that has said where it listens, and a client.
inline PerfEndings play_our_server(const Program& server_program, const Words& server_words,
                                   const Program& client_program, const Words& client_words) {
  ToolProcess server(server_program, joined(server_words, {"-p", "0"}));
  const auto port = listening_port(server);
  if (!port) return {server.finish(), {}};
  Ending client =
      run(client_program, joined(client_words, {"-p", std::to_string(*port), "127.0.0.1"}));
  return {server.finish(), std::move(client)};
}

inline void expect_both_finished(const PerfEndings& endings) {
  EXPECT_TRUE(endings.server.in_time && endings.client.in_time);
  EXPECT_EQ(endings.server.status, 0) << endings.server.out << endings.server.err;
  EXPECT_EQ(endings.client.status, 0) << endings.client.out << endings.client.err;
}

}  // namespace verbatim::tools
