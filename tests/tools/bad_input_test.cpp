// SPDX-License-Identifier: BSD-2-Clause
// What users mistype and strangers send: one line that names the cause and the fix, an exit status
// that is not 0, and nothing left behind; over the device that every machine has.
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
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<std::string>;

class BadInput : public ::testing::Test {
 protected:
  Program tool(const std::string& name = "verbatim") {
    return real_tool(name, fabric_.environment());
  }
  /// Its names are gone, and so is every process: run() and finish() have collected them.
  void TearDown() override { EXPECT_THAT(fabric_.sockets(), ::testing::IsEmpty()); }

  void expect_complaint(const Ending& ending, const std::string& says) {
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.signal, 0);
    EXPECT_GT(ending.status, 0);
    EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
    EXPECT_THAT(ending.err, HasSubstr(says));
  }

  PrivateFabric fabric_;
};

struct Mistake {
  Words words;
  std::string says;
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << ::testing::PrintToString(mistake.words);
}

class Mistyped : public BadInput, public ::testing::WithParamInterface<Mistake> {};

TEST_P(Mistyped, IsNamedInOneLineAndLeavesNothing) {
  expect_complaint(run(tool(), GetParam().words), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Mistyped,
    ::testing::Values(Mistake{{"pong"}, "no command 'pong' (there are: devices, devinfo, pingpong"},
                      Mistake{{"pingpong"}, "no command 'pingpong' (there are:"},
                      Mistake{{"pingpong", "xd"}, "no command 'pingpong xd' (there are:"},
                      Mistake{{"asyncwatch", "shm0"}, "'shm0' is too much: a device is named with"},
                      Mistake{{"asyncwatch", "-d", "shm7"}, "not found (there is: shm0)"},
                      Mistake{{"pingpong", "uc", "-t"}, "invalid option -- 't'"},
                      Mistake{{"pingpong", "ud", "-m", "1024"}, "invalid option -- 'm'"},
                      Mistake{{"pingpong", "ud", "-s", "4097"},
                              "Requested size larger than port MTU (4096)"},
                      Mistake{{"pingpong", "srq", "-q", "256"}, "a number from 1 to 255 (-q)"},
                      Mistake{{"pingpong", "srq", "-q", "0"}, "a number from 1 to 255 (-q)"},
                      Mistake{{"pingpong", "srq", "-q", "5", "-r", "4"}, "rx_depth 4 is too small"},
                      Mistake{{"pingpong", "xsrq", "-c", "0"}, "a number from 1 to 1000 (-c)"},
                      Mistake{{"pingpong", "xsrq", "-n", "x"}, "(-n)"},
                      Mistake{{"--verbose"}, "see 'verbatim --help'"},
                      Mistake{{"devices", "-v"}, "'-v' is too much: it takes no options"},
                      Mistake{{"devinfo", "shm0"}, "'shm0' is too much: a device is named with -d"},
                      Mistake{{"pingpong", "rc", "127.0.0.1", "::1"},
                              "'::1' is too much: there is one server, '127.0.0.1'"},
                      Mistake{{"pingpong", "rc", ""}, "'' is no host: give the server's address"}));
INSTANTIATE_TEST_SUITE_P(
    Options, Mistyped,
    ::testing::Values(Mistake{{"devinfo", "--bogus"}, "unrecognized option '--bogus'"},
                      Mistake{{"devinfo", "-x"}, "invalid option -- 'x'"},
                      Mistake{{"devinfo", "-d"}, "option requires an argument -- 'd'"},
                      Mistake{{"pingpong", "rc", "--bogus"}, "unrecognized option '--bogus'"},
                      Mistake{{"pingpong", "rc", "-x"}, "invalid option -- 'x'"},
                      Mistake{{"pingpong", "rc", "-s"}, "option requires an argument -- 's'"},
                      Mistake{{"pingpong", "rc", "-m", "1500"}, "none of 256, 512, 1024, 2048"},
                      Mistake{{"pingpong", "rc", "-g", "9"}, "port 1 of shm0 has 1 (-g)"},
                      Mistake{{"pingpong", "rc", "-p", "65536"}, "a number from 0 to 65535 (-p)"},
                      Mistake{{"pingpong", "rc", "-n", "0"}, "(-n)"},
                      Mistake{{"pingpong", "rc", "-r", "1000000"}, "choose a smaller -r"}));
INSTANTIATE_TEST_SUITE_P(
    DevicesAndPorts, Mistyped,
    ::testing::Values(Mistake{{"devinfo", "-d", "shm7"}, "'shm7' wasn't found (there is: shm0)"},
                      Mistake{{"devinfo", "-i", "2"}, "shm0: it has 1, not 2 (-i)"},
                      Mistake{{"devinfo", "-i", "0"}, "is not a number from 1 to 255 (-i)"},
                      Mistake{{"pingpong", "rc", "-d", "shm7"}, "not found (there is: shm0)"},
                      Mistake{{"pingpong", "rc", "-d", ""}, "not found (there is: shm0)"},
                      Mistake{{"pingpong", "rc", "-i", "2"}, "shm0 has 1 port, not 2 (-i)"},
                      Mistake{{"pingpong", "rc", "-i", "256"}, "a number from 1 to 255 (-i)"}));
INSTANTIATE_TEST_SUITE_P(
    Sizes, Mistyped,
    ::testing::Values(Mistake{{"pingpong", "rc", "-s", "0"}, "size '0' is not a number from 1"},
                      Mistake{{"pingpong", "rc", "-s", "-1"}, "size '-1' is not a number from 1"},
                      Mistake{{"pingpong", "rc", "-s", "1000000000000"},
                              "size '1000000000000' is not a number from 1 to 2147483648 (-s)"},
                      Mistake{{"pingpong", "rc", "-s", "99999999999999999999"}, "(-s)"},
                      Mistake{{"pingpong", "rc", "-s", "1073741825"},
                              "more than shm0 sends in one message (1073741824 bytes); choose a "
                              "smaller -s"}));

/// What a stranger says in the exchange, and what is then said of it.
struct Garbage {
  std::string bytes;
  bool address_first;  ///< a sound address before it
  std::string server_says;
  std::string client_says;
};
void PrintTo(const Garbage& garbage, std::ostream* out) {
  *out << ::testing::PrintToString(garbage.bytes);
}

const std::string kNobody("0001:fffffe:000003:00000000000000000000000000000000\0", 52);

class Strangers : public BadInput, public ::testing::WithParamInterface<Garbage> {
 protected:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  /// Speaks to the program at `fd`, and hangs up once it has spoken itself.
  static void speak(int fd) {
    const std::string words =
        (GetParam().address_first ? kNobody : std::string{}) + GetParam().bytes;
    EXPECT_EQ(send(fd, words.data(), words.size(), MSG_NOSIGNAL), ssize_t(words.size()));
    char heard[52];
    (void)recv(fd, heard, sizeof(heard), GetParam().address_first ? MSG_WAITALL : MSG_DONTWAIT);
    close(fd);
  }
};

TEST_P(Strangers, EndTheServerInOneLine) {
  ToolProcess server(tool("ibv_rc_pingpong"), {"-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(*port);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  speak(fd);
  Ending ending = server.finish();
  // Before it was spoken to it has said where it listens.
  ending.err.erase(0, ending.err.find('\n') + 1);
  expect_complaint(ending, GetParam().server_says);
}

TEST_P(Strangers, EndTheClientInOneLine) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  ToolProcess client(tool("ibv_rc_pingpong"),
                     {"-p", std::to_string(ntohs(address.sin_port)), "127.0.0.1"});
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(fd, 0);
  speak(fd);
  close(listener);
  expect_complaint(client.finish(), GetParam().client_says);
}

INSTANTIATE_TEST_SUITE_P(
    Exchange, Strangers,
    ::testing::Values(Garbage{"GET / HTTP/1.1\r\nHost: somewhere.example.org:18515\r\n\r\n", false,
                              "is that a pingpong program?", "is that a pingpong program?"},
                      Garbage{std::string(4096, '\xfe'), false, "is that a pingpong program?",
                              "is that a pingpong program?"},
                      Garbage{std::string(52, '\0'), false, "is that a pingpong program?",
                              "is that a pingpong program?"},
                      Garbage{"0001-fffffe-000003-00000000000000000000000000000000 ", false,
                              "is that a pingpong program?", "is that a pingpong program?"},
                      Garbage{"0001:00", false, "closed the connection after 7 of 52 bytes",
                              "closed the connection after 7 of 52 bytes"},
                      Garbage{"", false, "closed the connection after 0 of 52 bytes",
                              "closed the connection after 0 of 52 bytes"},
                      // A sound address of nobody: the client finds that out on the device.
                      Garbage{"nope!", true, "sent 'nope!' where 'done' belongs", "Failed status"},
                      Garbage{"do", true, "closed the connection after 2 of 5 bytes",
                              "Failed status"}));

TEST_F(BadInput, AServerThatNeverComesIsGivenUp) {
  expect_complaint(run(tool("ibv_rc_pingpong"), {"-p", std::to_string(free_port()), "127.0.0.1"}),
                   "nobody listened there for 5 s; start the server first, or check -p");
}

TEST_F(BadInput, TheSecondServerOnAPortIsToldSoAndTheFirstGoesOn) {
  ToolProcess first(tool("ibv_rc_pingpong"), {"-p", "0", "-n", "10"});
  const auto port = listening_port(first);
  ASSERT_TRUE(port);
  const std::string on = std::to_string(*port);
  expect_complaint(run(tool("ibv_rc_pingpong"), {"-p", on}),
                   "another program does; stop it or choose a port with -p");
  const Ending client = run(tool("ibv_rc_pingpong"), {"-p", on, "-n", "10", "127.0.0.1"});
  EXPECT_EQ(client.status, 0) << client.err;
  EXPECT_EQ(first.finish().status, 0);
}

TEST_F(BadInput, AnAddressSentBackIsAPeerLikeAnyOther) {
  // The client is connected to itself, which verbs allow: it plays with itself, and ends.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  ToolProcess client(tool("ibv_rc_pingpong"),
                     {"-p", std::to_string(ntohs(address.sin_port)), "-n", "10", "127.0.0.1"});
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(fd, 0);
  char own[52];
  ASSERT_EQ(recv(fd, own, sizeof(own), MSG_WAITALL), 52);
  EXPECT_EQ(send(fd, own, sizeof(own), MSG_NOSIGNAL), 52);
  char done[5];
  EXPECT_EQ(recv(fd, done, sizeof(done), MSG_WAITALL), 5);
  close(fd);
  close(listener);
  const Ending ending = client.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("10 iters in "));
}

}  // namespace
}  // namespace verbatim::tools
