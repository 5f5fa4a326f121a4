// SPDX-License-Identifier: BSD-2-Clause
// Strangers on the socket: they lie, stall, flood and leave; the process goes on serving the
// honest.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "providers/shm/fabric/connection_manager.hpp"
#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "runtime/memory/arena.hpp"
#include "tests/support/child.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/process_events.hpp"
#include "tests/unit_shm/stranger.hpp"

namespace verbatim::shm {
namespace {

using harness::AllowedLog;
using harness::wait_until;

class HostileTest : public Stranger {};

TEST_F(HostileTest, ACompleteHelloIsAnswered) {
  const UniqueFd socket = connected();
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  EXPECT_FALSE(was_refused(socket.get()));
}

/// Who has our answer may send at once: what it sends must find it known here, and announced.
TEST_F(HostileTest, AProcessIsKnownBeforeItsHelloIsAnswered) {
  for (std::uint64_t round = 1; round <= 50; ++round) {
    ProcessEvents::get().reset();
    forged_->head().identity += round;
    forged_->head().blocks[0].store(4000);
    forged_->head().block_count.store(1);
    {
      const UniqueFd socket = connected();
      ProcessEvents::get().watched = socket.get();
      ASSERT_EQ(say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(),
                          place_.get()),
                0);
      Received answer;
      ASSERT_TRUE(wait_until([&] { return receive_message(socket.get(), answer) == 0; }));
      ASSERT_EQ(ProcessEvents::get().peers_ready, 1u);
      ASSERT_FALSE(ProcessEvents::get().readable_when_ready) << "answered first";
      ASSERT_NE(Process::get().find_peer(4000u << kQpnBlockBits), nullptr);
      ASSERT_EQ(ProcessEvents::get().peers_dead, 0u);
    }
    ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
  }
}

/// Who leaves before our answer was known for a moment: its end is told, and so is its beginning.
TEST_F(HostileTest, AHelloWithoutAWaitForTheAnswerHasABeginningAndAnEnd) {
  for (std::uint64_t round = 1; round <= 50; ++round) {
    ProcessEvents::get().reset();
    forged_->head().identity += round;
    {
      const UniqueFd socket = connected();
      ASSERT_EQ(say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(),
                          place_.get()),
                0);
    }
    ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
    ASSERT_EQ(ProcessEvents::get().peers_ready, 1u);
  }
}

TEST_F(HostileTest, HellosWithWrongThingsAreRefused) {
  const AllowedLog refused("refused a process");
  const AllowedLog version("version");
  UniqueFd pipe_read;
  UniqueFd pipe_write;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  pipe_read.reset(ends[0]);
  pipe_write.reset(ends[1]);
  UniqueFd socket_itself(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  char own_name[PATH_MAX];
  std::snprintf(own_name, sizeof own_name, "%s/q%03x", folder_->path(), qpn_ >> kQpnBlockBits);
  UniqueFd listener(open(own_name, O_PATH | O_CLOEXEC));
  ASSERT_TRUE(listener.valid());
  UniqueFd shared_folder(open(folder_->path(), O_PATH | O_CLOEXEC));
  const int segment = forged_->fd();
  const int bells = forged_->doorbell_fd();
  struct Case {
    const char* name;
    int segment, bells, place;
    std::uint64_t identity;
    std::uint32_t version;
  };
  const std::uint64_t own = forged_->head().identity;
  const Case cases[] = {
      {"a pipe as way to wake it", segment, bells, pipe_write.get(), own, kLayoutVersion},
      {"a file as way to wake it", segment, bells, segment, own, kLayoutVersion},
      {"a socket as way to wake it", segment, bells, socket_itself.get(), own, kLayoutVersion},
      {"the place of another kind of socket", segment, bells, listener.get(), own, kLayoutVersion},
      {"a folder as way to wake it", segment, bells, shared_folder.get(), own, kLayoutVersion},
      {"swapped files", bells, segment, place_.get(), own, kLayoutVersion},
      {"no files", place_.get(), place_.get(), place_.get(), own, kLayoutVersion},
      {"another identity than its segment's", segment, bells, place_.get(), own + 1,
       kLayoutVersion},
      {"our identity", segment, bells, place_.get(), Process::get().segment().head().identity,
       kLayoutVersion},
      {"another version", segment, bells, place_.get(), own, kLayoutVersion + 1},
  };
  for (const Case& c : cases) {
    const UniqueFd socket = connected();
    HelloMessage hello = honest_hello();
    hello.identity = c.identity;
    hello.layout_version = c.version;
    ASSERT_EQ(say_hello(socket.get(), hello, c.segment, c.bells, c.place), 0);
    EXPECT_TRUE(was_refused(socket.get())) << c.name;
  }
  EXPECT_EQ(ProcessEvents::get().peers_ready, 0u);
}

// 0 stands for nobody wherever identities are kept.
TEST_F(HostileTest, AProcessWithoutAnIdentityIsRefused) {
  const AllowedLog refused("refused a process");
  forged_->head().identity = 0;
  const UniqueFd socket = connected();
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  EXPECT_TRUE(was_refused(socket.get()));
}

TEST_F(HostileTest, SomebodyElsesIdentityDoesNotReplaceHim) {
  const UniqueFd first = connected();
  ASSERT_EQ(
      say_hello(first.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ASSERT_FALSE(was_refused(first.get()));
  // The same identity, written into another file.
  UniqueFd copy(memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(copy.get(), static_cast<off_t>(forged_->size())), 0);
  ASSERT_EQ(
      pwrite(copy.get(), static_cast<const void*>(&forged_->head()), sizeof(SegmentHeader), 0),
      static_cast<ssize_t>(sizeof(SegmentHeader)));
  ASSERT_EQ(fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const UniqueFd second = connected();
  ASSERT_EQ(
      say_hello(second.get(), honest_hello(), copy.get(), forged_->doorbell_fd(), place_.get()), 0);
  EXPECT_TRUE(was_refused(second.get()));
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
}

TEST_F(HostileTest, ThousandsOfNonsenseMessages) {
  const AllowedLog refused("refused a process");
  const AllowedLog version("version");
  const AllowedLog arena("arena");
  const auto before = harness::ProcessCensus::take();
  {
    std::mt19937 random(2026);
    for (int i = 0; i < 4000; ++i) {
      const UniqueFd socket = connected();
      const int messages = 1 + static_cast<int>(random() % 3);
      for (int m = 0; m < messages; ++m) {
        unsigned char bytes[200];
        for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
        std::size_t length = random() % sizeof bytes;
        if (random() % 2 == 0) {  // close to the truth
          const HelloMessage hello = honest_hello();
          std::memcpy(bytes, &hello, sizeof hello);
          length = random() % 4 == 0 ? length : sizeof hello;
          bytes[random() % sizeof hello] ^= static_cast<unsigned char>(1 + random() % 255);
        }
        int fds[3] = {forged_->fd(), forged_->doorbell_fd(), place_.get()};
        if (random() % 2 == 0) fds[random() % 3] = static_cast<int>(random() % 3);
        (void)send_message(socket.get(), bytes, length, {fds, random() % 4});
      }
      if (random() % 4 == 0) (void)shutdown(socket.get(), SHUT_WR);
    }
  }
  // A message spoilt only where it does not matter may have made a peer; it ended with its socket.
  EXPECT_TRUE(wait_until([&] {
    const ProcessEvents& events = ProcessEvents::get();
    return events.peers_ready == events.peers_dead;
  }));
  EXPECT_TRUE(wait_until([&] {
    // What remains: descriptors of the dead peers, kept on purpose.
    return harness::ProcessCensus::take().descriptors.size() <=
           before.descriptors.size() + 3 * ProcessEvents::get().peers_dead;
  }));
}

TEST_F(HostileTest, NonsenseFromAPeerEndsOnlyThatPeer) {
  const UniqueFd socket = connected();
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ASSERT_FALSE(was_refused(socket.get()));
  ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 1; }));
  // An arena nobody asked for, and the file of it, are dropped; a second HELLO ends it.
  ArenaMessage arena;
  arena.head.type = MessageType::kArena;
  arena.arena = 5;
  arena.size = 4096;
  const int fd = forged_->fd();
  ASSERT_EQ(send_message(socket.get(), &arena, sizeof arena, {&fd, 1}), 0);
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  EXPECT_TRUE(was_refused(socket.get()));
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_dead == 1; }));
}

TEST_F(HostileTest, AnArenaThatIsNotOneIsRefused) {
  const AllowedLog expected("arena that is not what it must be");
  const UniqueFd socket = connected();
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ASSERT_FALSE(was_refused(socket.get()));
  ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 1; }));
  forged_->head().blocks[0].store(4000);
  forged_->head().block_count.store(1);
  Peer* const peer = Process::get().hold_peer(4000u << kQpnBlockBits);
  ASSERT_NE(peer, nullptr);
  UniqueFd shrinkable(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(shrinkable.get(), 1 << 20), 0);
  for (const std::uint64_t size : {std::uint64_t{1} << 20, std::uint64_t{2} << 20}) {
    Process::get().want_arena(*peer, 3);
    Received question;
    ASSERT_TRUE(wait_until([&] { return receive_message(socket.get(), question) == 0; }));
    ArenaMessage arena;
    arena.head.type = MessageType::kArena;
    arena.arena = 3;
    arena.size = size;
    const int fd = shrinkable.get();
    ASSERT_EQ(send_message(socket.get(), &arena, sizeof arena, {&fd, 1}), 0);
    ASSERT_TRUE(wait_until([&] { return Process::get().arena_refused(*peer, 3); }));
    EXPECT_EQ(peer->arenas[3].base.load(), nullptr);
    // Right this time but for its size.
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  }
  Process::get().release_peer(*peer);
}

TEST_F(HostileTest, AClaimOfAnAbsurdNumberOfBlocksIsBounded) {
  const UniqueFd socket = connected();
  forged_->head().block_count.store(0xffffffff);
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ASSERT_FALSE(was_refused(socket.get()));
  EXPECT_EQ(Process::get().find_peer(0x123456), nullptr);
  // And our own numbers are ours, whoever claims them.
  for (auto& block : forged_->head().blocks) block.store(qpn_ >> kQpnBlockBits);
  EXPECT_EQ(Process::get().find_peer(qpn_), &Process::get().self());
}

TEST_F(HostileTest, OfTwoClaimantsTheOneBehindTheNameIsRight) {
  // A second forged process; both live, both claim block 4001.
  auto second = std::make_unique<OwnSegment>();
  ASSERT_EQ(second->create(), 0);
  constexpr std::uint32_t kBlock = 4001;
  for (OwnSegment* claimant : {forged_.get(), second.get()}) {
    claimant->head().blocks[0].store(kBlock);
    claimant->head().block_count.store(1);
  }
  const UniqueFd first_socket = connected();
  ASSERT_EQ(say_hello(first_socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(),
                      place_.get()),
            0);
  ASSERT_FALSE(was_refused(first_socket.get()));
  ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 1; }));
  Peer* const only = Process::get().find_peer(kBlock << kQpnBlockBits);
  ASSERT_NE(only, nullptr);
  HelloMessage hello = honest_hello();
  hello.identity = second->head().identity;
  const UniqueFd second_socket = connected();
  ASSERT_EQ(
      say_hello(second_socket.get(), hello, second->fd(), second->doorbell_fd(), place_.get()), 0);
  ASSERT_FALSE(was_refused(second_socket.get()));
  ASSERT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 2; }));
  EXPECT_EQ(Process::get().find_peer(kBlock << kQpnBlockBits), nullptr) << "neither is believed";

  // The name leads to the second one.
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/q%03x", folder_->path(), kBlock);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 4), 0);
  Process::get().want_peer(kBlock << kQpnBlockBits);
  const UniqueFd met(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(met.valid());
  ASSERT_EQ(say_hello(met.get(), hello, second->fd(), second->doorbell_fd(), place_.get()), 0);
  ASSERT_TRUE(
      wait_until([&] { return Process::get().find_peer(kBlock << kQpnBlockBits) != nullptr; }));
  Peer* const right = Process::get().hold_peer(kBlock << kQpnBlockBits);
  ASSERT_NE(right, nullptr);
  EXPECT_NE(right, only);
  EXPECT_EQ(right->identity, second->head().identity);
  Process::get().release_peer(*right);
  unlink(address.sun_path);
  second->destroy();
}

/// With no descriptor left, connections cannot be accepted; the service thread must not spin
/// meanwhile.
VBT_ROLE(starved_node) {
  if (Process::start(ProcessEvents::hooks()) != 0) return 1;
  std::uint32_t index = 0;
  std::uint32_t qpn = 0;
  if (Process::get().take_qpn(index, qpn) != 0) return 2;
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return 3;
  const int next = dup(0);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  if (next < 0 || close(next) != 0 || setrlimit(RLIMIT_NOFILE, &none) != 0) return 3;
  control.send_value(qpn);
  (void)control.receive_value<std::int32_t>();  // somebody is connecting now
  rusage start{};
  rusage end{};
  getrusage(RUSAGE_SELF, &start);
  (void)control.receive_value<std::int32_t>();  // a good while later
  getrusage(RUSAGE_SELF, &end);
  const auto cpu_us = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  control.send_value(static_cast<std::int64_t>(cpu_us(end) - cpu_us(start)));
  if (setrlimit(RLIMIT_NOFILE, &before) != 0) return 4;
  const bool met = wait_until([] { return ProcessEvents::get().peers_ready >= 1; });
  control.send_value(static_cast<std::int32_t>(met));
  (void)control.receive_value<std::int32_t>();
  Process::stop();
  return 0;
}

TEST_F(HostileTest, WithoutDescriptorsANodeWaitsAndRecovers) {
  const AllowedLog expected("ulimit -n");
  harness::Child child("starved_node");
  const auto qpn = child.control().receive_value<std::uint32_t>();
  Process::get().want_peer(qpn);
  child.control().send_value(std::int32_t{0});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_until([&] {
    Process::get().want_peer(qpn);
    return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(300);
  }));
  child.control().send_value(std::int32_t{0});
  EXPECT_LT(child.control().receive_value<std::int64_t>(), 100'000) << "microseconds of 300 000";
  ASSERT_TRUE(wait_until([&] {
    Process::get().want_peer(qpn);
    return Process::get().find_peer(qpn) != nullptr;
  }));
  EXPECT_EQ(child.control().receive_value<std::int32_t>(), 1);
  child.control().send_value(std::int32_t{0});
  EXPECT_EQ(child.wait().exit_status, 0);
}

TEST_F(HostileTest, TheSilentAreManyAndStallNobody) {
  std::vector<UniqueFd> silent;
  for (std::uint32_t i = 0; i < 10 * ConnectionManager::kMaxHalfOpenOfOne; ++i)
    silent.push_back(connected());
  serves_the_honest();
  // The oldest gave way.
  EXPECT_TRUE(was_refused(silent[0].get()));
}

TEST_F(HostileTest, WhoNeverReadsHisAnswersStallsNobody) {
  int error = 0;
  void* const memory = alloc_shared(1u << 20, error);
  ASSERT_NE(memory, nullptr);
  ArenaView view;
  ASSERT_TRUE(arena_of(memory, 1, view));
  arena_share(view.number);
  const UniqueFd socket = connected();
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ArenaMessage want;
  want.arena = view.number;
  int sent = 0;
  for (int i = 0; i < 20000; ++i) sent += send_message(socket.get(), &want, sizeof want, {}) == 0;
  EXPECT_GT(sent, 100);
  serves_the_honest();
  EXPECT_EQ(free_shared(memory), 0);
}

}  // namespace
}  // namespace verbatim::shm
