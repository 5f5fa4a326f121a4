// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

TEST(Child, GetsItsFilesUnderTheNumbersAskedForEvenWhenTheyCross) {
  auto [read_end, write_end] = pipe_pair();
  auto [other_read, other_write] = pipe_pair();
  SpawnOptions options;
  // Each source has the number that another one is to get.
  options.fds = {{write_end.get(), other_write.get()}, {other_write.get(), write_end.get()}};
  const std::string script = "printf a >&" + std::to_string(other_write.get()) + "; printf b >&" +
                             std::to_string(write_end.get());
  Child child({"/bin/bash", "-c", script}, options);
  EXPECT_EQ(child.wait(), 0);
  char byte = 0;
  ASSERT_EQ(read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
  ASSERT_EQ(read(other_read.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'b');
}

TEST(Child, ReplacesNamedVariablesAndKeepsTheOthers) {
  setenv("VERBATIM_PERF_TEST_KEPT", "kept", 1);
  setenv("VERBATIM_PERF_TEST_CHANGED", "old", 1);
  SpawnOptions options;
  options.environment = {"VERBATIM_PERF_TEST_CHANGED=new"};
  Child child(
      {"/bin/sh", "-c", "test \"$VERBATIM_PERF_TEST_KEPT$VERBATIM_PERF_TEST_CHANGED\" = keptnew"},
      options);
  EXPECT_EQ(child.wait(), 0);
}

TEST(Child, EndsWithItsOwner) {
  pid_t pid = -1;
  {
    Child child({"/bin/sleep", "1000"}, {});
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Child, AProgramThatDoesNotExistIsAnError) {
  EXPECT_THROW(Child({"/nonexistent/program"}, {}), std::system_error);
}

TEST(ScratchFolder, IsPrivateAndGoesWithItsContent) {
  std::string path;
  {
    ScratchFolder folder;
    path = folder.path();
    const auto mode = std::filesystem::status(path).permissions();
    EXPECT_EQ(mode & std::filesystem::perms::all, std::filesystem::perms::owner_all);
    std::filesystem::create_directories(path + "/a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace verbatim::perf
