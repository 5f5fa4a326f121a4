// SPDX-License-Identifier: BSD-2-Clause
// The distribution's own ibv_* programs, loaded with our archive as their libibverbs.so.1, meet our
// tool: they throw messages to and fro with it over shm0, and see the same device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/tools/classic.hpp"
#include "tests/tools/pingpong_output.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using Words = std::vector<std::string>;

struct Game {
  std::string tool;
  Words options;
};
void PrintTo(const Game& game, std::ostream* out) {
  *out << game.tool << ::testing::PrintToString(game.options);
}

class Classic : public ::testing::Test {
 protected:
  void SetUp() override { VBT_NEEDS_CLASSIC("ibv_rc_pingpong"); }
  Program ours(const std::string& name) { return real_tool(name, fabric_.environment()); }
  Program theirs(const std::string& name) {
    Environment environment = fabric_.environment();
    environment["LD_LIBRARY_PATH"] = VERBATIM_CLASSIC_LIBRARY_FOLDER;
    return {"/usr/bin/" + name, name, std::move(environment)};
  }
  void expect_finished(const Ending& server, const Ending& client) {
    ASSERT_TRUE(server.in_time && client.in_time) << server.err << client.err;
    EXPECT_EQ(server.status, 0) << server.err;
    EXPECT_EQ(client.status, 0) << client.err;
    const auto a = parse_pingpong_output(server.out);
    const auto b = parse_pingpong_output(client.out);
    ASSERT_TRUE(a && b) << server.out << client.out;
    EXPECT_EQ(a->local, b->remote);
    EXPECT_EQ(b->local, a->remote);
    EXPECT_EQ(a->bytes, b->bytes);
  }
  PrivateFabric fabric_;
};

class ClassicInterop : public Classic, public ::testing::WithParamInterface<Game> {};

TEST_P(ClassicInterop, OurServerAndTheirClient) {
  Words options = GetParam().options;
  options.insert(options.end(), {"-p", "0"});
  ToolProcess server(ours(GetParam().tool), options);
  const auto port = listening_port(server);
  ASSERT_TRUE(port) << server.finish().err;
  options.back() = std::to_string(*port);
  options.push_back("127.0.0.1");
  const Ending client = run(theirs(GetParam().tool), options);
  expect_finished(server.finish(), client);
}

TEST_P(ClassicInterop, TheirServerAndOurClient) {
  Words options = GetParam().options;
  options.insert(options.end(), {"-p", std::to_string(free_port())});
  ToolProcess server(theirs(GetParam().tool), options);
  options.push_back("127.0.0.1");
  const Ending client = run(ours(GetParam().tool), options);  // tries until the server listens
  expect_finished(server.finish(), client);
}

const std::string kRc = "ibv_rc_pingpong", kUc = "ibv_uc_pingpong";
const std::string kUd = "ibv_ud_pingpong", kSrq = "ibv_srq_pingpong";
INSTANTIATE_TEST_SUITE_P(Options, ClassicInterop,
                         ::testing::Values(Game{kRc, {"-n", "100"}}, Game{kRc, {"-e"}},
                                           Game{kRc, {"-c", "-s", "1", "-n", "100"}},
                                           Game{kRc, {"-g", "0", "-n", "100"}},
                                           Game{kRc, {"-c", "-e", "-s", "10000"}},
                                           Game{kRc, {"-c", "-s", "1048576", "-n", "50"}}));
INSTANTIATE_TEST_SUITE_P(
    Transports, ClassicInterop,
    ::testing::Values(Game{kUc, {"-c", "-n", "100"}}, Game{kUc, {"-e", "-g", "0", "-n", "100"}},
                      Game{kUd, {"-c", "-n", "100"}}, Game{kUd, {"-e", "-g", "0", "-n", "100"}},
                      Game{kUd, {"-s", "4096", "-n", "100"}}, Game{kSrq, {"-c", "-n", "100"}},
                      Game{kSrq, {"-e", "-q", "1", "-n", "100"}},
                      Game{kSrq, {"-q", "255", "-n", "1000", "-s", "64"}}));

/// XRC: a server and its clients.
class ClassicXsrq : public Classic {
 protected:
  void play_with_our_server(Words words, int clients) {
    Words of_server = words;
    of_server.insert(of_server.end(), {"-c", std::to_string(clients), "-p", "0"});
    ToolProcess server(ours(kName), of_server);
    const auto port = listening_port(server);
    ASSERT_TRUE(port) << server.finish().err;
    words.insert(words.end(), {"-p", std::to_string(*port), "127.0.0.1"});
    std::vector<std::unique_ptr<ToolProcess>> running;
    for (int i = 0; i < clients; ++i)
      running.push_back(
          std::make_unique<ToolProcess>(i % 2 == 0 ? theirs(kName) : ours(kName), words));
    for (auto& client : running) expect_success(client->finish());
    expect_success(server.finish());
  }
  void play_with_their_server(Words words) {
    words.insert(words.end(), {"-p", std::to_string(free_port())});
    ToolProcess server(theirs(kName), words);
    words.push_back("127.0.0.1");
    expect_success(run(ours(kName), words));  // tries until the server listens
    expect_success(server.finish());
  }
  static void expect_success(const Ending& ending) {
    static const Pattern kWhole(
        "^((  remote|   local): LID [0-9a-f]{4}, QPN RECV [0-9a-f]{6} SEND [0-9a-f]{6}, PSN "
        "[0-9a-f]{6}, SRQN [0-9a-f]{6}, GID [0-9a-f:]+\n){2,}success\n$");
    ASSERT_TRUE(ending.in_time) << ending.err;
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_TRUE(kWhole.find(ending.out)) << ending.out;
  }
  const std::string kName = "ibv_xsrq_pingpong";
};

TEST_F(ClassicXsrq, OurServerAndTheirClient) {
  play_with_our_server({}, 1);
  play_with_our_server({"-e", "-n", "50"}, 1);
  play_with_our_server({"-g", "0", "-s", "65536"}, 1);
}

TEST_F(ClassicXsrq, TheirServerAndOurClient) {
  play_with_their_server({});
  play_with_their_server({"-e", "-n", "50"});
  play_with_their_server({"-g", "0", "-s", "65536"});
}

TEST_F(ClassicXsrq, AServerPlaysWithClientsOfBothKinds) { play_with_our_server({"-n", "20"}, 3); }

TEST_F(ClassicXsrq, TheUsageTextIsTheSame) {
  const Ending our_usage = run(ours(kName), {"--no-such-option"});
  EXPECT_EQ(our_usage.status, 1);
  EXPECT_EQ(our_usage.out, run(theirs(kName), {"--no-such-option"}).out);
}

TEST_F(Classic, BothSeeTheSameDevices) {
  for (const Words& options : {Words{}, Words{"-v"}, Words{"-l"}}) {
    const Ending a = run(theirs("ibv_devinfo"), options);
    const Ending b = run(ours("ibv_devinfo"), options);
    EXPECT_EQ(a.status, 0) << a.err;
    EXPECT_EQ(b.out, a.out);
  }
  EXPECT_EQ(run(ours("ibv_devices"), {}).out, run(theirs("ibv_devices"), {}).out);
}

}  // namespace
}  // namespace verbatim::tools
