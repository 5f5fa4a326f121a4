// SPDX-License-Identifier: BSD-2-Clause
// Who is looked for, how often and for how long: a connection manager whose clock the test is, and
// a stranger with a name who does not answer.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "providers/shm/fabric/connection_manager.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

constinit std::uint32_t deaths = 0;

constexpr ServiceHooks kHooks = {
    .request = [](std::uint32_t) noexcept { return false; },
    .asked = []() noexcept { return false; },
    .cq_wake = [](std::uint32_t) noexcept {},
    .tick = []() noexcept {},
    .sweep = []() noexcept {},
    .due = [](std::uint64_t) noexcept { return ~std::uint64_t{0}; },
    .peer_ready = [](Peer&) noexcept {},
    .peer_knows_us = [](Peer&) noexcept {},
    .peer_dead = [](Peer&) noexcept { ++deaths; },
    .dead_stay = []() noexcept {},
    .arena_ready = [](Peer&) noexcept {},
    .names_stand = [](bool) noexcept {},
    .failed = []() noexcept {},
    .ends = []() noexcept {},
};

class Seek : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBlock = 4000;

  void SetUp() override {
    deaths = 0;
    ASSERT_EQ(folder_->open(), 0);
    ASSERT_EQ(segment_->create(), 0);
    ASSERT_EQ(wakes_.open(*folder_), 0);
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    board_->open(epoll_.get(), wakes_);
    UniqueFd listener;
    ASSERT_EQ(folder_->claim(block_, listener), 0);
    inode_ = folder_->inode_of(block_);
    ASSERT_EQ(board_->add_listener(static_cast<UniqueFd&&>(listener)), 0);

    ASSERT_EQ(his_segment_->create(), 0);
    his_segment_->head().blocks[0].store(kBlock);
    his_segment_->head().block_count.store(1);
    his_name_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    way_.sun_family = AF_UNIX;
    std::snprintf(way_.sun_path, sizeof way_.sun_path, "%s/q%03x", folder_->path(), kBlock);
    ASSERT_EQ(bind(his_name_.get(), reinterpret_cast<sockaddr*>(&way_), sizeof way_), 0);
    ASSERT_EQ(listen(his_name_.get(), 64), 0);
  }
  void TearDown() override {
    take_his_name_away();
    board_->close(false, false);
    peers_->clear(false);
    folder_->release(block_, inode_);
    folder_->leave();
    his_segment_->destroy();
    segment_->destroy();
    folder_->close();
  }
  void take_his_name_away() {
    unlink(way_.sun_path);
    his_name_.reset();
  }

  /// What the service thread does when it is woken.
  void serve() {
    epoll_event woken_by[8];
    for (int count; (count = epoll_wait(epoll_.get(), woken_by, 8, 0)) > 0;) {
      for (int i = 0; i < count; ++i) {
        EventSource& source = *static_cast<EventSource*>(woken_by[i].data.ptr);
        if (source.kind == EventSource::kListener) board_->on_listener(source);
        if (source.kind == EventSource::kConnection)
          board_->on_connection(*static_cast<Connection*>(source.object));
      }
      board_->bury();
    }
  }
  /// He introduces himself, and ends the connection.
  void come_and_go() {
    UniqueFd to_us;
    ASSERT_EQ(folder_->connect(block_, to_us), 0);
    HelloMessage hello;
    hello.identity = his_segment_->head().identity;
    hello.header_address = reinterpret_cast<std::uintptr_t>(his_segment_->base());
    hello.layout_version = kLayoutVersion;
    const int fds[] = {his_segment_->fd(), his_segment_->doorbell_fd(), wakes_.place()};
    ASSERT_EQ(send_message(to_us.get(), &hello, sizeof hello, fds), 0);
    serve();
    ASSERT_EQ(board_->living(), 1u);
    to_us.reset();
    serve();
  }
  /// How often somebody looked for him since the last call. He says nothing to it.
  int times_sought() {
    int times = 0;
    while (UniqueFd(accept4(his_name_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) ++times;
    serve();
    return times;
  }

  std::unique_ptr<FabricFolder> folder_ = std::make_unique<FabricFolder>();
  std::unique_ptr<OwnSegment> segment_ = std::make_unique<OwnSegment>();
  std::unique_ptr<PeerTable> peers_ = std::make_unique<PeerTable>();
  std::unique_ptr<WantedBlocks> wanted_ = std::make_unique<WantedBlocks>();
  WakeSocket wakes_;
  UniqueFd epoll_;
  std::unique_ptr<ConnectionManager> board_ = std::make_unique<ConnectionManager>(
      Surroundings{*segment_, *folder_, *peers_, *wanted_, kHooks});
  std::uint32_t block_ = 0;
  std::uint64_t inode_ = 0;
  std::unique_ptr<OwnSegment> his_segment_ = std::make_unique<OwnSegment>();
  UniqueFd his_name_;
  sockaddr_un way_{};
};

TEST_F(Seek, WhomNobodyHoldsIsLookedForEachSecondWhileHeLives) {
  EXPECT_EQ(board_->run_due(now_ns()), ~std::uint64_t{0}) << "nobody is lost: no date";
  ASSERT_NO_FATAL_FAILURE(come_and_go());
  EXPECT_EQ(times_sought(), 1);
  std::uint64_t now = now_ns() + ConnectionManager::kHandshakeNs + kSecond;
  for (int second = 0; second < 3; ++second) {
    for (int tenth = 0; tenth < 10; ++tenth) {
      EXPECT_GT(board_->run_due(now), now);
      now += kSecond / 10;
    }
    EXPECT_EQ(times_sought(), 1) << second;
  }
  EXPECT_EQ(deaths, 0u);
  EXPECT_EQ(board_->living(), 1u);
  // With his name he has left.
  take_his_name_away();
  (void)board_->run_due(now + kSecond);
  EXPECT_EQ(deaths, 1u);
}

TEST_F(Seek, WhomSomebodyHoldsIsLookedForAllTheTime) {
  ASSERT_NO_FATAL_FAILURE(come_and_go());
  EXPECT_EQ(times_sought(), 1);
  Peer* const peer = peers_->first();
  ASSERT_NE(peer, nullptr);
  ASSERT_TRUE(peers_->hold(*peer));
  std::uint64_t now = now_ns() + 2 * ConnectionManager::kHandshakeNs;
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(board_->run_due(now), now + ConnectionManager::kSeekNs);
    EXPECT_EQ(times_sought(), 1) << round;
    now += ConnectionManager::kSeekNs;
  }
  // Let go, he is looked for in peace.
  (void)peers_->release(*peer);
  EXPECT_GT(board_->run_due(now), now + ConnectionManager::kSeekNs);
  EXPECT_EQ(deaths, 0u);
}

}  // namespace
}  // namespace verbatim::shm
