// SPDX-License-Identifier: BSD-2-Clause
// `verbatim exec`, and what its preload answers to programs that look around the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

const std::string kFolder = VERBATIM_DROPIN_FOLDER;

Ending exec(Words words, const Environment& environment = {}) {
  words.insert(words.begin(), "exec");
  return run({VERBATIM_TOOL, "verbatim", environment}, words);
}
Ending look(const std::string& path) { return exec({"--", VERBATIM_LOOKING, path}); }

TEST(Exec, ShowsWhatItSets) {
  const Ending ending = exec({"--show"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("export LD_LIBRARY_PATH='" + kFolder + "'\n"));
  EXPECT_THAT(ending.out, HasSubstr("export LD_PRELOAD='" + kFolder +
                                    "/libibverbs.so.1:" + kFolder + "/libverbatim_gate.so'\n"));
}

TEST(Exec, KeepsWhatIsSetBehindIt) {
  const Ending once = exec({"--show"}, {{"LD_LIBRARY_PATH", "/opt/it's/lib"}});
  EXPECT_THAT(once.out, HasSubstr("LD_LIBRARY_PATH='" + kFolder + ":/opt/it'\\''s/lib'"));
  const Ending twice = exec({"--show"}, {{"LD_LIBRARY_PATH", kFolder + ":/opt/lib"}});
  EXPECT_THAT(twice.out, HasSubstr("LD_LIBRARY_PATH='" + kFolder + ":/opt/lib'"));
}

TEST(Exec, EndsAsTheProgramDoes) {
  EXPECT_EQ(exec({"sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(exec({"--", "sh", "-c", "kill -TERM $$"}).signal, SIGTERM);
}

TEST(Exec, SaysWhyNothingIsRun) {
  const Ending missing = exec({"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_THAT(missing.err, HasSubstr("cannot run 'no-such-program': No such file or directory"));
  EXPECT_EQ(exec({"/etc/passwd"}).status, 126);
  EXPECT_EQ(exec({}).status, 1);
  EXPECT_EQ(exec({"--no-such-option"}).status, 1);
  EXPECT_EQ(exec({"--show", "true"}).status, 1);
}

TEST(Exec, SaysThatAProgramOfAnotherUserOrGroupKeepsItsLibrary) {
  char folder[] = "/tmp/verbatim-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  std::string program = "su";
  if (::geteuid() == 0) {
    // To root it is another's by its group.
    program = std::string(folder) + "/another's";
    std::filesystem::copy_file("/bin/true", program);
    ASSERT_EQ(::chown(program.c_str(), static_cast<uid_t>(-1), ::getegid() + 1), 0);
    ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  }
  const Ending ending = exec({program, "--version"});
  std::filesystem::remove_all(folder);
  EXPECT_THAT(ending.err, HasSubstr("changes the user or group that it runs as"));
  EXPECT_THAT(exec({"/bin/true"}).err, "");
}

TEST(Exec, AProgramOfALaterLibraryIsRefusedByTheDynamicLinker) {
  const Ending ending = exec({VERBATIM_LATER_PROGRAM});
  EXPECT_EQ(ending.signal, 0);
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err,
              HasSubstr("/libibverbs.so.1: version `IBVERBS_9.9' not found (required by"));
}

TEST(Gate, TheFolderOfDevicesIsThere) {
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "it really is";
  const Ending ending = look("/sys/class/infiniband");
  for (const char* line : {"\nlstat: folder 755\n", "\nfstatat: folder 755\n", "\nexecute: yes\n"})
    EXPECT_THAT("\n" + ending.out, HasSubstr(line));
  EXPECT_THAT(ending.out, HasSubstr("stat: folder 755\n"));
  EXPECT_THAT(ending.out, HasSubstr("read and write: Permission denied\n"));
}

TEST(Gate, ADeviceOfOursHasANode) {
  const Ending ending = look("/dev/infiniband/shm0");
  EXPECT_THAT(ending.out, HasSubstr("stat: device 666\n"));
  EXPECT_THAT(ending.out, HasSubstr("read and write: yes\n"));
  EXPECT_THAT(ending.out, HasSubstr("execute: Permission denied\n"));
  EXPECT_THAT(ending.out, HasSubstr("open: No such file or directory\n"));
}

TEST(Gate, TheConnectionManagerIsSilent) {
  if (std::filesystem::exists("/dev/infiniband/rdma_cm")) GTEST_SKIP() << "it really is there";
  const Ending ending = look("/dev/infiniband/rdma_cm");
  EXPECT_THAT(ending.out, ContainsRegex("opened: device"));
  EXPECT_THAT(ending.out, HasSubstr("event: none\n"));
  EXPECT_THAT(ending.out, HasSubstr("closed at exec: yes\n"));
  EXPECT_THAT(ending.out, HasSubstr("command: Bad file descriptor\n"));
  EXPECT_EQ(ending.err, "");
}

TEST(Gate, OtherFilesAreAsTheyAre) {
  for (const char* path :
       {"/dev/infiniband/uverbs77", "/dev/infiniband/shm", "/dev/infiniband/shm0x",
        "/sys/class/infiniband/none", "/sys/class/infiniband_none", "/no/such/file"})
    EXPECT_THAT(look(path).out, HasSubstr("stat: No such file or directory\n")) << path;
  EXPECT_THAT(look("/dev/null").out, HasSubstr("stat: device 666\n"));
  EXPECT_THAT(look("/").out, HasSubstr("stat: folder 755\n"));
}

TEST(Gate, WithoutTheLibraryAnswersNothing) {
  const Ending alone =
      run({VERBATIM_LOOKING, "looking", {{"LD_PRELOAD", kFolder + "/libverbatim_gate.so"}}},
          {"/dev/infiniband/shm0"});
  EXPECT_THAT(alone.out, HasSubstr("stat: No such file or directory\n"));
  EXPECT_EQ(alone.err, "");
}

TEST(Gate, BesideAnotherLibraryAnswersNothingAndSaysSo) {
  const Ending ending =
      run({VERBATIM_LOOKING, "looking", {{"LD_PRELOAD", kFolder + "/libverbatim_gate.so"}}},
          {"-l", VERBATIM_OTHER_LIBRARY, "/dev/infiniband/shm0"});
  EXPECT_THAT(ending.out, HasSubstr("stat: No such file or directory\n"));
  EXPECT_THAT(ending.err, HasSubstr(VERBATIM_OTHER_LIBRARY));
  EXPECT_THAT(ending.err, HasSubstr("fix: start it by `verbatim exec`"));
}

}  // namespace
}  // namespace verbatim::tools
