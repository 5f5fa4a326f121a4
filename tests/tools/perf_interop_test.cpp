// SPDX-License-Identifier: BSD-2-Clause
// The distribution's perftest, over libibverbs.so.1 of the build, at one end, and `verbatim perf`
// at the other: they measure together, and print the same lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <ostream>
#include <regex>
#include <set>
#include <string>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;

struct Pair {
  std::string tool;
  Words options;
};
void PrintTo(const Pair& test, std::ostream* out) {
  *out << test.tool << ::testing::PrintToString(test.options);
}

class Perftest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!classic_installed("ib_send_bw")) {
      GTEST_SKIP() << "no /usr/bin/ib_send_bw here (Debian: perftest)";
    }
  }
  Program ours(const std::string& name) { return real_tool(name, fabric_.environment()); }
  Program theirs() { return real_tool("verbatim", fabric_.environment()); }
  static Words called(const std::string& name, const Words& options) {
    return joined({"exec", "--", "/usr/bin/" + name, "-d", "shm0", "-F"}, options);
  }
  /// A server that says nothing, and a client of ours, which looks for it until it listens.
  PerfEndings play_theirs(const std::string& tool, const Words& server, const Words& client) {
    const std::string port = std::to_string(free_port());
    ToolProcess process(theirs(), called(tool, joined(server, {"-p", port})));
    Ending ending = run(ours(tool), joined(client, {"-p", port, "127.0.0.1"}));
    if (ending.status != 0) process.signal(SIGKILL);  // perftest may wait for ever
    return {process.finish(), std::move(ending)};
  }
  PrivateFabric fabric_;
};

/// They measured as many sizes and, where both know it, as many messages.
void expect_as_much(const PerfEndings& endings) {
  expect_both_finished(endings);
  const auto server = perf_rows(endings.server.out), client = perf_rows(endings.client.out);
  if (server.empty()) return;  // READ and atomics have nothing to say at a server of latency
  ASSERT_EQ(server.size(), client.size()) << endings.server.out << endings.client.out;
  for (std::size_t row = 0; row < server.size(); ++row) EXPECT_EQ(server[row][0], client[row][0]);
}

class PerftestPlays : public Perftest, public ::testing::WithParamInterface<Pair> {};

TEST_P(PerftestPlays, AsAClientOfOurs) {
  const Pair& test = GetParam();
  expect_as_much(
      play_our_server(ours(test.tool), test.options, theirs(), called(test.tool, test.options)));
}

TEST_P(PerftestPlays, AsAServerOfOurs) {
  const Pair& test = GetParam();
  expect_as_much(play_theirs(test.tool, test.options, test.options));
}

INSTANTIATE_TEST_SUITE_P(
    Rc, PerftestPlays,
    ::testing::Values(Pair{"ib_send_lat", {"-n", "50"}}, Pair{"ib_send_bw", {"-n", "50"}},
                      Pair{"ib_write_lat", {"-n", "20"}}, Pair{"ib_write_bw", {"-n", "50"}},
                      Pair{"ib_read_lat", {"-n", "50"}}, Pair{"ib_read_bw", {"-n", "50"}},
                      Pair{"ib_atomic_lat", {"-n", "50"}}, Pair{"ib_atomic_bw", {"-n", "50"}}));
INSTANTIATE_TEST_SUITE_P(Others, PerftestPlays,
                         ::testing::Values(Pair{"ib_send_lat", {"-c", "UC", "-n", "50"}},
                                           Pair{"ib_send_bw",
                                                {"-c", "XRC", "-b", "-q", "2", "-n", "50"}},
                                           Pair{"ib_write_lat", {"-c", "XRC", "-n", "20"}},
                                           Pair{"ib_atomic_bw", {"-c", "XRC", "-n", "50"}}));
INSTANTIATE_TEST_SUITE_P(Options, PerftestPlays,
                         ::testing::Values(Pair{"ib_send_bw", {"-c", "UD", "-b", "-n", "50"}},
                                           Pair{"ib_send_bw",
                                                {"-q", "8", "--use-srq", "-e", "-n", "50"}},
                                           Pair{"ib_write_bw", {"-l", "16", "-q", "2", "-n", "64"}},
                                           Pair{"ib_write_lat", {"-D", "1", "-x", "0"}}));

INSTANTIATE_TEST_SUITE_P(
    Rarer, PerftestPlays,
    ::testing::Values(Pair{"ib_send_bw", {"--reversed", "-n", "50"}},
                      Pair{"ib_read_bw", {"--reversed", "-n", "50"}},
                      Pair{"ib_send_bw",
                           {"-g", "--force-link", "Ethernet", "-s", "64", "-n", "50"}},
                      Pair{"ib_send_lat", {"-g", "--force-link", "Ethernet", "-n", "50"}},
                      Pair{"ib_send_bw", {"--recv_post_list", "10", "-n", "50"}},
                      Pair{"ib_write_bw", {"--mr_per_qp", "-q", "3", "-n", "50"}},
                      Pair{"ib_send_bw", {"-D", "1", "-f", "0", "--cpu_util"}}));

/// What only one of the two says, or says otherwise.
std::vector<std::string> common_form(const std::string& out) {
  std::vector<std::string> form = perf_form(out);
  std::erase_if(form, [](const std::string& line) {
    return line.empty() || line.find("Device not recognized") != std::string::npos;
  });
  return form;
}

TEST_F(Perftest, PrintsWhatOursPrints) {
  for (const Pair& test : {Pair{"ib_send_lat", {"-n", "20"}},
                           Pair{"ib_write_bw", {"-n", "20", "-x", "0", "--report_gbits"}},
                           Pair{"ib_atomic_bw", {"-n", "20", "-c", "XRC", "-b"}}}) {
    const PerfEndings one = play_theirs(test.tool, test.options, test.options);
    const PerfEndings two =
        play_our_server(ours(test.tool), test.options, theirs(), called(test.tool, test.options));
    expect_both_finished(one);
    expect_both_finished(two);
    // Theirs says of some options that it takes them; the report is what scripts read.
    const auto report = [](const Ending& ending) {
      const std::size_t title = ending.out.find("                    ");
      return common_form(ending.out.substr(std::min(title, ending.out.size())));
    };
    EXPECT_EQ(report(one.client), report(two.client));
    EXPECT_EQ(report(two.server), report(one.server));
  }
}

// Of UD, since of others perftest draws megabytes of random numbers first.
TEST_F(Perftest, GoesThroughAllSizes) {
  const Words options = {"-c", "UD", "-a", "-n", "10"};
  const PerfEndings endings =
      play_our_server(ours("ib_send_bw"), options, theirs(), called("ib_send_bw", options));
  expect_as_much(endings);
  EXPECT_EQ(perf_rows(endings.client.out).size(), 12u);
}

TEST_F(Perftest, OfAnotherSizeIsTold) {
  const PerfEndings longer =
      play_our_server(ours("ib_send_lat"), {"-s", "64", "-n", "20"}, theirs(),
                      called("ib_send_lat", {"-s", "128", "-n", "20"}));
  EXPECT_EQ(longer.server.status, 1);
  EXPECT_THAT(longer.server.err, HasSubstr("the same -s, -q and -c?"));
  const PerfEndings past =
      play_theirs("ib_write_bw", {"-s", "64", "-n", "20"}, {"-s", "8192", "-n", "20"});
  EXPECT_EQ(past.client.status, 1);
  EXPECT_THAT(past.client.err, HasSubstr("(remote access error): does the other side run"));
}

/// The long names in a help text.
std::set<std::string> names_in(const std::string& help) {
  static const std::regex kOption("(?:^|\n)[ \t]+(?:-[A-Za-z], )?--([A-Za-z][-_A-Za-z0-9]*)");
  std::set<std::string> names;
  for (std::sregex_iterator at(help.begin(), help.end(), kOption), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// Whatever perftest's own help names, some test of ours takes or refuses with a reason.
TEST_F(Perftest, HasNoOptionThatOursDoesNotKnow) {
  std::set<std::string> theirs, known;
  for (const char* tool : {"ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw",
                           "ib_read_lat", "ib_read_bw", "ib_atomic_lat", "ib_atomic_bw"}) {
    theirs.merge(names_in(run(Program{"/usr/bin/" + std::string(tool), tool, {}}, {"-h"}).out));
    known.merge(names_in(run(ours(tool), {"-h"}).out));
  }
  EXPECT_GT(theirs.size(), 60u);
  for (const std::string& name : theirs) EXPECT_TRUE(known.contains(name)) << name;
}

TEST_F(Perftest, WithAGidWhereOursHasNoneIsTold) {
  const PerfEndings endings = play_our_server(ours("ib_write_bw"), {"-n", "20"}, theirs(),
                                              called("ib_write_bw", {"-x", "0", "-n", "20"}));
  EXPECT_EQ(endings.server.status, 1);
  EXPECT_THAT(endings.server.err, HasSubstr("with a GID, this one without: give both the same -x"));
}

}  // namespace
}  // namespace verbatim::tools
