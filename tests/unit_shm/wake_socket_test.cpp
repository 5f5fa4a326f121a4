// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/wake_socket.hpp"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/no_more_descriptors.hpp"

namespace verbatim::shm {
namespace {

bool woken(const WakeSocket& wakes) {
  pollfd look{wakes.fd(), POLLIN, 0};
  return poll(&look, 1, 0) == 1;
}

bool is_named(const std::string& name) {
  const auto names = harness::fabric_contents();
  return std::find(names.begin(), names.end(), name) != names.end();
}

class WakeSocketTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(folder_->open(), 0); }
  void TearDown() override { folder_->close(); }
  std::unique_ptr<FabricFolder> folder_ = std::make_unique<FabricFolder>();
};

TEST_F(WakeSocketTest, HasNoNameAndIsWokenByWhoeverKnowsItsPlace) {
  const auto before = harness::ProcessCensus::take();
  const auto names = harness::fabric_contents();
  WakeSocket wakes;
  ASSERT_EQ(wakes.open(*folder_), 0);
  EXPECT_EQ(harness::fabric_contents(), names);
  std::vector<UniqueFd> peers(40);  // more than its queue has places
  for (UniqueFd& socket : peers) ASSERT_EQ(wakes.connect(wakes.place(), socket), 0);
  EXPECT_FALSE(woken(wakes));
  for (int rounds = 0; rounds < 3; ++rounds) {
    for (const UniqueFd& socket : peers) wake_through(socket.get());
    EXPECT_TRUE(woken(wakes));
    while (woken(wakes)) wakes.drain();
    for (const UniqueFd& socket : peers) {
      wake_through(socket.get());
      EXPECT_TRUE(woken(wakes));
      wakes.drain();
      EXPECT_FALSE(woken(wakes));
    }
  }
  wakes.close();
  wake_through(peers[0].get());  // to nobody
  peers.clear();
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
}

/// Who is killed between the two steps leaves a name; whoever makes one removes it, if its socket
/// is dead.
TEST_F(WakeSocketTest, AForgottenNameIsRemovedByTheNextAndALivingOneIsNot) {
  const auto bound = [&](const char* name) {
    UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder_->path(), name);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  };
  bound("w0000dead").reset();
  const UniqueFd living = bound("w0011fe00");
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  folder_->release(block, folder_->inode_of(block));
  EXPECT_FALSE(is_named("w0000dead"));
  EXPECT_TRUE(is_named("w0011fe00"));
  unlink((std::string(folder_->path()) + "/w0011fe00").c_str());
}

/// Who asked for it decides what is said, and how often.
TEST_F(WakeSocketTest, ThatCannotBeMadeIsNothingThatItComplainsOf) {
  WakeSocket wakes;
  const NoMoreDescriptors none;
  EXPECT_EQ(wakes.open(*folder_), EMFILE);
}

bool has_mounts_of_its_own() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool mounted(const std::string& path) {
  return mount("none", path.c_str(), "tmpfs", 0, nullptr) == 0;
}

/// The folder moves from file system to file system, more of them than there are places for former
/// sockets, and once back. A role's status is the line where it went wrong.
VBT_ROLE(moves_on) {
  constexpr int kMoves = WakeSockets::kFormer + 2;
  const std::string base = getenv("VERBATIM_FABRIC");
  const bool apart = has_mounts_of_its_own() && mounted(base);
  control.send_value(static_cast<std::int32_t>(apart));
  if (!apart) return 0;
  WakeSockets wakes;
  std::vector<UniqueFd> peers(kMoves);
  const auto move_to = [&](int move) {
    const std::string place = base + "/" + std::to_string(move);
    std::filesystem::create_directory(place);
    setenv("VERBATIM_FABRIC", (place + "/fabric").c_str(), 1);
    return place;
  };
  const auto folder = [] {
    auto opened = std::make_unique<FabricFolder>();
    if (opened->open() != 0) opened.reset();
    return opened;
  };
  for (int move = 0; move < kMoves; ++move) {
    if (!mounted(move_to(move))) return __LINE__;
    const auto there = folder();
    WakeSocket fresh;
    if (!there || (move == 0 ? wakes.open(*there) : fresh.open(*there)) != 0) return __LINE__;
    if (move != 0) {
      if (wakes.tell_of_one_beside(fresh)) return __LINE__;
      wakes.tell_of(std::move(fresh));
    }
    if (wakes.told().connect(wakes.told().place(), peers[static_cast<std::size_t>(move)]) != 0)
      return __LINE__;
  }
  const auto heard = [&](int peer) {
    return send(peers[static_cast<std::size_t>(peer)].get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           1;
  };
  if (heard(0)) return __LINE__;
  (void)move_to(2);
  const auto back = folder();
  WakeSocket fresh;
  if (!back || fresh.open(*back) != 0 || !wakes.tell_of_one_beside(fresh)) return __LINE__;
  if (!wakes.told().is_beside(fresh)) return __LINE__;
  for (int peer = 1; peer < kMoves; ++peer) {
    if (!heard(peer)) return __LINE__;
    if (peer == 2 && !woken(wakes.told())) return __LINE__;
  }
  wakes.drain();
  for (int peer = 1; peer < kMoves; ++peer) {
    int unread = -1;
    if (ioctl(peers[static_cast<std::size_t>(peer)].get(), SIOCOUTQ, &unread) != 0 || unread != 0)
      return __LINE__;
  }
  return 0;
}

TEST(WakeSockets, OfTheLastFileSystemsAreHeardAndOneIsToldOfAgainWhereTheFolderWasBefore) {
  harness::Child child("moves_on");
  if (child.control().receive_value<std::int32_t>() == 0)
    GTEST_SKIP() << "a mount namespace needs privileges";
  EXPECT_EQ(child.wait().exit_status, 0);
}

VBT_ROLE(without_proc) {
  const bool apart = has_mounts_of_its_own() && mounted("/proc");
  control.send_value(static_cast<std::int32_t>(apart));
  if (!apart) return 0;
  const harness::FabricDirectory directory;
  FabricFolder folder;
  WakeSocket wakes;
  UniqueFd socket;
  if (folder.open() != 0 || wakes.open(folder) != 0) return 1;
  if (wakes.connect(wakes.place(), socket) != 0 || socket.valid()) return 2;
  wake_through(socket.get());
  return woken(wakes) ? 3 : 0;
}

TEST(WakeSocket, WithoutProcNobodyIsRefusedAndNobodyWoken) {
  harness::Child child("without_proc", {{"ASAN_OPTIONS", "detect_leaks=0"}});
  if (child.control().receive_value<std::int32_t>() == 0)
    GTEST_SKIP() << "a mount namespace needs privileges";
  EXPECT_EQ(child.wait().exit_status, 0);
}

}  // namespace
}  // namespace verbatim::shm
