// SPDX-License-Identifier: BSD-2-Clause
// Short texts that processes of a host leave for each other: who else could have written there is not read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/topo/host_note.hpp"
#include "tests/unit_topo/made_machine.hpp"

namespace verbatim::topo {
namespace {

namespace fs = std::filesystem;

class Note : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(note_.open("test")); }
  /// "-": there is none.
  std::string read() const {
    char text[32];
    return note_.read(text) ? text : "-";
  }
  void write_by_hand(const std::string& text) const { std::ofstream(note_.path()) << text; }

  PrivateRuntime runtime_;
  HostNote note_;
};

TEST_F(Note, IsWhatWasWrittenLast) {
  EXPECT_EQ(read(), "-");
  EXPECT_TRUE(note_.write("first"));
  EXPECT_EQ(read(), "first");
  EXPECT_TRUE(note_.write("a second"));
  EXPECT_EQ(read(), "a second");
  HostNote other;
  ASSERT_TRUE(other.open("other"));
  char text[32];
  EXPECT_FALSE(other.read(text));
  HostNote again;
  ASSERT_TRUE(again.open("test"));
  ASSERT_TRUE(again.read(text));
  EXPECT_STREQ(text, "a second");
  // Nothing else is left, and all of it is ours alone.
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(note_.path()).parent_path())) {
    ++files;
    EXPECT_EQ(entry.path(), note_.path());
    EXPECT_EQ(fs::status(entry).permissions(), fs::perms(0600));
  }
  EXPECT_EQ(files, 1);
}

TEST_F(Note, HasToFit) {
  write_by_hand(std::string(31, 'x'));
  EXPECT_EQ(read(), std::string(31, 'x'));
  write_by_hand(std::string(32, 'x'));
  EXPECT_EQ(read(), "-");
  write_by_hand("");
  EXPECT_EQ(read(), "");
}

TEST_F(Note, IsOfNobodyElse) {
  write_by_hand("open");
  fs::permissions(note_.path(), fs::perms(0620));
  EXPECT_EQ(read(), "-");
  fs::permissions(note_.path(), fs::perms(0600));
  EXPECT_EQ(read(), "open");
  fs::remove(note_.path());
  const std::string elsewhere = std::string(note_.path()) + "-elsewhere";
  std::ofstream(elsewhere) << "elsewhere";
  fs::create_symlink(elsewhere, note_.path());
  EXPECT_EQ(read(), "-");
  fs::remove(note_.path());
  fs::create_directory(note_.path());
  EXPECT_EQ(read(), "-");
  EXPECT_FALSE(note_.write("lost"));
  EXPECT_EQ(read(), "-");
  fs::remove(note_.path());
  ASSERT_EQ(::mkfifo(note_.path(), 0600), 0);
  EXPECT_EQ(read(), "-");
  EXPECT_TRUE(note_.write("over it"));
  EXPECT_EQ(read(), "over it");
}

TEST_F(Note, WhatAnotherProcessLeftHalfWrittenIsInNobodysWay) {
  const std::string half = std::string(note_.path()) + "." + std::to_string(::getpid());
  std::ofstream(half) << "half";
  EXPECT_TRUE(note_.write("whole"));
  EXPECT_EQ(read(), "whole");
  EXPECT_FALSE(fs::exists(half));
}

TEST(NoteNowhere, IsNotOpened) {
  PrivateRuntime runtime;
  HostNote note;
  // A file where the user's folder would be.
  std::ofstream(runtime.folder()) << "";
  EXPECT_FALSE(note.open("test"));
  EXPECT_STREQ(note.path(), "");
}

}  // namespace
}  // namespace verbatim::topo
