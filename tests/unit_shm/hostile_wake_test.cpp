// SPDX-License-Identifier: BSD-2-Clause
// The sockets that wake: what a stranger does with the way that he was given, and with his own.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "providers/shm/fabric/wake_socket.hpp"
#include "tests/support/process_census.hpp"
#include "tests/unit_shm/stranger.hpp"

namespace verbatim::shm {
namespace {

using harness::wait_until;

class HostileWakeTest : public Stranger {};

/// A peer leaves no room for wakes, and makes room at the worst moments.
TEST_F(HostileWakeTest, AWakeNeverWaitsWhateverThePeerDoesToItsSocket) {
  const UniqueFd socket = connected();
  forged_->head().blocks[0].store(4000);
  forged_->head().block_count.store(1);
  ASSERT_EQ(
      say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(), place_.get()),
      0);
  ASSERT_FALSE(was_refused(socket.get()));
  Peer* const peer = Process::get().hold_peer(4000u << kQpnBlockBits);
  ASSERT_NE(peer, nullptr);
  WakeSocket wakes;
  UniqueFd filler;
  ASSERT_EQ(wakes.open(*folder_), 0);
  ASSERT_EQ(wakes.connect(place_.get(), filler), 0);
  char byte = 0;
  peer->wake_service();
  EXPECT_EQ(recv(woken_.get(), &byte, 1, MSG_DONTWAIT), 1);

  constexpr std::uint32_t kWakes = 100'000;
  std::atomic<std::uint32_t> sent{0};
  std::thread waker([&] {
    for (; sent < kWakes; ++sent) peer->wake_service();
  });
  // Whoever waits for room waits for ever: there is none until he has gone on.
  bool waited = false;
  while (sent < kWakes && !waited) {
    while (recv(woken_.get(), &byte, 1, MSG_DONTWAIT) == 1) {
    }
    while (send(filler.get(), &byte, 1, MSG_DONTWAIT) == 1) {
    }
    const std::uint32_t full_at = sent;
    waited = !wait_until([&] { return sent >= kWakes || sent >= full_at + 2; });
  }
  EXPECT_FALSE(waited) << "after " << sent << " wakes";
  woken_.reset();  // whoever waited goes on
  waker.join();
  peer->wake_service();  // nobody there: nothing happens
  Process::get().release_peer(*peer);
}

/// And the way to wake us that others get: what one does with it concerns it alone.
TEST_F(HostileWakeTest, ThePlaceThatAPeerWasGivenWakesUsAndSpoilsNothing) {
  const auto meet_as = [&](std::uint64_t identity, UniqueFd& socket, UniqueFd& wake) {
    forged_->head().identity = identity;
    socket = connected();
    ASSERT_EQ(say_hello(socket.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(),
                        place_.get()),
              0);
    Received answer;
    ASSERT_TRUE(wait_until([&] { return receive_message(socket.get(), answer) == 0; }));
    ASSERT_EQ(answer.fd_count, 3u);
    WakeSocket own;
    ASSERT_EQ(own.open(*folder_), 0);
    ASSERT_EQ(own.connect(answer.fds[2].get(), wake), 0);
    // Nothing but a way: it cannot be read, emptied or closed for others.
    unsigned char byte = 0;
    EXPECT_EQ(read(answer.fds[2].get(), &byte, 1), -1);
    EXPECT_EQ(shutdown(answer.fds[2].get(), SHUT_RDWR), -1);
  };
  const std::uint64_t identity = forged_->head().identity;
  UniqueFd bad_socket, bad_wake, good_socket, good_wake;
  meet_as(identity + 1, bad_socket, bad_wake);
  meet_as(identity + 2, good_socket, good_wake);
  Doorbells& doorbells = Process::get().self().segment.doorbells();
  std::uint32_t expected = 0;
  const auto wakes_us = [&](int wake) {
    doorbells.cq_wake.ring(7);
    wake_through(wake);
    ++expected;
    return wait_until([&] { return ProcessEvents::get().cq_wakes == expected; });
  };
  EXPECT_TRUE(wakes_us(bad_wake.get()));
  // Much, long, and with descriptors.
  const std::size_t before = harness::ProcessCensus::take().descriptors.size();
  unsigned char large[4096] = {};
  const int fds[] = {0, 1, 2};
  for (int i = 0; i < 5000; ++i) (void)send_message(bad_wake.get(), large, sizeof large, fds);
  EXPECT_TRUE(wakes_us(good_wake.get()));
  EXPECT_EQ(harness::ProcessCensus::take().descriptors.size(), before);
  bad_wake.reset();
  bad_socket.reset();
  EXPECT_TRUE(wakes_us(good_wake.get()));
}

}  // namespace
}  // namespace verbatim::shm
