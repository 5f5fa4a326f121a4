// SPDX-License-Identifier: BSD-2-Clause
//
// `verbatim top` over two processes that talk in a fabric of their own: what it says of each, that
// it sees them go, and that nonsense beside them does not disturb it. Other tests' processes are
// seen too: only the two are looked for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/tools/classic.hpp"
#include "tests/tools/private_fabric.hpp"
#include "tests/tools/top_table.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class Top : public ::testing::Test {
 protected:
  Program tool() { return real_tool("verbatim", fabric_.environment()); }
  Json look() {
    const Ending ending = run(tool(), {"top", "--json"});
    EXPECT_EQ(ending.status, 0);
    EXPECT_EQ(ending.err, "");
    return Json::parse(ending.out, nullptr, false);
  }
  /// What is said of a process; null when nothing is.
  static Json of(const Json& all, pid_t pid) {
    for (const Json& process : all.at("processes"))
      if (process.at("pid") == pid) return process;
    return nullptr;
  }

  PrivateFabric fabric_;
};

/// Two processes in the middle of a long game.
struct Game {
  explicit Game(const Program& tool)
      : server(tool, {"pingpong", "rc", "-n", "1000000000", "-p", "0"}) {
    const auto port = listening_port(server);
    if (!port) throw std::runtime_error("no server");
    client.emplace(tool, std::vector<std::string>{"pingpong", "rc", "-n", "1000000000", "-p",
                                                  std::to_string(*port), "127.0.0.1"});
    if (!client->wait_for_output("remote address")) throw std::runtime_error("no client");
  }
  ToolProcess server;
  std::optional<ToolProcess> client;
};

TEST_F(Top, ShowsBothEndsOfAConnection) {
  Game game(tool());
  Json server, client;
  for (int i = 0; i < 1000; ++i) {
    const Json all = look();
    ASSERT_TRUE(all.is_object());
    server = of(all, game.server.pid());
    client = of(all, game.client->pid());
    if (server.is_object() && client.is_object() &&
        client["queue_pairs"][0]["received_messages"] > 100)
      break;
  }
  ASSERT_TRUE(server.is_object() && client.is_object());
  EXPECT_EQ(server["program"], "verbatim");
  EXPECT_EQ(server["cqs"], 1);
  EXPECT_EQ(server["keys"], 1);
  EXPECT_EQ(server["srqs"], 0);
  ASSERT_EQ(server["queue_pairs"].size(), 1u);
  const Json& a = server["queue_pairs"][0];
  const Json& b = client["queue_pairs"][0];
  EXPECT_EQ(a["type"], "RC");
  EXPECT_EQ(a["state"], "RTS");
  EXPECT_EQ(a["peer_qpn"], b["qpn"]);
  EXPECT_EQ(a["peer_pid"], game.client->pid());
  EXPECT_EQ(b["peer_qpn"], a["qpn"]);
  EXPECT_EQ(b["peer_pid"], game.server.pid());
  EXPECT_GT(b["sent_messages"], 100);
  EXPECT_GT(b["receives_posted"], 0);
  EXPECT_LE(b["receives_posted"], b["receive_depth"]);
  EXPECT_EQ(b["errors"], 0);
  // The default message has 4096 bytes. Words that are read one after another may be one apart.
  const auto bytes = b["received_bytes"].get<std::uint64_t>();
  const auto messages = b["received_messages"].get<std::uint64_t>();
  EXPECT_NEAR(static_cast<double>(bytes) / 4096, static_cast<double>(messages), 2000);
  EXPECT_EQ(bytes % 4096, 0u);
}

TEST_F(Top, PrintsATableOnceWhenItsOutputIsNoTerminal) {
  Game game(tool());
  const Ending ending = run(tool(), {"top"});
  EXPECT_EQ(ending.status, 0);
  EXPECT_THAT(ending.out, HasSubstr(std::to_string(game.server.pid()) + " verbatim"));
  EXPECT_THAT(ending.out, HasSubstr("@" + std::to_string(game.server.pid())));
  EXPECT_EQ(ending.out.find('\x1b'), std::string::npos);
  const Ending twice = run(tool(), {"top", "--count=2", "--interval=0.01"});
  EXPECT_EQ(twice.status, 0);
  const std::size_t second = twice.out.rfind("    PID");
  EXPECT_NE(twice.out.find("PROGRAM"), twice.out.rfind("PROGRAM"));
  // What came between the two looks, which were 10 ms apart or more: MSG/S.
  const auto messages = [](TopRow& row) {
    return std::stod(row["SENT"]) + std::stod(row["RECEIVED"]);
  };
  const std::string pid = std::to_string(game.server.pid());
  auto before = read_top_table(twice.out.substr(0, second))[pid].rows;
  auto after = read_top_table(twice.out)[pid].rows;
  ASSERT_EQ(before.size(), 1u) << twice.out;
  ASSERT_EQ(after.size(), 1u) << twice.out;
  const double came = messages(after.begin()->second) - messages(before.begin()->second);
  EXPECT_EQ(before.begin()->second["MSG/S"], "0");
  const double rate = std::stod(after.begin()->second["MSG/S"]);
  EXPECT_LE(rate * 0.01, came + 1);
  if (came > 100) {
    EXPECT_GT(rate, 0);
  }
}

TEST_F(Top, SeesAKilledProcessGo) {
  Game game(tool());
  ASSERT_TRUE(of(look(), game.client->pid()).is_object());
  const pid_t gone = game.client->pid();
  game.client->signal(SIGKILL);
  EXPECT_EQ(game.client->finish().signal, SIGKILL);
  EXPECT_TRUE(of(look(), gone).is_null());
  EXPECT_EQ(game.server.finish().status, 1) << "the server ends by itself";
  EXPECT_TRUE(of(look(), game.server.pid()).is_null());
}

TEST_F(Top, PassesOverNonsense) {
  Game game(tool());
  std::ofstream(fabric_.environment()["VERBATIM_FABRIC"] + "/q0a3") << "nonsense";
  // Segments of this process: one that is empty, one full of ones, one that says it is huge.
  for (int kind = 0; kind < 3; ++kind) {
    const int fd = memfd_create("verbatim-segment", MFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    if (kind != 0) {
      std::string ones(1 << 20, kind == 1 ? '\xff' : '\0');
      if (kind == 2) {
        ones.replace(0, 16, std::string("VTB2SHM1\x04\0\0\0\0\0\0\xff", 16));
      }
      ASSERT_EQ(write(fd, ones.data(), ones.size()), static_cast<ssize_t>(ones.size()));
    }
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_len = 1;
    ASSERT_EQ(fcntl(fd, F_SETLK, &lock), 0);
    const Json all = look();
    EXPECT_TRUE(of(all, getpid()).is_null());
    EXPECT_TRUE(of(all, game.server.pid()).is_object());
    close(fd);
  }
}

TEST_F(Top, SaysWhatIsWrongWithItsOptions) {
  for (const char* option : {"--interval=0", "--interval=x", "--count=-1", "--nonsense", "more"}) {
    const Ending ending = run(tool(), {"top", option});
    EXPECT_EQ(ending.status, 1) << option;
    EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
  }
  EXPECT_THAT(run(tool(), {"top", "--help"}).out, HasSubstr("--interval"));
}

}  // namespace
}  // namespace verbatim::tools
