// SPDX-License-Identifier: BSD-2-Clause
// One reading for all processes of a user: who reads, who takes, and what happens to a file that
// cannot be believed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "runtime/base/unique_fd.hpp"
#include "runtime/topo/machine_share.hpp"
#include "tests/unit_topo/made_machine.hpp"

namespace verbatim::topo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kRead = "read by hwloc";
constexpr const char* kTaken = "the machine is taken from";

/// A process that asks for the machine, and what it said.
class Teller {
 public:
  explicit Teller(std::vector<std::string> variables = {}, const char* argument = nullptr) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    variables.push_back("VERBATIM_LOG=debug");
    variables.push_back(std::string("XDG_RUNTIME_DIR=") + ::getenv("XDG_RUNTIME_DIR"));
    variables.push_back(std::string("PATH=") + ::getenv("PATH"));
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string program = VERBATIM_TOPOLOGY_TELLER;
    std::string first = argument != nullptr ? argument : "";
    char* arguments[] = {program.data(), argument != nullptr ? first.data() : nullptr, nullptr};
    EXPECT_EQ(
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environment.data()), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    output_.reset(out[0]);
  }
  ~Teller() { (void)said(); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  /// All of it, once the process has ended.
  const std::string& said() {
    if (pid_ < 0) return said_;
    char piece[4096];
    for (ssize_t got; (got = ::read(output_.get(), piece, sizeof piece)) > 0;)
      said_.append(piece, static_cast<std::size_t>(got));
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said_;
    pid_ = -1;
    return said_;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
  std::string said_;
};

class Share : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_reader()) GTEST_SKIP() << "built without hwloc";
  }
  /// The one file of a machine.
  fs::path machine() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(runtime_.folder())) {
      const std::string name = entry.path().filename();
      if (name == ".machine-lock") continue;
      EXPECT_TRUE(found.empty()) << "another one: " << name;
      found = entry.path();
    }
    EXPECT_FALSE(found.empty());
    return found;
  }
  PrivateRuntime runtime_;
};

TEST_F(Share, TheSecondProcessDoesNotReadTheMachine) {
  Teller first;
  EXPECT_THAT(first.said(), HasSubstr(kRead));
  EXPECT_THAT(first.said(), HasSubstr("\nknown "));
  Teller second;
  EXPECT_THAT(second.said(), HasSubstr(kTaken));
  EXPECT_THAT(second.said(), Not(HasSubstr(kRead)));
  const auto facts = [](const std::string& said) { return said.substr(said.find("\nknown ")); };
  EXPECT_EQ(facts(first.said()), facts(second.said()));
}

TEST_F(Share, OfManyThatStartTogetherOneReads) {
  std::vector<std::unique_ptr<Teller>> tellers;
  for (int i = 0; i < 12; ++i)
    tellers.push_back(
        std::make_unique<Teller>(std::vector<std::string>{"HWLOC_SYNTHETIC=numa:16 core:64 pu:4"}));
  int readers = 0;
  for (const auto& teller : tellers) {
    readers += teller->said().find(kRead) != std::string::npos;
    EXPECT_THAT(teller->said(), HasSubstr("known 16 nodes 1024 cores 4096 processors"));
  }
  EXPECT_EQ(readers, 1);
}

TEST_F(Share, WhatIsSharedIsForUsAlone) {
  const mode_t before = ::umask(0);
  const Described two = Described::text("numa:2 pu:2");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(machine().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(runtime_.folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(Share, EachDescriptionHasItsOwn) {
  const Described two = Described::text("numa:2 pu:2");
  const Described three = Described::text("numa:3 pu:2");
  const Described again = Described::text("numa:2 pu:2");
  EXPECT_EQ(two.machine.nodes().size(), 2u);
  EXPECT_EQ(three.machine.nodes().size(), 3u);
  EXPECT_EQ(again.machine.nodes().size(), 2u);
  const std::string copy = runtime_.root() + "/copy.xml";
  fs::copy_file(std::string(VERBATIM_TOPOLOGIES) + "/two_sockets.xml", copy);
  EXPECT_EQ(Described("HWLOC_XMLFILE", copy).machine.nodes().size(), 2u);
  fs::remove(copy);
  fs::copy_file(std::string(VERBATIM_TOPOLOGIES) + "/eight_nodes.xml", copy);
  EXPECT_EQ(Described("HWLOC_XMLFILE", copy).machine.nodes().size(), 8u)
      << "the same name, with other contents";
}

TEST_F(Share, AFileThatCannotBeBelievedIsReplaced) {
  (void)Described::text("numa:2 pu:2");
  const fs::path path = machine();
  const auto size = fs::file_size(path);
  const auto spoil = [&](int way) {
    fs::permissions(path, fs::perms(0600));
    switch (way) {
      case 0:
        fs::resize_file(path, 0);
        return;
      case 1:
        fs::resize_file(path, size / 2);
        return;
      case 2:
        fs::resize_file(path, size + 8);
        return;
      case 3:
        fs::resize_file(path, std::uintmax_t{1} << 40);
        return;
      case 4:
        std::ofstream(path, std::ios::in).seekp(static_cast<long>(size) - 1).put(99);
        return;
      case 5:
        fs::permissions(path, fs::perms(0622));
        return;
      case 6:
        fs::remove(path), fs::create_directory(path);
        return;
      case 7:
        fs::remove(path), ::mkfifo(path.c_str(), 0600);
        return;
      case 8:
        fs::rename(path, runtime_.root() + "/moved"),
            fs::create_symlink(runtime_.root() + "/moved", path);
        return;
      default:
        fs::remove(path), fs::create_symlink("/dev/zero", path);
        return;
    }
  };
  for (int way = 0; way < 10; ++way) {
    spoil(way);
    EXPECT_EQ(Described::text("numa:2 pu:2").machine.nodes().size(), 2u) << "way " << way;
    if (fs::is_directory(fs::symlink_status(path))) fs::remove(path);  // nothing replaces a folder
    Teller teller({"HWLOC_SYNTHETIC=numa:2 pu:2"});
    EXPECT_THAT(teller.said(), HasSubstr(way == 6 ? kRead : kTaken)) << "way " << way;
  }
}

TEST_F(Share, AMachineUnderTheNameOfAnotherIsNotBelieved) {
  (void)Described::text("numa:2 pu:2");
  const fs::path two = machine();
  fs::rename(two, runtime_.root() + "/two");
  (void)Described::text("numa:3 pu:2");
  fs::rename(runtime_.root() + "/two", machine());
  EXPECT_EQ(Described::text("numa:3 pu:2").machine.nodes().size(), 3u);
}

TEST_F(Share, ALockThatIsHeldForEverIsNotWaitedForForEver) {
  (void)Described::text("numa:2 pu:2");
  fs::remove(machine());
  const UniqueFd lock(::open((runtime_.folder() + "/.machine-lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  Teller teller({"HWLOC_SYNTHETIC=numa:2 pu:2"});
  EXPECT_THAT(teller.said(), HasSubstr("is held for too long"));
  EXPECT_THAT(teller.said(), HasSubstr(kRead));
}

TEST_F(Share, WhereHwlocWouldEndTheProgramTheMachineIsUnknown) {
  Teller teller({}, "give up");
  EXPECT_THAT(teller.said(), HasSubstr("hwloc gives up: depth >= 0 (topology.c:1)"));
  EXPECT_THAT(teller.said(),
              HasSubstr("this host: hwloc gave up; where memory and processors are"));
  EXPECT_THAT(teller.said(), HasSubstr("\nunknown 0 nodes"));
  Teller next;
  EXPECT_THAT(next.said(), HasSubstr("\nknown ")) << "what it left disturbs others";
}

TEST_F(Share, WithoutAFolderEachReadsForItself) {
  fs::create_directory(runtime_.folder());
  fs::permissions(runtime_.folder(), fs::perms(0755));
  for (int i = 0; i < 2; ++i) {
    Teller teller;
    EXPECT_THAT(teller.said(), HasSubstr("each process reads the machine for itself"));
    EXPECT_THAT(teller.said(), HasSubstr("chmod 700"));
    EXPECT_THAT(teller.said(), HasSubstr(kRead));
  }
  EXPECT_TRUE(fs::is_empty(runtime_.folder()));
}

TEST_F(Share, WhatAnEarlierStartOfTheHostLeftGoesAway) {
  fs::create_directory(runtime_.folder());
  fs::permissions(runtime_.folder(), fs::perms(0700));
  for (const char* name : {".machine-00000000-0123456789abcdef", ".machine-new-1", "default"})
    std::ofstream(runtime_.folder() + "/" + name) << "old";
  fs::last_write_time(runtime_.folder() + "/.machine-new-1",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  std::ofstream(runtime_.folder() + "/.machine-new-2") << "somebody is about to";
  (void)Described::text("numa:2 pu:2");
  EXPECT_FALSE(fs::exists(runtime_.folder() + "/.machine-00000000-0123456789abcdef"));
  EXPECT_FALSE(fs::exists(runtime_.folder() + "/.machine-new-1"));
  EXPECT_TRUE(fs::exists(runtime_.folder() + "/.machine-new-2"));
  EXPECT_TRUE(fs::exists(runtime_.folder() + "/default")) << "a fabric's";
}

}  // namespace
}  // namespace verbatim::topo
