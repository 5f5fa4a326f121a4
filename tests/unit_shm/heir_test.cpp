// SPDX-License-Identifier: BSD-2-Clause
// A socket outlives its process in whoever inherited it, a child that was being forked, say: the
// dead are not waited for.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>

#include "providers/shm/fabric/connection_manager.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/stranger.hpp"

namespace verbatim::shm {
namespace {

using harness::Child;
using harness::wait_until;

/// Takes a block, and leaves the socket that listens there to the test.
VBT_ROLE(testator) {
  FabricFolder folder;
  std::uint32_t block = 0;
  UniqueFd listener;
  if (folder.open() != 0 || folder.claim(block, listener) != 0) return 1;
  const int fds[] = {listener.get()};
  if (send_message(control.fd(), &block, sizeof block, fds) != 0) return 1;
  (void)control.receive_value<int>();  // until it is killed
  return 0;
}

class Heir : public Stranger {
 protected:
  void SetUp() override {
    Stranger::SetUp();
    Received received;
    ASSERT_TRUE(
        wait_until([&] { return receive_message(testator_.control().fd(), received) == 0; }));
    ASSERT_EQ(received.bytes, sizeof block_);
    std::memcpy(&block_, received.data, sizeof block_);
    listener_ = static_cast<UniqueFd&&>(received.fds[0]);
    ASSERT_TRUE(listener_.valid());
  }
  void TearDown() override {
    listener_.reset();
    folder_->remove_stale(block_);
    Stranger::TearDown();
  }
  bool is_being_met() {
    const std::uint32_t qpn = block_ << kQpnBlockBits;
    Process::get().want_peer(qpn);
    return Process::get().is_connecting(qpn);
  }
  /// Long before the time that a living one has.
  static constexpr int kSoonMs = ConnectionManager::kHandshakeNs / 1'000'000 / 2;

  Child testator_{"testator"};
  std::uint32_t block_ = 0;
  UniqueFd listener_;
};

TEST_F(Heir, WhoDiesBeforeItAnswersIsNotWaitedFor) {
  ASSERT_TRUE(is_being_met());
  UniqueFd accepted;
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(is_being_met());
    accepted.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted.valid();
  }));
  testator_.kill_and_collect();
  EXPECT_TRUE(wait_until([&] { return !is_being_met(); }, kSoonMs));
}

TEST_F(Heir, WhoIsDeadIsNotMetThroughASocketThatIsStillThere) {
  testator_.kill_and_collect();
  EXPECT_TRUE(wait_until([&] { return !is_being_met(); }, kSoonMs));
}

TEST_F(Heir, WhoIsDeadAndNotWaitedForByItsParentIsDead) {
  testator_.signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !is_being_met(); }, kSoonMs));
}

}  // namespace
}  // namespace verbatim::shm
