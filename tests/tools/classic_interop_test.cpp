// SPDX-License-Identifier: BSD-2-Clause
// The distribution's own ibv_* programs, loaded with our archive as their libibverbs.so.1, meet our
// tool: they throw messages to and fro with it over shm0, and see the same device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class ClassicInterop : public ::testing::TestWithParam<Game> {
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

TEST_F(ClassicInterop, BothSeeTheSameDevices) {
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
