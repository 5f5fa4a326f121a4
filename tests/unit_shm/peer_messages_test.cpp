// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/peer_messages.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "providers/shm/fabric/peer.hpp"
#include "tests/support/process_census.hpp"
#include "tests/unit_shm/no_more_descriptors.hpp"

namespace verbatim::shm {
namespace {

template <class T>
std::span<const unsigned char> bytes_of(const T& message) {
  return {reinterpret_cast<const unsigned char*>(&message), sizeof message};
}

HelloMessage good_hello() {
  HelloMessage hello;
  hello.identity = 42;
  return hello;
}

TEST(PeerMessage, AWellFormedHelloIsUnderstood) {
  Message out;
  ASSERT_TRUE(parse_message(bytes_of(good_hello()), 3, out));
  EXPECT_EQ(out.type, MessageType::kHello);
  EXPECT_EQ(out.hello.identity, 42u);
}

TEST(PeerMessage, TheDescriptorsMustBeExactlyThoseOfTheType) {
  Message out;
  for (std::uint32_t fds = 0; fds <= 3; ++fds) {
    EXPECT_EQ(parse_message(bytes_of(good_hello()), fds, out), fds == 3) << fds;
    ArenaMessage message;
    for (const MessageType type :
         {MessageType::kWantArena, MessageType::kArena, MessageType::kRefused}) {
      message.head.type = type;
      EXPECT_EQ(parse_message(bytes_of(message), fds, out),
                fds == (type == MessageType::kArena ? 1u : 0u));
    }
  }
}

TEST(PeerMessage, ArenaNumbersAreBounded) {
  Message out;
  ArenaMessage message;
  message.arena = kMaxArenas - 1;
  EXPECT_TRUE(parse_message(bytes_of(message), 0, out));
  message.arena = kMaxArenas;
  EXPECT_FALSE(parse_message(bytes_of(message), 0, out));
}

TEST(PeerMessage, NothingSpoiltIsAccepted) {
  std::mt19937 random(11);
  Message out;
  for (int i = 0; i < 20000; ++i) {
    std::vector<unsigned char> bytes(random() % 80);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    ASSERT_FALSE(parse_message(bytes, random() % 4, out));
    // Right but for its length, its magic, its version or its type.
    const HelloMessage hello = good_hello();
    bytes.assign(bytes_of(hello).begin(), bytes_of(hello).end());
    const std::size_t spoilt = random() % 8;
    bytes[spoilt] = static_cast<unsigned char>(bytes[spoilt] ^ (1 + random() % 255));
    ASSERT_FALSE(parse_message(bytes, 3, out) && out.type == MessageType::kHello);
    bytes.assign(bytes_of(hello).begin(), bytes_of(hello).end());
    bytes.resize(random() % bytes.size());
    ASSERT_FALSE(parse_message(bytes, 3, out));
  }
}

class MessageSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near_.reset(ends[0]);
    far_.reset(ends[1]);
  }
  UniqueFd near_;
  UniqueFd far_;
};

TEST_F(MessageSocket, CarriesBytesAndDescriptors) {
  const HelloMessage hello = good_hello();
  const int fds[] = {0, 1, 2};
  ASSERT_EQ(send_message(near_.get(), &hello, sizeof hello, fds), 0);
  Received received;
  ASSERT_EQ(receive_message(far_.get(), received), 0);
  EXPECT_EQ(received.bytes, sizeof hello);
  EXPECT_EQ(received.fd_count, 3u);
  EXPECT_FALSE(received.too_much);
  for (const UniqueFd& fd : received.fds) EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  Received none;
  EXPECT_EQ(receive_message(far_.get(), none), EAGAIN);
}

TEST_F(MessageSocket, SurplusDescriptorsAreToldAndClosed) {
  const auto before = harness::ProcessCensus::take();
  {
    const HelloMessage hello = good_hello();
    iovec part{const_cast<HelloMessage*>(&hello), sizeof hello};
    alignas(cmsghdr) unsigned char control[CMSG_SPACE(40 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(40 * sizeof(int));
    std::vector<int> fds(40, 0);
    std::memcpy(CMSG_DATA(c), fds.data(), 40 * sizeof(int));
    ASSERT_GT(sendmsg(near_.get(), &header, 0), 0);
    Received received;
    ASSERT_EQ(receive_message(far_.get(), received), 0);
    EXPECT_TRUE(received.too_much);
  }
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
}

TEST_F(MessageSocket, DescriptorsThatHaveNoRoomInOurTableAreTold) {
  const ArenaMessage arena;
  const int fds[] = {0};
  ASSERT_EQ(send_message(near_.get(), &arena, sizeof arena, fds), 0);
  Received received;
  {
    const NoMoreDescriptors none;
    ASSERT_EQ(receive_message(far_.get(), received), 0);
  }
  EXPECT_TRUE(received.lacks_room);
  EXPECT_FALSE(received.too_much);
  EXPECT_EQ(received.bytes, sizeof arena);
  EXPECT_EQ(received.fd_count, 0u);
}

TEST_F(MessageSocket, AnOversizedMessageIsTold) {
  const std::vector<unsigned char> large(5000, 1);
  ASSERT_EQ(send(near_.get(), large.data(), large.size(), 0), 5000);
  Received received;
  ASSERT_EQ(receive_message(far_.get(), received), 0);
  EXPECT_TRUE(received.too_much);
}

TEST_F(MessageSocket, TheEndIsToldOnce) {
  near_.reset();
  Received received;
  EXPECT_EQ(receive_message(far_.get(), received), EPIPE);
}

TEST_F(MessageSocket, AFullSocketSaysTryLater) {
  const ArenaMessage message;
  int error = 0;
  for (int i = 0; i < 100000 && error == 0; ++i)
    error = send_message(near_.get(), &message, sizeof message, {});
  EXPECT_EQ(error, EAGAIN);
}

}  // namespace
}  // namespace verbatim::shm
