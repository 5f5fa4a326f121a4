// SPDX-License-Identifier: BSD-2-Clause
// The TCP conversation, with strangers at the other end.
#include "perf/cli/tcp_exchange.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "perf/cli/failure.hpp"
#include "tests/tools/tool_process.hpp"

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kAddress[] = "0001:000002:000003:00000000000000000000000000000000";
constexpr long kSoon = 300;

/// The line of the Failure that `action` ends with; empty when it does not fail.
template <class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.line;
  }
  return {};
}

/// A raw client of a port on loopback.
class Stranger {
 public:
  explicit Stranger(int port) : fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Stranger() { hang_up(); }
  bool connected() const { return connected_; }
  void say(const std::string& bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  std::string hear(std::size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, recv(fd_, bytes.data(), size, MSG_WAITALL))));
    return bytes;
  }
  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class Exchange : public ::testing::Test {
 protected:
  /// A server's conversation with `stranger`, which has connected already.
  Conversation accept_from(Listener listener) {
    return Conversation::accept(std::move(listener), stop_);
  }
  StopSignals stop_;
};

std::string address_bytes() { return {kAddress, sizeof(kAddress)}; }

TEST_F(Exchange, ServerAndClientLearnEachOthersAddress) {
  Listener listener(0);
  const int port = listener.port();
  std::thread server([&] {
    Conversation client = accept_from(std::move(listener));
    EXPECT_EQ(client.receive_address().qpn, 0x222222u);
    client.send_address({0x1111, 0x111111, 1, {}});
    client.receive_done();
    client.finish(1000);
  });
  Conversation conversation =
      Conversation::connect("localhost", static_cast<std::uint16_t>(port), stop_);
  conversation.send_address({0x2222, 0x222222, 2, {}});
  EXPECT_EQ(conversation.receive_address().lid, 0x1111);
  conversation.send_done();
  conversation.finish(1000);
  server.join();
}

TEST_F(Exchange, ServerSendsTheClassicBytes) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.say(address_bytes());
  EXPECT_EQ(client.receive_address().psn, 3u);
  client.send_address({1, 2, 3, {}});
  EXPECT_EQ(stranger.hear(kQpAddressSize), address_bytes());
  stranger.say({"done", 5});
  client.receive_done();
}

TEST_F(Exchange, AHostThatGoesWithoutAWordIsFoundOut) {
  Listener listener(0);
  const Stranger stranger(listener.port());
  const Conversation client = accept_from(std::move(listener));
  int kept = 0;
  for (int fd = 0; fd < 256; ++fd) {
    int on = 0, idle_s = 0;
    socklen_t size = sizeof(on);
    if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size) != 0 || on == 0) continue;
    getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &size);
    kept += idle_s > 0 && idle_s <= 60;
  }
  EXPECT_EQ(kept, 1) << "the connection is asked about while nobody speaks";
}

TEST_F(Exchange, ServerTakesBytesOneByOne) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  for (const char byte : address_bytes()) stranger.say({byte});
  EXPECT_EQ(client.receive_address().qpn, 2u);
}

TEST_F(Exchange, SpeaksIpv6) {
  Listener listener(0);
  const std::uint16_t port = listener.port();
  try {
    Conversation conversation = Conversation::connect("::1", port, stop_, kSoon);
    Conversation client = accept_from(std::move(listener));
    conversation.send_address({7, 8, 9, {}});
    EXPECT_EQ(client.receive_address().lid, 7);
  } catch (const Failure& failure) {
    GTEST_SKIP() << "no IPv6 on loopback: " << failure.line;
  }
}

TEST_F(Exchange, GarbageIsNamedAndRefused) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.say("GET / HTTP/1.1\r\nHost: somewhere.example.org:18515\r\n\r\n");
  EXPECT_THAT(failure_of([&] { client.receive_address(); }),
              HasSubstr("127.0.0.1 sent 'GET / HTTP/1.1??Host: so...'"));
}

TEST_F(Exchange, HalfAnAddressEndsInTime) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.say("0001:00");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(failure_of([&] { client.receive_address(kSoon); }), HasSubstr("sent 7 of 52 bytes"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Exchange, HangingUpIsNamed) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.say("0001:00");
  stranger.hang_up();
  EXPECT_THAT(failure_of([&] { client.receive_address(); }),
              HasSubstr("closed the connection after 7 of 52 bytes"));
}

TEST_F(Exchange, SomethingElseThanDoneIsRefused) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.say("nope!");
  EXPECT_THAT(failure_of([&] { client.receive_done(); }), HasSubstr("'nope!' where 'done'"));
}

TEST_F(Exchange, WritingToOneWhoHungUpIsAFailureAndNotASignal) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  stranger.hang_up();
  std::string line;
  for (int i = 0; i < 100 && line.empty(); ++i) {  // the first write may still find buffer room
    line = failure_of([&] { client.send_address({}); });
  }
  EXPECT_THAT(line, HasSubstr("127.0.0.1 is gone"));
}

TEST_F(Exchange, AServerThatNeverComesIsGivenUp) {
  const auto port = static_cast<std::uint16_t>(tools::free_port());
  const auto start = std::chrono::steady_clock::now();
  const std::string line =
      failure_of([&] { Conversation::connect("127.0.0.1", port, stop_, kSoon); });
  EXPECT_THAT(line, HasSubstr("start the server first"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(kSoon));
}

TEST_F(Exchange, AServerThatComesLateIsFound) {
  const auto port = static_cast<std::uint16_t>(tools::free_port());
  std::thread server([&] {
    // The client's first attempts may find nobody; nothing here depends on whether they do.
    Conversation client = accept_from(Listener(port));
    client.receive_address();
  });
  Conversation::connect("127.0.0.1", port, stop_).send_address({});
  server.join();
}

TEST_F(Exchange, AServerThatDoesNotAnswerIsGivenUp) {
  // A full backlog: the kernel drops further attempts, as a firewall would.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 0), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<int> queued;
  for (int i = 0; i < 4; ++i) {
    queued.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connect(queued.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  const std::string line = failure_of(
      [&] { Conversation::connect("127.0.0.1", ntohs(address.sin_port), stop_, kSoon); });
  EXPECT_THAT(line, HasSubstr("timed out"));
  for (const int other : queued) close(other);
  close(fd);
}

TEST_F(Exchange, AnUnknownNameIsExplained) {
  EXPECT_THAT(failure_of([&] { Conversation::connect("no-such-host.invalid", 1, stop_, kSoon); }),
              HasSubstr("neither an IP address nor a name in /etc/hosts"));
}

TEST_F(Exchange, APortInUseIsExplained) {
  const Listener first(0);
  const std::string line = failure_of([&] { Listener second(first.port()); });
  EXPECT_THAT(line, HasSubstr("another program does"));
  EXPECT_THAT(line, HasSubstr("-p"));
}

TEST_F(Exchange, APortIsFreeAgainAfterAConversation) {
  Listener listener(0);
  const std::uint16_t port = listener.port();
  {
    Stranger stranger(port);
    ASSERT_TRUE(stranger.connected());
    Conversation client = accept_from(std::move(listener));
  }
  EXPECT_EQ(failure_of([&] { Listener again(port); }), "");
}

TEST_F(Exchange, FinishingDoesNotWaitForAStrangerWhoStays) {
  Listener listener(0);
  Stranger stranger(listener.port());
  Conversation client = accept_from(std::move(listener));
  const auto start = std::chrono::steady_clock::now();
  client.finish(kSoon);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace verbatim::cli
