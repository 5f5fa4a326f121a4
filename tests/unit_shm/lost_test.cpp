// SPDX-License-Identifier: BSD-2-Clause
// The end of a connection is not the end of a process: whose name still stands is looked for, and
// may come again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "providers/shm/fabric/connection_manager.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/memory_file.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/unit_shm/no_more_descriptors.hpp"
#include "tests/unit_shm/stranger.hpp"

namespace verbatim::shm {
namespace {

using harness::wait_until;
using std::chrono::steady_clock;

/// The stranger has a name as well.
class Lost : public Stranger {
 protected:
  static constexpr std::uint32_t kBlock = 4000;
  static constexpr std::uint32_t kQpn = kBlock << kQpnBlockBits;

  void SetUp() override {
    Stranger::SetUp();
    forged_->head().blocks[0].store(kBlock);
    forged_->head().block_count.store(1);
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address_.sun_family = AF_UNIX;
    std::snprintf(address_.sun_path, sizeof address_.sun_path, "%s/q%03x", folder_->path(), kBlock);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
  }
  void TearDown() override {
    take_name_away();
    Stranger::TearDown();
  }
  void take_name_away() {
    unlink(address_.sun_path);
    listener_.reset();
  }

  void greet(int socket) {
    ASSERT_EQ(
        say_hello(socket, honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()), 0);
  }
  static void hear(int socket, MessageType type, Message& message) {
    // Whoever was answered says that it has met us, which is another test's to hear.
    do {
      Received received;
      ASSERT_TRUE(wait_until([&] { return receive_message(socket, received) == 0; }));
      ASSERT_TRUE(parse_message({received.data, received.bytes}, received.fd_count, message));
    } while (message.type == MessageType::kMet && type != MessageType::kMet);
    ASSERT_EQ(message.type, type);
  }
  static void hear(int socket, MessageType type) {
    Message message;
    hear(socket, type, message);
  }
  /// It introduces itself, and has gone before the answer.
  void give_up() {
    const UniqueFd socket = connected();
    greet(socket.get());
  }
  /// ... and hears the answer.
  UniqueFd met() {
    UniqueFd socket = connected();
    greet(socket.get());
    hear(socket.get(), MessageType::kHello);
    return socket;
  }
  UniqueFd accepted() {
    UniqueFd socket;
    EXPECT_TRUE(wait_until([&] {
      socket.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      return socket.valid();
    }));
    return socket;
  }
  void expect_hears_questions(int socket) {
    Peer* const peer = Process::get().hold_peer(kQpn);
    ASSERT_NE(peer, nullptr);
    EXPECT_TRUE(peer->alive);
    Process::get().want_arena(*peer, 3);
    hear(socket, MessageType::kWantArena);
    Process::get().release_peer(*peer);
  }

  UniqueFd listener_;
  sockaddr_un address_{};
};

TEST_F(Lost, WhoGaveUpBeforeTheAnswerIsLookedForUnderItsName) {
  give_up();
  const UniqueFd socket = accepted();
  hear(socket.get(), MessageType::kHello);
  greet(socket.get());
  expect_hears_questions(socket.get());
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
}

// Who connected is known from before he is answered; who answers has to be told.
TEST_F(Lost, WhoAnswersHearsWhenItIsKnown) {
  give_up();
  const UniqueFd socket = accepted();
  hear(socket.get(), MessageType::kHello);
  greet(socket.get());
  hear(socket.get(), MessageType::kMet);
}

TEST_F(Lost, WhoConnectsIsSentNothingBeforeItHasMetTheOther) {
  const UniqueFd socket = met();
  Peer* const peer = Process::get().hold_peer(kQpn);
  ASSERT_NE(peer, nullptr);
  EXPECT_FALSE(peer->knows_us);
  const ArenaMessage says{.head = {.type = MessageType::kMet}};
  ASSERT_EQ(send_message(socket.get(), &says, sizeof says, {}), 0);
  EXPECT_TRUE(wait_until([&] { return peer->knows_us.load(); }));
  Process::get().release_peer(*peer);
}

TEST_F(Lost, WhoGaveUpBeforeTheAnswerAndComesAgainIsKnown) {
  give_up();
  const UniqueFd looking = accepted();
  const UniqueFd socket = met();
  expect_hears_questions(socket.get());
  EXPECT_EQ(ProcessEvents::get().peers_ready, 1u);
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
}

TEST_F(Lost, WhatWasAskedOnAConnectionThatEndedIsAskedAgain) {
  Peer* peer = nullptr;
  {
    const UniqueFd socket = met();
    peer = Process::get().hold_peer(kQpn);
    ASSERT_NE(peer, nullptr);
    Process::get().want_arena(*peer, 3);
    hear(socket.get(), MessageType::kWantArena);
  }
  const UniqueFd socket = accepted();
  hear(socket.get(), MessageType::kHello);
  greet(socket.get());
  hear(socket.get(), MessageType::kWantArena);
  Process::get().release_peer(*peer);
}

TEST_F(Lost, WhoTakesItsNameAwayHasLeft) {
  {
    const UniqueFd socket = met();
    Peer* const peer = Process::get().hold_peer(kQpn);
    ASSERT_NE(peer, nullptr);
    take_name_away();
  }
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
}

TEST_F(Lost, WhoTakesItsNameAwayWhileItIsLookedForHasLeft) {
  give_up();
  (void)accepted();
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
  take_name_away();
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
}

TEST_F(Lost, WhoseNameLeadsToAnotherHasLeft) {
  auto second = std::make_unique<OwnSegment>();
  ASSERT_EQ(second->create(), 0);
  give_up();
  const UniqueFd socket = accepted();
  hear(socket.get(), MessageType::kHello);
  HelloMessage hello = honest_hello();
  hello.identity = second->head().identity;
  ASSERT_EQ(say_hello(socket.get(), hello, second->fd(), second->doorbell_fd(), place_.get()), 0);
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 2; }));
  second->destroy();
}

TEST_F(Lost, WhoEndsEachConnectionAtOnceIsNotLookedForAllTheTime) {
  constexpr int kRounds = 8;
  const auto start = steady_clock::now();
  give_up();
  for (int round = 0; round < kRounds; ++round) {
    const UniqueFd socket = accepted();
    hear(socket.get(), MessageType::kHello);
    greet(socket.get());
  }
  EXPECT_GE(steady_clock::now() - start,
            (kRounds - 2) * std::chrono::nanoseconds(ConnectionManager::kSeekNs));
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
}

TEST_F(Lost, WhoBrokeTheProtocolAndComesAgainIsMetAnew) {
  const UniqueFd first = met();
  Peer* const held = Process::get().hold_peer(kQpn);
  ASSERT_NE(held, nullptr);
  greet(first.get());
  ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
  const UniqueFd second = met();
  EXPECT_EQ(ProcessEvents::get().peers_ready, 2u);
  EXPECT_FALSE(held->alive);
  expect_hears_questions(second.get());
  Process::get().release_peer(*held);
}

TEST_F(Lost, WhoseArenaHasNoRoomInOurTableLivesAndIsAskedAgain) {
  const UniqueFd socket = met();
  Peer* const peer = Process::get().hold_peer(kQpn);
  ASSERT_NE(peer, nullptr);
  constexpr std::uint64_t kArenaBytes = 2u << 20;
  UniqueFd file;
  ASSERT_EQ(make_memory_file("verbatim-test", kArenaBytes, file), 0);
  ASSERT_EQ(seal_memory_file(file.get(), F_SEAL_SHRINK), 0);
  const auto is_asked_and_answers = [&] {
    Process::get().want_arena(*peer, 3);
    hear(socket.get(), MessageType::kWantArena);
    ArenaMessage arena;
    arena.head.type = MessageType::kArena;
    arena.arena = 3;
    arena.size = kArenaBytes;
    const int fds[] = {file.get()};
    ASSERT_EQ(send_message(socket.get(), &arena, sizeof arena, fds), 0);
  };
  {
    const NoMoreDescriptors none;
    const harness::AllowedLog because_there_is_none_left("no room in our table of descriptors");
    ASSERT_NO_FATAL_FAILURE(is_asked_and_answers());
    EXPECT_TRUE(wait_until([&] { return peer->refused.test(3); }));
  }
  ASSERT_NO_FATAL_FAILURE(is_asked_and_answers());
  EXPECT_TRUE(wait_until([&] { return peer->arenas[3].base.load() != nullptr; }));
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
  Process::get().release_peer(*peer);
}

constexpr auto kLate =
    std::chrono::nanoseconds(ConnectionManager::kHandshakeNs) + std::chrono::milliseconds(200);

TEST_F(Lost, WhoIsSlowToAcceptFindsWhoStillWantsIt) {
  const auto start = steady_clock::now();
  ASSERT_TRUE(wait_until([&] {
    Process::get().want_peer(kQpn);
    return steady_clock::now() - start > kLate;
  }));
  const UniqueFd socket = accepted();
  hear(socket.get(), MessageType::kHello);
  greet(socket.get());
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 1; }));
  expect_hears_questions(socket.get());
}

TEST_F(Lost, WhoReadsNothingForLongHasItsAnswerWhenItReads) {
  const UniqueFd socket = met();
  // Arenas that there are not: more refusals than the socket has room for.
  const auto start = steady_clock::now();
  ArenaMessage want;
  std::uint32_t asked = 0;
  for (; asked < kMaxArenas; ++asked) {
    want.arena = asked;
    ASSERT_TRUE(
        wait_until([&] { return send_message(socket.get(), &want, sizeof want, {}) != EAGAIN; }));
  }
  ASSERT_TRUE(wait_until([&] { return steady_clock::now() - start > kLate; }));
  for (std::uint32_t answered = 0; answered < asked; ++answered) {
    Message message;
    ASSERT_NO_FATAL_FAILURE(hear(socket.get(), MessageType::kRefused, message)) << answered;
  }
}

}  // namespace
}  // namespace verbatim::shm
