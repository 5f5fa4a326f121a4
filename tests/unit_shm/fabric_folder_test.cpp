// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/fabric_folder.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::shm {
namespace {

namespace fs = std::filesystem;
using harness::AllowedLog;

/// Sets a variable for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class FabricFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/vbt-folder-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override {
    folder_->close();
    fs::remove_all(root_);
  }
  std::size_t names() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_->path()))
      count += entry.path().filename() != "lock";
    return count;
  }
  std::string root_;
  std::unique_ptr<FabricFolder> folder_ = std::make_unique<FabricFolder>();
};

TEST_F(FabricFolderTest, IsMadeForUsAloneUnderTheRuntimeDirectory) {
  const Variable fabric("VERBATIM_FABRIC", "lab");
  const Variable runtime("XDG_RUNTIME_DIR", root_.c_str());
  const mode_t before = umask(0);
  ASSERT_EQ(folder_->open(), 0);
  umask(before);
  const std::string path = root_ + "/verbatim-" + std::to_string(geteuid()) + "/lab";
  EXPECT_EQ(folder_->path(), path);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(FabricFolderTest, ADefaultNameAndTmpServeWhenNothingIsSet) {
  const Variable fabric("VERBATIM_FABRIC", nullptr);
  for (const char* runtime : {static_cast<const char*>(nullptr), "/nonexistent/run", "relative"}) {
    const Variable variable("XDG_RUNTIME_DIR", runtime);
    ASSERT_EQ(folder_->open(), 0);
    EXPECT_EQ(folder_->path(), "/tmp/verbatim-" + std::to_string(geteuid()) + "/default");
    folder_->close();
  }
}

TEST_F(FabricFolderTest, AStrictUmaskDoesNotLockUsOut) {
  const std::string path = root_ + "/fabric";
  const Variable fabric("VERBATIM_FABRIC", path.c_str());
  const mode_t before = umask(0777);
  const int error = folder_->open();
  std::uint32_t block = 0;
  UniqueFd listener;
  const int claimed = folder_->claim(block, listener);
  umask(before);
  ASSERT_EQ(error, 0);
  ASSERT_EQ(claimed, 0);
  UniqueFd socket;
  EXPECT_EQ(folder_->connect(block, socket), 0);
}

TEST_F(FabricFolderTest, WhatIsOpenToOthersOrALinkIsRefused) {
  const AllowedLog open_to_others("chmod 700");
  const AllowedLog a_link("symbolic link");
  const AllowedLog no_folder("VERBATIM_FABRIC");
  const std::string path = root_ + "/fabric";
  const Variable fabric("VERBATIM_FABRIC", path.c_str());
  fs::create_directory(path);
  fs::permissions(path, fs::perms(0750));
  EXPECT_EQ(folder_->open(), EACCES);
  fs::permissions(path, fs::perms(0700));
  EXPECT_EQ(folder_->open(), 0);
  folder_->close();
  fs::rename(path, root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", path);
  EXPECT_NE(folder_->open(), 0);
  fs::remove(path);
  std::ofstream(path) << "a file";
  EXPECT_NE(folder_->open(), 0);
}

TEST_F(FabricFolderTest, ANameThatIsNeitherPlainNorAbsoluteIsRefused) {
  const AllowedLog expected("neither a plain name nor an absolute path");
  for (const char* name : {"a/b", "..", ".", "../x"}) {
    const Variable fabric("VERBATIM_FABRIC", name);
    EXPECT_EQ(folder_->open(), EINVAL) << name;
  }
}

class OpenFolderTest : public FabricFolderTest {
 protected:
  void SetUp() override {
    FabricFolderTest::SetUp();
    // Far beyond what a socket's path may have.
    const std::string deep = root_ + "/" + std::string(120, 'd');
    fs::create_directory(deep);
    fabric_.emplace("VERBATIM_FABRIC", (deep + "/fabric").c_str());
    ASSERT_EQ(folder_->open(), 0);
  }
  std::optional<Variable> fabric_;
};

TEST_F(OpenFolderTest, AClaimedBlockCanBeConnectedTo) {
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  EXPECT_NE(block, 0u);
  EXPECT_LT(block, kQpnBlocks);
  UniqueFd socket;
  ASSERT_EQ(folder_->connect(block, socket), 0);
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(accepted.valid());
  folder_->release(block, folder_->inode_of(block));
  EXPECT_EQ(folder_->connect(block, socket), ENOENT);
  EXPECT_EQ(names(), 0u);
}

TEST_F(OpenFolderTest, BlocksAreClaimedOnceAndNotInARow) {
  std::set<std::uint32_t> blocks;
  std::vector<UniqueFd> listeners(64);
  int adjacent = 0;
  for (UniqueFd& listener : listeners) {
    std::uint32_t block = 0;
    ASSERT_EQ(folder_->claim(block, listener), 0);
    EXPECT_TRUE(blocks.insert(block).second);
    adjacent += blocks.contains(block - 1);
  }
  EXPECT_LT(adjacent, 20);
}

TEST_F(OpenFolderTest, ADeadOwnersNameRefusesAndIsRemoved) {
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  folder_->remove_stale(block);
  EXPECT_EQ(names(), 1u) << "its owner lives";
  listener.reset();  // as a crash would
  UniqueFd socket;
  EXPECT_EQ(folder_->connect(block, socket), ECONNREFUSED);
  folder_->remove_stale(block);
  EXPECT_EQ(names(), 0u);
}

/// All names of blocks are those of one socket, if the file system links sockets.
bool take_all_names(const FabricFolder& folder, const UniqueFd& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/tmp/vbt-%d", getpid());
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  bool made = true;
  for (std::uint32_t block = 1; made && block < kQpnBlocks - 1; ++block) {
    char name[8];
    std::snprintf(name, sizeof name, "q%03x", block);
    std::error_code error;
    fs::create_hard_link(address.sun_path, std::string(folder.path()) + "/" + name, error);
    made = !error;
  }
  unlink(address.sun_path);
  return made;
}

TEST_F(OpenFolderTest, TheBlocksOfSpecialNumbersAreGivenToNobody) {
  // IBTA 3.5.10: 0 and 1 are those of management, the highest is that of multicast groups.
  const UniqueFd living(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!take_all_names(*folder_, living)) GTEST_SKIP() << "this file system links no sockets";
  ASSERT_EQ(listen(living.get(), 1), 0);
  const AllowedLog full("blocks of queue pair numbers are taken");
  UniqueFd listener;
  std::uint32_t block = 0;
  EXPECT_EQ(folder_->claim(block, listener), ENOSPC) << block;
}

TEST_F(OpenFolderTest, AFullFolderOfTheDeadIsTakenOverQuickly) {
  // Every name is there, and every owner is dead: the worst that crashes can leave.
  if (!take_all_names(*folder_, UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))))
    GTEST_SKIP() << "this file system links no sockets";
  const auto start = std::chrono::steady_clock::now();
  std::vector<UniqueFd> listeners(32);
  for (UniqueFd& listener : listeners) {
    std::uint32_t block = 0;
    ASSERT_EQ(folder_->claim(block, listener), 0);
  }
  // Generous, for busy machines: no claim waits for a time to run out, of which each is a second.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(OpenFolderTest, TheNamesOfTheDeadGoAwayWithTheNextStarts) {
  constexpr std::size_t kDead = 100;
  std::uint32_t block = 0;
  {
    std::vector<UniqueFd> doomed(kDead);
    for (UniqueFd& listener : doomed) ASSERT_EQ(folder_->claim(block, listener), 0);
  }  // as a crash of all of them would
  EXPECT_EQ(names(), kDead);
  std::vector<UniqueFd> listeners(8);
  for (UniqueFd& listener : listeners) ASSERT_EQ(folder_->claim(block, listener), 0);
  EXPECT_EQ(names(), listeners.size());
}

TEST_F(OpenFolderTest, WhatIsNoSocketIsNoNameOfTheDead) {
  // A file of the user's, and a link to the socket of somebody who has died elsewhere.
  const fs::path folder = folder_->path();
  std::ofstream(folder / "q001") << "kept";
  std::uint32_t dead = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(dead, listener), 0);
  listener.reset();
  char name[8];
  std::snprintf(name, sizeof name, "q%03x", dead);
  fs::rename(folder / name, fs::path(root_) / "elsewhere");
  fs::create_symlink(fs::path(root_) / "elsewhere", folder / "q002");
  for (const std::uint32_t block : {1u, 2u}) folder_->remove_stale(block);
  std::vector<UniqueFd> listeners(4);
  for (UniqueFd& each : listeners) ASSERT_EQ(folder_->claim(dead, each), 0);
  EXPECT_TRUE(fs::exists(folder / "q001"));
  EXPECT_TRUE(fs::is_symlink(folder / "q002"));
  EXPECT_TRUE(fs::exists(fs::path(root_) / "elsewhere"));
}

TEST_F(OpenFolderTest, LookingForTheDeadDoesNotDisturbTheLiving) {
  std::uint32_t living = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(living, listener), 0);
  std::vector<UniqueFd> others(4);
  for (UniqueFd& other : others) {
    std::uint32_t block = 0;
    ASSERT_EQ(folder_->claim(block, other), 0);
  }
  folder_->remove_stale(living);
  EXPECT_EQ(names(), 1u + others.size());
  EXPECT_LT(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(OpenFolderTest, TheLastToLeaveRemovesTheLock) {
  const std::string lock = std::string(folder_->path()) + "/lock";
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  folder_->leave();
  EXPECT_TRUE(fs::exists(lock)) << "somebody is there";
  folder_->release(block, folder_->inode_of(block));
  {
    const UniqueFd other(open(lock.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
    folder_->leave();
    EXPECT_TRUE(fs::exists(lock)) << "somebody is coming";
  }
  folder_->leave();
  EXPECT_FALSE(fs::exists(lock));
}

TEST_F(OpenFolderTest, OfTwoWhoLeaveAtOnceOneRemovesTheLock) {
  const std::string lock = std::string(folder_->path()) + "/lock";
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  folder_->release(block, folder_->inode_of(block));
  // Another one who leaves has looked at the names before ours was gone, and is still there.
  const UniqueFd other(open(lock.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  std::atomic<bool> has_left = false;
  std::thread leaving([&] {
    folder_->leave(10'000'000'000);
    has_left = true;
  });
  const auto opened = [&] {
    int count = 0;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
      count += fs::read_symlink(entry.path(), gone) == lock;
    return count;
  };
  while (opened() < 2 && !has_left) sched_yield();
  EXPECT_FALSE(has_left) << "who has the lock would not have seen us go";
  ASSERT_EQ(flock(other.get(), LOCK_UN), 0);
  leaving.join();
  EXPECT_FALSE(fs::exists(lock));
}

TEST_F(OpenFolderTest, WhoWaitedForALockThatIsGoneTakesTheNextOne) {
  const std::string lock = std::string(folder_->path()) + "/lock";
  UniqueFd old(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(old.get(), LOCK_EX), 0);
  std::uint32_t block = 0;
  UniqueFd listener;
  int claimed = -1;
  std::thread waiting([&] { claimed = folder_->claim(block, listener); });
  // It has the file open by the time that a second descriptor of it shows.
  EXPECT_TRUE(harness::wait_until([&] {
    std::size_t open_here = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      open_here += fs::read_symlink(entry.path(), gone) == lock;
    }
    return open_here == 2;
  }));
  // The other is the last to leave, and a third one comes at once.
  unlink(lock.c_str());
  const UniqueFd third(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(third.get(), LOCK_EX), 0);
  old.reset();
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100)) {
    EXPECT_EQ(names(), 0u) << "two hold the lock";
    sched_yield();
  }
  ASSERT_EQ(flock(third.get(), LOCK_UN), 0);
  waiting.join();
  EXPECT_EQ(claimed, 0);
}

TEST_F(OpenFolderTest, AHeldLockIsWaitedForOnlySoLong) {
  const AllowedLog expected("lock is held");
  const UniqueFd lock(
      open((std::string(folder_->path()) + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  std::uint32_t block = 0;
  UniqueFd listener;
  EXPECT_EQ(folder_->claim(block, listener), EIO);
  ASSERT_EQ(flock(lock.get(), LOCK_UN), 0);
  EXPECT_EQ(folder_->claim(block, listener), 0);
}

TEST_F(OpenFolderTest, ANameOfAnothersIsNotReleased) {
  std::uint32_t block = 0;
  UniqueFd ours;
  ASSERT_EQ(folder_->claim(block, ours), 0);
  const std::uint64_t inode = folder_->inode_of(block);
  EXPECT_FALSE(folder_->lacks(block, inode));
  folder_->release(block, inode);
  EXPECT_TRUE(folder_->lacks(block, inode)) << "it is gone";
  UniqueFd theirs;
  ASSERT_EQ(folder_->claim_again(block, theirs), 0);
  EXPECT_TRUE(folder_->lacks(block, inode)) << "it is another one";
  folder_->release(block, inode);
  EXPECT_EQ(names(), 1u);
  UniqueFd once_more;
  EXPECT_EQ(folder_->claim_again(block, once_more), EADDRINUSE) << "somebody lives there";
}

TEST_F(OpenFolderTest, AHeldNameIsNotedAsGoneAndHeldAgainBesideOthers) {
  KeptFd held, other;
  ASSERT_EQ(folder_->hold("x1-2", true, false, held), 0);
  EXPECT_FALSE(folder_->lacks("x1-2", held));
  fs::remove(folder_->path() + std::string("/x1-2"));
  EXPECT_TRUE(folder_->lacks("x1-2", held));
  ASSERT_EQ(folder_->hold("x1-2", true, true, other), 0) << "nobody seems to hold it";
  EXPECT_TRUE(folder_->lacks("x1-2", held)) << "it is another one";
  EXPECT_EQ(folder_->hold_again("x1-2", held), 0);
  EXPECT_FALSE(folder_->lacks("x1-2", held));
  folder_->let_go("x1-2", other);
  EXPECT_TRUE(fs::exists(folder_->path() + std::string("/x1-2"))) << "it is ours too";
  folder_->let_go("x1-2", held);
  EXPECT_EQ(names(), 0u);
}

TEST_F(OpenFolderTest, WhoLetsALostNameGoTakesItFromNobody) {
  KeptFd held, other;
  ASSERT_EQ(folder_->hold("x1-2", true, false, held), 0);
  fs::remove(folder_->path() + std::string("/x1-2"));
  ASSERT_EQ(folder_->hold("x1-2", true, true, other), 0);
  folder_->let_go("x1-2", held);
  EXPECT_FALSE(folder_->lacks("x1-2", other));
}

TEST_F(OpenFolderTest, IsLeftWhenItWasRemovedOrOthersMeetElsewhereNotWhenItsPathIsHidden) {
  const std::string path = folder_->path();
  EXPECT_EQ(folder_->is_left(), nullptr);
  fs::rename(path, path + "-moved");
  EXPECT_EQ(folder_->is_left(), nullptr) << "as to a process that changed its root";
  fs::create_directory_symlink(path + "-moved", path);
  EXPECT_EQ(folder_->is_left(), nullptr) << "newcomers refuse that";
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(folder_->is_left(), nullptr) << "newcomers refuse what is open to others";
  fs::permissions(path, fs::perms(0700));
  EXPECT_NE(folder_->is_left(), nullptr);

  FabricFolder::Place place;
  FolderRefusal refusal;
  ASSERT_EQ(folder_->find_place(place, refusal), 0);
  ASSERT_EQ(folder_->move_to(place), 0);
  EXPECT_EQ(folder_->is_left(), nullptr);
  std::uint32_t block = 0;
  UniqueFd listener;
  ASSERT_EQ(folder_->claim(block, listener), 0);
  EXPECT_FALSE(fs::is_empty(path));
  fs::remove_all(path);
  EXPECT_NE(folder_->is_left(), nullptr);
}

TEST_F(FabricFolderTest, FollowsTheRuntimeDirectoryAsItGoesAndComesBack) {
  const std::string fabric_name = fs::path(root_).filename();
  const std::string in_tmp = "/tmp/verbatim-" + std::to_string(geteuid()) + "/" + fabric_name;
  const std::string run = root_ + "/run";
  fs::create_directory(run);
  const Variable fabric("VERBATIM_FABRIC", fabric_name.c_str());
  const Variable runtime("XDG_RUNTIME_DIR", run.c_str());
  ASSERT_EQ(folder_->open(), 0);
  const std::string at_first = folder_->path();
  fs::remove_all(run);
  ASSERT_NE(folder_->is_left(), nullptr);
  FabricFolder::Place there;
  FolderRefusal refusal;
  ASSERT_EQ(folder_->find_place(there, refusal), 0);
  ASSERT_EQ(folder_->move_to(there), 0);
  EXPECT_EQ(folder_->path(), in_tmp);

  fs::create_directory(run);
  EXPECT_EQ(folder_->is_left(), nullptr) << "nobody is there yet";
  FabricFolder newcomer;
  ASSERT_EQ(newcomer.open(), 0);
  ASSERT_NE(folder_->is_left(), nullptr);
  FabricFolder::Place back;
  ASSERT_EQ(folder_->find_place(back, refusal), 0);
  ASSERT_EQ(folder_->move_to(back), 0);
  EXPECT_EQ(folder_->path(), at_first);
  EXPECT_EQ(folder_->number(), newcomer.number());
  fs::remove_all(in_tmp);
}

TEST_F(OpenFolderTest, ARemovedFolderIsSaidSo) {
  const AllowedLog expected("cannot be used");
  fs::remove_all(folder_->path());
  std::uint32_t block = 0;
  UniqueFd listener;
  EXPECT_EQ(folder_->claim(block, listener), EIO);
}

}  // namespace
}  // namespace verbatim::shm
