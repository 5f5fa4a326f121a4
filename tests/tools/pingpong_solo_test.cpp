// SPDX-License-Identifier: BSD-2-Clause
// `ibv_rc_pingpong`, `uc`, `ud`, `srq` and `xsrq` print, say on TCP, ask of verbs and answer to
// each option what the classic programs do: both run alone over the fake library, which plays the
// peer's verbs, while this test plays the peer's TCP. So also the options are run that real
// software devices lack.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/classic.hpp"
#include "tests/tools/pattern.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

enum class Part { kClient, kServer };
const std::string kPeerAddress("0001:000002:000003:00000000000000000000000000000000\0", 52);
const std::string kNoAddress("0000:000000:000000:00000000000000000000000000000000\0", 52);
const std::string kDone("done\0", 5);
const std::string kXsrqAddress(
    "0001:000002:000002:000003:000004:00000000000000000000000000000000\0", 66);
const std::string kEnd("END\0", 4);
const std::string kNobody(32, '0');  // no GID
const std::string kUc = "ibv_uc_pingpong", kUd = "ibv_ud_pingpong", kSrq = "ibv_srq_pingpong";
const std::string kRc = "ibv_rc_pingpong", kXsrq = "ibv_xsrq_pingpong";

struct Scene {
  Words options;
  Environment environment;
  std::string tool = "ibv_rc_pingpong";
  std::size_t pairs = 16;  // of queue pairs, in the tool that has several
};

void PrintTo(const Scene& scene, std::ostream* out) {
  *out << scene.tool << ::testing::PrintToString(scene.options)
       << ::testing::PrintToString(scene.environment);
}

struct Play {
  Ending ending;
  std::string wire;  // what the program sent on TCP, its random PSN blanked
  std::string told;  // what it asked of verbs (FAKE_VERBS_TELLS)
};

std::string without_psn(std::string wire, bool xsrq) {
  const std::size_t size = (xsrq ? kXsrqAddress : kPeerAddress).size();
  for (std::size_t at = xsrq ? 19 : 12; at + 6 <= wire.size(); at += size) {
    wire.replace(at, 6, "PSNPSN");
  }
  return wire;
}

/// What the peer of a scene says of itself: 256 addresses where receives are shared.
std::string peer_words(const Scene& scene) {
  if (scene.tool == kXsrq) return kXsrqAddress;
  if (scene.tool != kSrq) return kPeerAddress;
  std::string words;
  for (std::size_t pair = 0; pair < 256; ++pair) {
    words += pair < scene.pairs ? kPeerAddress : kNoAddress;
  }
  return words;
}

std::string without_chance(const std::string& out) {
  // The classic clock counts microseconds, of which a message to nobody may take none.
  static const Pattern kPsn("PSN (0x)?[0-9a-f]{6}");
  static const Pattern kTime("in [0-9.]+ seconds = ([0-9.]+|inf) ");
  return kTime.replace_all(kPsn.replace_all(out, "PSN ######"), "in #.## seconds = #.## ");
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// All that comes until `size` bytes or the end of the stream.
std::string hear(int fd, std::size_t size) {
  std::string bytes;
  pollfd ready{fd, POLLIN, 0};
  while (bytes.size() < size && poll(&ready, 1, 20'000) > 0) {
    char chunk[64];
    const ssize_t got = recv(fd, chunk, std::min(sizeof(chunk), size - bytes.size()), 0);
    if (got <= 0) break;
    bytes.append(chunk, static_cast<std::size_t>(got));
  }
  return bytes;
}

Play play_against_client(Program program, Words words, const std::string& peer) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  words.insert(words.end(), {"-p", std::to_string(ntohs(address.sin_port)), "127.0.0.1"});
  // There the server begins.
  const bool xsrq = peer.size() == kXsrqAddress.size();
  if (xsrq) program.environment.emplace("FAKE_VERBS_GREETS", "pattern");
  ToolProcess process(program, words);
  Play play;
  std::string wire;
  pollfd ready{listener, POLLIN, 0};
  while (poll(&ready, 1, 5) == 0 && process.running_after(std::chrono::milliseconds(1))) {
  }
  if ((ready.revents & POLLIN) != 0) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    wire = hear(fd, peer.size());
    send(fd, peer.data(), peer.size(), MSG_NOSIGNAL);
    wire += hear(fd, (xsrq ? kEnd : kDone).size());
    if (xsrq) send(fd, kEnd.data(), kEnd.size(), MSG_NOSIGNAL);
    close(fd);
  }
  close(listener);
  play.ending = process.finish();
  play.wire = without_psn(wire, xsrq);
  return play;
}

Play play_against_server(Program program, Words words, const std::string& peer) {
  const int port = free_port();
  words.insert(words.end(), {"-p", std::to_string(port)});
  const bool xsrq = peer.size() == kXsrqAddress.size();
  if (!xsrq) program.environment.emplace("FAKE_VERBS_GREETS", "pattern");
  ToolProcess process(program, words);
  const sockaddr_in address = loopback(port);
  std::string wire;
  do {  // until it listens, or has ended and so will not
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      send(fd, peer.data(), peer.size(), MSG_NOSIGNAL);
      wire = hear(fd, peer.size());
      const std::string& last = xsrq ? kEnd : kDone;
      send(fd, last.data(), last.size(), MSG_NOSIGNAL);
      if (xsrq) wire += hear(fd, kEnd.size());
      close(fd);
      break;
    }
    close(fd);
  } while (process.running_after(std::chrono::milliseconds(5)));
  Play play;
  play.ending = process.finish();
  play.wire = without_psn(wire, xsrq);
  return play;
}

Play play(Part part, Program program, const Words& words, const std::string& peer = kPeerAddress) {
  std::string file = "/tmp/vbt-told-XXXXXX";
  close(mkstemp(file.data()));
  program.environment["FAKE_VERBS_TELLS"] = file;
  Play play = part == Part::kClient ? play_against_client(program, words, peer)
                                    : play_against_server(program, words, peer);
  std::ifstream told(file);
  play.told.assign(std::istreambuf_iterator<char>(told), {});
  unlink(file.c_str());
  return play;
}

Environment with_rc(Environment environment, const std::string& iters = "1000") {
  environment["FAKE_VERBS_RC"] = "1";
  environment["FAKE_VERBS_SEED"] = "3";
  environment["FAKE_VERBS_ARRIVALS"] = iters;
  return environment;
}

/// What was asked of verbs, each thing once: in what order, and how often, is a program's own. So
/// is how many receives a program posts that has no option for it.
std::set<std::string> distinct_lines(const std::string& text, bool xsrq) {
  std::istringstream lines(text);
  std::set<std::string> distinct;
  for (std::string line; std::getline(lines, line);) {
    if (!xsrq || !(line.starts_with("receives") || line.starts_with("posted")))
      distinct.insert(line);
  }
  return distinct;
}

/// Both programs through one scene, in both parts.
void expect_same(const Scene& scene, std::string iters = "1000") {
  const bool xsrq = scene.tool == kXsrq;
  if (xsrq) iters = "5";
  const Environment environment = with_rc(scene.environment, iters);
  for (const Part part : {Part::kClient, Part::kServer}) {
    if (part == Part::kClient && environment.count("FAKE_VERBS_GREETS") != 0) continue;
    SCOPED_TRACE((part == Part::kClient ? "client " : "server ") + ::testing::PrintToString(scene));
    const std::string peer = peer_words(scene);
    const Play theirs = play(part, classic_tool(scene.tool, environment), scene.options, peer);
    const Play ours = play(part, fake_tool(scene.tool, environment), scene.options, peer);
    ASSERT_TRUE(theirs.ending.in_time && ours.ending.in_time);
    EXPECT_EQ(without_chance(ours.ending.out), without_chance(theirs.ending.out));
    EXPECT_EQ(ours.ending.status, theirs.ending.status);
    EXPECT_EQ(ours.wire, theirs.wire);
    if (theirs.ending.status == 0) {
      EXPECT_EQ(distinct_lines(ours.told, xsrq), distinct_lines(theirs.told, xsrq));
    }
    // Ours is one line, which begins with the first words of theirs.
    const std::string& err = theirs.ending.err;
    EXPECT_THAT(ours.ending.err, StartsWith(err.substr(0, err.find('\n'))));
    EXPECT_LE(std::count(ours.ending.err.begin(), ours.ending.err.end(), '\n'), 1);
  }
}

class Scenes : public ::testing::TestWithParam<Scene> {
 protected:
  void SetUp() override { VBT_NEEDS_CLASSIC(GetParam().tool); }
};

TEST_P(Scenes, AreLikeTheClassicProgramS) { expect_same(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Options, Scenes,
    ::testing::Values(Scene{{}, {}}, Scene{{"-e"}, {}}, Scene{{"-t"}, {}}, Scene{{"-N"}, {}},
                      Scene{{"-j", "-c"}, {}}, Scene{{"-o"}, {}}, Scene{{"-O", "-P"}, {}},
                      Scene{{"-oPc"}, {}}, Scene{{"-tNe"}, {}}, Scene{{"-s", "1", "-c"}, {}},
                      Scene{{"-s", "100000", "-c"}, {}}, Scene{{"-r", "1"}, {}},
                      Scene{{"-g", "3"}, {}}, Scene{{"-l", "3", "-m", "2048"}, {}},
                      Scene{{"--ib-dev=fake1", "--rx-depth=20", "--mtu", "256"}, {}},
                      Scene{{"-d", "nobody"}, {}}));
INSTANTIATE_TEST_SUITE_P(MissingFeatures, Scenes,
                         ::testing::Values(Scene{{"-o"}, {{"FAKE_VERBS_LACKS", "odp"}}},
                                           Scene{{"-o"}, {{"FAKE_VERBS_LACKS", "rc_odp"}}},
                                           Scene{{"-O"}, {{"FAKE_VERBS_LACKS", "iodp"}}},
                                           Scene{{"-t"}, {{"FAKE_VERBS_LACKS", "ts"}}},
                                           Scene{{"-j"}, {{"FAKE_VERBS_LACKS", "dm"}}},
                                           Scene{{"-j"}, {{"FAKE_VERBS_LACKS", "dm_size"}}},
                                           Scene{{"-oj"}, {}}, Scene{{"-P"}, {}},
                                           Scene{{"-jt"}, {{"FAKE_VERBS_LACKS", "ts,dm"}}},
                                           Scene{{"-oPt"}, {{"FAKE_VERBS_LACKS", "ts,odp"}}},
                                           Scene{{}, {{"FAKE_VERBS_LACKS", "lid"}}}));
INSTANTIATE_TEST_SUITE_P(
    FailingVerbs, Scenes,
    ::testing::Values(
        Scene{{}, {{"FAKE_VERBS_FAIL", "open"}}}, Scene{{}, {{"FAKE_VERBS_FAIL", "query_port"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "alloc_pd"}}}, Scene{{}, {{"FAKE_VERBS_FAIL", "reg_mr"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "create_cq"}}},
        Scene{{"-te"}, {{"FAKE_VERBS_FAIL", "create_cq"}}},
        Scene{{"-N"}, {{"FAKE_VERBS_FAIL", "create_qp"}}}, Scene{{}, {{"FAKE_VERBS_FAIL", "INIT"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "RTR"}}}, Scene{{}, {{"FAKE_VERBS_FAIL", "RTS"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "post_recv"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "post_send"}}},
        Scene{{"-N"}, {{"FAKE_VERBS_FAIL", "post_send"}}}, Scene{{}, {{"FAKE_VERBS_FAIL", "send"}}},
        Scene{{"-e"}, {{"FAKE_VERBS_FAIL", "recv"}}}, Scene{{"-t"}, {{"FAKE_VERBS_FAIL", "send"}}},
        Scene{{"-oP"}, {{"FAKE_VERBS_FAIL", "advise_mr"}}},
        Scene{{"-g", "2"}, {{"FAKE_VERBS_FAIL", "query_gid"}}},
        Scene{{}, {{"FAKE_VERBS_FAIL", "close"}}}, Scene{{}, {{"FAKE_VERBS_DEVICES", "0"}}},
        Scene{{}, {{"FAKE_VERBS_DEVICES", "-1"}}}));

INSTANTIATE_TEST_SUITE_P(Unreliable, Scenes,
                         ::testing::Values(Scene{{}, {}, kUc}, Scene{{"-e", "-c"}, {}, kUc},
                                           Scene{{"-s", "100000", "-c"}, {}, kUc},
                                           Scene{{"-r", "1"}, {}, kUc},
                                           Scene{{"-g", "3", "-l", "3", "-m", "2048"}, {}, kUc},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "RTR"}}, kUc},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "RTS"}}, kUc},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "send"}}, kUc}));
INSTANTIATE_TEST_SUITE_P(Datagrams, Scenes,
                         ::testing::Values(Scene{{}, {}, kUd}, Scene{{"-e", "-c"}, {}, kUd},
                                           Scene{{"-s", "4096", "-c"}, {}, kUd},
                                           Scene{{"-s", "4097"}, {}, kUd},
                                           Scene{{"-g", "3", "-l", "3", "-r", "1"}, {}, kUd},
                                           Scene{{"--ib-dev=fake1", "--rx-depth=20"}, {}, kUd},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "INIT"}}, kUd},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "RTS"}}, kUd},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "create_ah"}}, kUd},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "recv"}}, kUd}));
INSTANTIATE_TEST_SUITE_P(SharedReceives, Scenes,
                         ::testing::Values(Scene{{}, {}, kSrq}, Scene{{"-e", "-c"}, {}, kSrq},
                                           Scene{{"-q", "1"}, {}, kSrq, 1},
                                           Scene{{"-q", "20", "-r", "20"}, {}, kSrq, 20},
                                           Scene{{"-q", "255", "-s", "8"}, {}, kSrq, 255},
                                           Scene{{"--num-qp=17", "-r", "10"}, {}, kSrq},
                                           Scene{{"-o"}, {}, kSrq},
                                           Scene{{"-o"}, {{"FAKE_VERBS_LACKS", "srq_odp"}}, kSrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "create_srq"}}, kSrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "create_qp"}}, kSrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "INIT"}}, kSrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "RTR"}}, kSrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "post_recv"}}, kSrq}));

INSTANTIATE_TEST_SUITE_P(ExtendedConnections, Scenes,
                         ::testing::Values(Scene{{}, {}, kXsrq}, Scene{{"-e"}, {}, kXsrq},
                                           Scene{{"-o"}, {}, kXsrq},
                                           Scene{{"-s", "100000"}, {}, kXsrq},
                                           Scene{{"-g", "3", "-l", "3", "-m", "512"}, {}, kXsrq},
                                           Scene{{"--ib-dev=fake1"}, {}, kXsrq},
                                           Scene{{"-d", "nobody"}, {}, kXsrq},
                                           Scene{{"-o"}, {{"FAKE_VERBS_LACKS", "xrc_odp"}}, kXsrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "open_xrcd"}}, kXsrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "create_srq"}}, kXsrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "create_qp"}}, kXsrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "INIT"}}, kXsrq},
                                           Scene{{}, {{"FAKE_VERBS_FAIL", "post_recv"}}, kXsrq}));

TEST(Pingpong, CountsOddNumbersOfMessagesAsTheClassicProgramDoes) {
  VBT_NEEDS_CLASSIC("ibv_rc_pingpong");
  expect_same({{"-n", "1"}, {}}, "1");
  expect_same({{"-n", "7", "-r", "3"}, {}}, "7");
}

TEST(Pingpong, ANoisyMessageIsNamedAndFailsTheCheck) {
  const Environment environment = with_rc({{"FAKE_VERBS_GREETS", "noise"}});
  const Play ours =
      play(Part::kServer, fake_tool("ibv_rc_pingpong", environment), {"-c", "-s8192"});
  EXPECT_THAT(ours.ending.out,
              HasSubstr("usec/iter\ninvalid data in page 0\ninvalid data in page 1\n"));
  EXPECT_EQ(ours.ending.status, 1) << "corrupt data is no success (the classic program's 0 is)";
  if (classic_installed("ibv_rc_pingpong")) {
    const Play theirs =
        play(Part::kServer, classic_tool("ibv_rc_pingpong", environment), {"-c", "-s8192"});
    EXPECT_EQ(without_chance(ours.ending.out), without_chance(theirs.ending.out));
  }
}

TEST(Pingpong, APeerThatLeftIsNoticed) {
  // Three messages come, and then no more; the conversation on TCP has ended long ago.
  const Environment environment = with_rc({}, "3");
  for (const Words& options : {Words{"-n", "10"}, Words{"-n", "10", "-e"}}) {
    const Play ours = play(Part::kClient, fake_tool("ibv_rc_pingpong", environment), options);
    EXPECT_TRUE(ours.ending.in_time);
    EXPECT_EQ(ours.ending.status, 1);
    EXPECT_THAT(ours.ending.err, StartsWith("the other side left after 3 of 10 messages"));
  }
}

class EachTool : public ::testing::TestWithParam<std::pair<std::string, std::size_t>> {};

TEST_P(EachTool, AcceptsEachOptionThatTheClassicProgramLists) {
  const auto& [tool, how_many] = GetParam();
  VBT_NEEDS_CLASSIC(tool);
  const std::string usage = run(classic_tool(tool, {}), {"-h"}).out;
  const Pattern line("  -([A-Za-z]), --([a-z_-]+)(=<[^>]*>)?");
  const auto options = line.find_all(usage);
  for (const auto& option : options) {
    SCOPED_TRACE(option[0]);
    // "1" suits every option that takes a value but the MTU and the name of a device. A last
    // option that exists nowhere tells whether all before it were understood.
    const std::string value = option[1] == "m" ? "1024" : option[1] == "d" ? "fake0" : "1";
    Words by_letter{"-" + option[1]}, by_name{"--" + option[2]};
    if (!option[3].empty()) {
      by_letter.push_back(value);
      by_name.back() += "=" + value;
    }
    for (Words* words : {&by_letter, &by_name}) {
      words->push_back("--no-such-option");
      const Ending ours = run(fake_tool(tool, with_rc({})), *words);
      EXPECT_EQ(ours.status, 1);
      EXPECT_EQ(ours.err, tool + ": unrecognized option '--no-such-option'\n");
      EXPECT_EQ(ours.out, usage);
    }
  }
  EXPECT_EQ(options.size(), how_many);
}

INSTANTIATE_TEST_SUITE_P(Pingpongs, EachTool,
                         ::testing::Values(std::pair{std::string("ibv_rc_pingpong"), 17u},
                                           std::pair{kUc, 11u}, std::pair{kUd, 10u},
                                           std::pair{kSrq, 13u}, std::pair{kXsrq, 11u}));

/// An option of the common ones, what it makes of verbs, and nonsense that is refused.
struct Meaning {
  std::string letter;
  std::string name;
  std::string value;  // empty: it takes none
  std::string told;
  std::string nonsense;
  std::string without = "";  // the tools that do not have it
};
const Meaning kMeanings[] = {
    {"d", "ib-dev", "fake1", "device fake1", "nobody"},
    {"i", "ib-port", "2", "port 2", "3"},
    {"m", "mtu", "512", "mtu 2", "1000", kUd},
    {"l", "sl", "5", "path sl 5 port 1 global 1 gid 0", "16"},
    {"s", "size", "100", "send 100", "0"},
    {"n", "iters", "3", "", "0", kXsrq},
    {"n", "num_tests", "3", "", "0", kRc + kUc + kUd + kSrq},
    {"r", "rx-depth", "20", "receives 20", "0", kXsrq},
    {"e", "events", "", "armed", "1"},
    {"g", "gid-idx", "3", "path sl 0 port 1 global 1 gid 3", "-2"},
};

struct Asked {
  std::string tool;
  Meaning option;
};
void PrintTo(const Asked& asked, std::ostream* out) {
  *out << asked.tool << " -" << asked.option.letter;
}

std::vector<Asked> everything_asked() {
  std::vector<Asked> all;
  for (const std::string& tool : {kRc, kUc, kUd, kSrq, kXsrq}) {
    for (const Meaning& option : kMeanings)
      if (option.without.find(tool) == std::string::npos) all.push_back({tool, option});
  }
  return all;
}

/// "ibv_rc_pingpong": "rc".
std::string transport_of(const std::string& tool) { return tool.substr(4, tool.size() - 13); }

class EachOption : public ::testing::TestWithParam<Asked> {
 protected:
  /// The program by its classic name, or as a subcommand, whose words come before the others.
  static Program called(bool subcommand, Words& words, const std::string& iters) {
    const std::string& tool = GetParam().tool;
    const Environment environment = with_rc({{"FAKE_VERBS_PORTS", "2"}}, iters);
    if (!subcommand) return fake_tool(tool, environment);
    words.insert(words.begin(), {"pingpong", transport_of(tool)});
    return fake_tool("verbatim", environment);
  }
  /// As one word by its letter, and by its name.
  static std::vector<Words> spellings(const std::string& value) {
    const Meaning& option = GetParam().option;
    if (option.value.empty() && value.empty()) return {{"-" + option.letter}, {"--" + option.name}};
    std::vector<Words> words{{"--" + option.name + "=" + value}};
    if (!option.value.empty()) words.push_back({"-" + option.letter, value});
    return words;
  }
};

TEST_P(EachOption, DoesWhatItSays) {
  const auto& [tool, option] = GetParam();
  // A peer that has a GID, so that ours is asked for.
  std::string peer = peer_words({{}, {}, tool, 1});
  peer.replace(peer.find(kNobody), kNobody.size(), "fe800000000000000000000000000009");
  const bool is_count = option.letter == "n";
  const auto told = [&, &tool = tool, &option = option](bool subcommand, Words words) {
    if (option.letter != "g") words.insert(words.end(), {"-g", "0"});
    if (!is_count) words.insert(words.end(), {"-n", "2"});
    if (tool == kSrq) words.insert(words.end(), {"-q", "1"});
    const std::string iters = is_count ? option.value : "2";
    const Program program = called(subcommand, words, iters);
    const Play ours = play(Part::kClient, program, words, peer);
    EXPECT_EQ(ours.ending.status, 0) << ours.ending.err;
    return ours.told;
  };
  bool subcommand = false;
  for (const Words& words : spellings(option.value)) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const std::string asked = told(subcommand = !subcommand, words);
    if (is_count) {
      EXPECT_EQ(Pattern("send [0-9]+").find_all(asked).size(), 3u) << asked;
    } else {
      EXPECT_EQ(distinct_lines(asked, false).count(option.told), 1u) << asked;
    }
  }
  if (!is_count && option.letter != "g") {
    EXPECT_EQ(distinct_lines(told(true, {}), false).count(option.told), 0u);
  }
}

TEST_P(EachOption, RefusesNonsense) {
  const Meaning& option = GetParam().option;
  bool subcommand = false;
  for (const Words& words : spellings(option.nonsense)) {
    SCOPED_TRACE(::testing::PrintToString(words));
    Words all = words;
    const Program program = called(subcommand = !subcommand, all, "2");
    const Ending ours = run(program, all);
    EXPECT_EQ(ours.status, 1);
    EXPECT_EQ(std::count(ours.err.begin(), ours.err.end(), '\n'), 1) << ours.err;
    EXPECT_THAT(ours.err, option.letter == "e"   ? HasSubstr("--events")
                          : option.letter == "d" ? HasSubstr("there is: fake0 fake1")
                                                 : HasSubstr("(-" + option.letter + ")"));
  }
}

INSTANTIATE_TEST_SUITE_P(Pingpongs, EachOption, ::testing::ValuesIn(everything_asked()),
                         [](const ::testing::TestParamInfo<Asked>& asked) {
                           return transport_of(asked.param.tool) + "_" + asked.param.option.letter;
                         });

TEST(Pingpong, SaysWhatIsWrongWithAnArgument) {
  const auto err = [](const Words& options) {
    const Ending ending = run(fake_tool("ibv_rc_pingpong", with_rc({})), options);
    EXPECT_EQ(ending.status, 1);
    EXPECT_THAT(ending.out, Not(HasSubstr("remote address")));
    EXPECT_EQ(std::count(ending.err.begin(), ending.err.end(), '\n'), 1) << ending.err;
    return ending.err;
  };
  for (const char* size : {"0", "-1", "1000000000000", "1k", "", "x"}) {
    EXPECT_THAT(err({"-s", size}), HasSubstr("is not a number from 1 to 2147483648 (-s)"));
  }
  EXPECT_THAT(err({"-s", "1073741825"}), HasSubstr("more than fake0 sends in one message"));
  EXPECT_THAT(err({"-r", "100000"}), HasSubstr("choose a smaller -r"));
  EXPECT_THAT(err({"-r", "0"}), HasSubstr("(-r)"));
  EXPECT_THAT(err({"-n", "0"}), HasSubstr("(-n)"));
  EXPECT_THAT(err({"-p", "65536"}), HasSubstr("(-p)"));
  EXPECT_THAT(err({"-i", "0"}), HasSubstr("(-i)"));
  EXPECT_THAT(err({"-i", "2"}), HasSubstr("fake0 has 1 port, not 2 (-i)"));
  EXPECT_THAT(err({"-l", "16"}), HasSubstr("(-l)"));
  EXPECT_THAT(err({"-g", "-2"}), HasSubstr("(-g)"));
  EXPECT_THAT(err({"-m", "1000"}), HasSubstr("none of 256, 512, 1024, 2048, 4096 (-m)"));
  EXPECT_THAT(err({"-d", "nobody"}), HasSubstr("there is: fake0 fake1"));
  EXPECT_THAT(err({"-p", "0", "localhost"}), HasSubstr("is for servers"));
  EXPECT_THAT(err({"no-such-host.invalid"}).substr(0, 22), "'no-such-host.invalid'");
}

TEST(Pingpong, NeedsAGidOnEthernet) {
  const Environment environment = with_rc({{"FAKE_VERBS_LACKS", "infiniband"}});
  const Ending without = run(fake_tool("ibv_rc_pingpong", environment), {});
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.err, HasSubstr("is Ethernet, which addresses by GID: choose one with -g"));
  const Play with = play(Part::kServer, fake_tool("ibv_rc_pingpong", environment), {"-g", "3"});
  EXPECT_EQ(with.ending.status, 0) << with.ending.err;
}

}  // namespace
}  // namespace verbatim::tools
