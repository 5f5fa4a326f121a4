// SPDX-License-Identifier: BSD-2-Clause
// The tool as users get it, two processes over shm0: it finishes, it can be parsed, it can be
// interrupted, and what goes wrong ends in one line and leaves nothing behind.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/tools/classic.hpp"
#include "tests/tools/pingpong_output.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Both ends finished, and say the same.
void expect_finished(const Ending& server, const Ending& client, long long size, long long iters) {
  ASSERT_TRUE(server.in_time && client.in_time) << server.err << client.err;
  EXPECT_EQ(server.status, 0) << server.err;
  EXPECT_EQ(client.status, 0) << client.err;
  EXPECT_EQ(client.err, "");
  const auto a = parse_pingpong_output(server.out);
  const auto b = parse_pingpong_output(client.out);
  ASSERT_TRUE(a) << server.out;
  ASSERT_TRUE(b) << client.out;
  EXPECT_EQ(a->local, b->remote);
  EXPECT_EQ(b->local, a->remote);
  EXPECT_NE(a->local, b->local);
  for (const auto& end : {a, b}) {
    EXPECT_EQ(end->bytes, 2 * size * iters);
    EXPECT_EQ(end->iters, iters);
    EXPECT_GT(end->usec_per_iter, 0);
  }
}

class ShmPingpong : public ::testing::Test {
 protected:
  Program tool(const std::string& name = "ibv_rc_pingpong", Environment more = {}) {
    return real_tool(name, fabric_.environment(std::move(more)));
  }
  void TearDown() override {
    EXPECT_LE(fabric_.sockets().size(), killed_) << fabric_.sockets().front() << " was left behind";
  }

  /// A server on a port of the kernel's choice, and a client of it at `host`.
  void expect_run(const Words& options, long long size, long long iters,
                  const std::string& host = "127.0.0.1",
                  const std::string& name = "ibv_rc_pingpong") {
    ToolProcess server(tool(name), joined(options, {"-p", "0"}));
    const auto port = listening_port(server);
    ASSERT_TRUE(port) << server.finish().err;
    const Ending client = run(tool(name), joined(options, {"-p", std::to_string(*port), host}));
    expect_finished(server.finish(), client, size, iters);
  }

  PrivateFabric fabric_;
  // A process that was killed cannot remove its name; who meets the name next does.
  std::size_t killed_ = 0;
};

struct Run {
  Words options;
  long long size;
  long long iters;
  std::string tool = "ibv_rc_pingpong";
};
void PrintTo(const Run& run, std::ostream* out) {
  *out << run.tool << ::testing::PrintToString(run.options);
}

class ShmRuns : public ShmPingpong, public ::testing::WithParamInterface<Run> {};

TEST_P(ShmRuns, Finish) {
  const auto& [options, size, iters, name] = GetParam();
  expect_run(options, size, iters, "127.0.0.1", name);
}

constexpr long long kMiB = 1 << 20;
INSTANTIATE_TEST_SUITE_P(Sizes, ShmRuns,
                         ::testing::Values(Run{{}, 4096, 1000}, Run{{"-c", "-s", "1"}, 1, 1000},
                                           Run{{"-c", "-s", "8"}, 8, 1000},
                                           Run{{"-c", "-s", "4096"}, 4096, 1000},
                                           Run{{"-c", "-s", "4097", "-n", "3"}, 4097, 3},
                                           Run{{"-c", "-s", "1048576", "-n", "50"}, kMiB, 50}));
INSTANTIATE_TEST_SUITE_P(Events, ShmRuns,
                         ::testing::Values(Run{{"-e"}, 4096, 1000},
                                           Run{{"-e", "-c", "-s", "1"}, 1, 1000},
                                           Run{{"-ec", "-s", "8", "-n", "200"}, 8, 200},
                                           Run{{"-e", "-c", "-s1048576", "-n", "20"}, kMiB, 20}));
INSTANTIATE_TEST_SUITE_P(
    Options, ShmRuns,
    ::testing::Values(Run{{"-g", "0"}, 4096, 1000}, Run{{"-r", "1"}, 4096, 1000},
                      Run{{"-r", "2", "-n", "1"}, 4096, 1}, Run{{"-r", "4000"}, 4096, 1000},
                      Run{{"-m", "4096", "-l", "3", "-i", "1", "-d", "shm0"}, 4096, 1000},
                      Run{{"--size=64", "--iters", "5", "--chk"}, 64, 5}));

const std::string kUc = "ibv_uc_pingpong", kUd = "ibv_ud_pingpong", kSrq = "ibv_srq_pingpong";
INSTANTIATE_TEST_SUITE_P(Unreliable, ShmRuns,
                         ::testing::Values(Run{{}, 4096, 1000, kUc},
                                           Run{{"-e", "-c", "-s", "8"}, 8, 1000, kUc},
                                           Run{{"-cs1048576", "-n", "20"}, kMiB, 20, kUc}));
INSTANTIATE_TEST_SUITE_P(Datagrams, ShmRuns,
                         ::testing::Values(Run{{}, 1024, 1000, kUd},
                                           Run{{"-e", "-c", "-s", "8"}, 8, 1000, kUd},
                                           Run{{"-c", "-s", "4096", "-g", "0"}, 4096, 1000, kUd}));
INSTANTIATE_TEST_SUITE_P(
    SharedReceives, ShmRuns,
    ::testing::Values(Run{{}, 4096, 1000, kSrq}, Run{{"-e", "-c", "-s", "8"}, 8, 1000, kSrq},
                      Run{{"-o", "-q", "1"}, 4096, 1000, kSrq},
                      Run{{"-q", "3", "-r", "3", "-n", "7", "-c"}, 4096, 7, kSrq},
                      Run{{"-q", "255", "-c", "-n", "5000", "-s", "64"}, 64, 5000, kSrq}));

TEST_F(ShmPingpong, SidesWithDifferentNumbersOfQueuePairsAreToldSo) {
  ToolProcess server(tool(kSrq), {"-q", "4", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  run(tool(kSrq), {"-q", "3", "-p", std::to_string(*port), "127.0.0.1"});
  const Ending ending = server.finish();
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err,
              HasSubstr("the other side has 3 QPs and this one 4; give both the same -q"));
}

TEST_F(ShmPingpong, AnXrcServerPlaysWithSeveralClients) {
  for (const Words& options : {Words{}, Words{"-e"}, Words{"-o", "-s", "100000"}}) {
    SCOPED_TRACE(::testing::PrintToString(options));
    ToolProcess server(tool("ibv_xsrq_pingpong"),
                       joined(options, {"-c", "3", "-n", "200", "-p", "0"}));
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    const Words words = joined(options, {"-n", "200", "-p", std::to_string(*port), "127.0.0.1"});
    ToolProcess first(tool("ibv_xsrq_pingpong"), words);
    ToolProcess second(tool("verbatim"), joined({"pingpong", "xsrq"}, words));
    const Ending third = run(tool("ibv_xsrq_pingpong"), words);
    for (const Ending& ending : {server.finish(), first.finish(), second.finish(), third}) {
      ASSERT_TRUE(ending.in_time) << ending.err;
      EXPECT_EQ(ending.status, 0) << ending.err;
      EXPECT_THAT(ending.out, ::testing::EndsWith("\nsuccess\n"));
    }
  }
}

TEST_F(ShmPingpong, AnXrcClientThatLeavesIsNoticed) {
  ToolProcess server(tool("ibv_xsrq_pingpong"), {"-n", "1000000000", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  ToolProcess client(tool("ibv_xsrq_pingpong"),
                     {"-n", "1000000000", "-p", std::to_string(*port), "127.0.0.1"});
  ASSERT_TRUE(server.wait_for_output("remote:"));
  client.signal(SIGKILL);
  ++killed_;
  const Ending ending = server.finish();
  ASSERT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, ::testing::AnyOf(HasSubstr("the other side left"),
                                           HasSubstr("Work completion error")));
}

TEST_F(ShmPingpong, EachTransportIsASubcommand) {
  for (const char* transport : {"uc", "ud", "srq"}) {
    SCOPED_TRACE(transport);
    ToolProcess server(tool("verbatim"), {"pingpong", transport, "-e", "-n", "10", "-p", "0"});
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    const Ending client = run(tool(std::string("ibv_") + transport + "_pingpong"),
                              {"-e", "-n", "10", "localhost", "--port=" + std::to_string(*port)});
    expect_finished(server.finish(), client, transport == std::string("ud") ? 1024 : 4096, 10);
  }
}

TEST_F(ShmPingpong, MeetsByNameAndByIpv6) {
  expect_run({"-n", "10"}, 4096, 10, "localhost");
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool ipv6 =
      fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) == 0;
  if (fd >= 0) close(fd);
  if (!ipv6) GTEST_SKIP() << "no IPv6 on loopback";
  expect_run({"-n", "10"}, 4096, 10, "::1");
}

TEST_F(ShmPingpong, TheSubcommandAndTheClassicNameMeet) {
  ToolProcess server(tool("verbatim"), {"pingpong", "rc", "-n", "10", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  const Ending client = run(tool(), {"-n", "10", "localhost", "--port=" + std::to_string(*port)});
  expect_finished(server.finish(), client, 4096, 10);
}

TEST_F(ShmPingpong, SeveralPairsRunAtOnce) {
  ToolProcess first(tool(), {"-p", "0", "-e", "-c"});
  ToolProcess second(tool(), {"-p", "0", "-e", "-c"});
  const auto first_port = listening_port(first);
  const auto second_port = listening_port(second);
  ASSERT_TRUE(first_port && second_port);
  ToolProcess client(tool(), {"-e", "-c", "-p", std::to_string(*first_port), "127.0.0.1"});
  const Ending other = run(tool(), {"-e", "-c", "-p", std::to_string(*second_port), "127.0.0.1"});
  expect_finished(first.finish(), client.finish(), 4096, 1000);
  expect_finished(second.finish(), other, 4096, 1000);
}

TEST_F(ShmPingpong, EveryKindOfMemoryAndOfCallIsPlayed) {
  // On-demand paging, all of the address space, device memory, requests by calls.
  for (const char* option : {"-o", "-O", "-j", "-N"}) {
    SCOPED_TRACE(option);
    expect_run({option, "-n", "10"}, 4096, 10);
  }
}

TEST_F(ShmPingpong, TimestampsAreSummedUp) {
  ToolProcess server(tool(), {"-t", "-n", "10", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port) << server.finish().err;
  const Ending client = run(tool(), {"-t", "-n", "10", "-p", std::to_string(*port), "127.0.0.1"});
  for (const Ending& ending : {client, server.finish()}) {
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_THAT(ending.out, HasSubstr("10 iters in"));
    EXPECT_THAT(ending.out, HasSubstr("Average receive completion clock cycles = "));
  }
}

TEST_F(ShmPingpong, TheDataIsChecked) {
  // Only the server checks: what it gets is not the pattern, since the client does not send it.
  ToolProcess server(tool(), {"-c", "-s", "10000", "-n", "10", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  run(tool(), {"-s", "10000", "-n", "10", "-p", std::to_string(*port), "127.0.0.1"});
  const Ending ending = server.finish();
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.out, HasSubstr("invalid data in page 0\ninvalid data in page 1\n"));
  EXPECT_THAT(ending.err, HasSubstr("3 of 3 pages arrived wrong: is the client run with -c"));
}

TEST_F(ShmPingpong, CtrlCEndsAWaitingServer) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ToolProcess server(tool(), {"-p", "0"});
    ASSERT_TRUE(listening_port(server));
    server.signal(signal);
    const Ending ending = server.finish();
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.signal, signal);
  }
}

TEST_F(ShmPingpong, CtrlCEndsARunInEitherMode) {
  for (const char* mode : {"-c", "-e"}) {
    SCOPED_TRACE(mode);
    const Words options{mode, "-n", "1000000000", "-s", "8"};
    ToolProcess server(tool(), joined(options, {"-p", "0"}));
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    ToolProcess client(tool(), joined(options, {"-p", std::to_string(*port), "127.0.0.1"}));
    ASSERT_TRUE(client.wait_for_output("remote address"));
    client.signal(SIGINT);
    EXPECT_EQ(client.finish().signal, SIGINT);
    // Its peer notices by itself: a receiver by the end of the TCP conversation.
    const Ending ending = server.finish();
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(own_lines(ending.err), 2) << ending.err;
  }
}

TEST_F(ShmPingpong, AKilledPeerEndsARun) {
  ToolProcess server(tool(), {"-n", "1000000000", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  ToolProcess client(tool(), {"-n", "1000000000", "-p", std::to_string(*port), "127.0.0.1"});
  ASSERT_TRUE(client.wait_for_output("remote address"));
  client.signal(SIGKILL);
  killed_ = 1;
  EXPECT_EQ(client.finish().signal, SIGKILL);
  const Ending ending = server.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 1);
  // Verbs say so when the two had met on the device already; if not, its silence on TCP does.
  EXPECT_THAT(ending.err, ::testing::AnyOf(HasSubstr("Failed status"),
                                           HasSubstr("the other side left after 0 of")));
  // The fabric is as good as before for those who come next.
  expect_run({"-n", "10"}, 4096, 10);
}

TEST_F(ShmPingpong, AnEthernetLinkWantsAGid) {
  const Environment ethernet{{"VERBATIM_SHM_LINK", "ethernet"}};
  const Ending without = run(tool("ibv_rc_pingpong", ethernet), {"-p", "0"});
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.err, HasSubstr("choose one with -g"));
  for (const char* const row : {"0", "1", "2", "3"}) {
    ToolProcess server(tool("ibv_rc_pingpong", ethernet), {"-g", row, "-n", "10", "-p", "0"});
    const auto port = listening_port(server);
    ASSERT_TRUE(port) << server.finish().err;
    const Ending client = run(tool("ibv_rc_pingpong", ethernet),
                              {"-g", row, "-n", "10", "-p", std::to_string(*port), "127.0.0.1"});
    expect_finished(server.finish(), client, 4096, 10);
  }
}

}  // namespace
}  // namespace verbatim::tools
