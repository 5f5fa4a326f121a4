// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_LOG and the variables of environment.hpp, seen from outside: a program is run and its
// output read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Spoken {
  std::string out;
  std::string err;
  int exit_code;
};

std::string read_all(int fd) {
  std::string all;
  char piece[4096];
  for (ssize_t got; (got = ::read(fd, piece, sizeof piece)) > 0;) {
    all.append(piece, static_cast<std::size_t>(got));
  }
  return all;
}

/// The output fits into pipes, so reading one after the other cannot block for ever.
Spoken speak(std::vector<std::string> environment, const char* argument = "") {
  int out[2];
  int err[2];
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::string program = VERBATIM_LOG_SPEAKER;
  std::string first = argument;
  char* arguments[] = {program.data(), first.data(), nullptr};
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  pid_t child = -1;
  EXPECT_EQ(::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, variables.data()),
            0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  Spoken spoken{read_all(out[0]), read_all(err[0]), -1};
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  spoken.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return spoken;
}

constexpr const char* kError = "verbatim: an error 1\n";
constexpr const char* kWarning = "verbatim: a warning 2\n";
constexpr const char* kFact = "verbatim: a fact\n";
constexpr const char* kDetail = "verbatim: a detail\n";
constexpr const char* kOnce = "verbatim: once\n";

TEST(Log, ShowsWarningsAndErrorsByDefault) {
  const Spoken spoken = speak({});
  EXPECT_EQ(spoken.err, std::string(kError) + kWarning + kOnce);
  EXPECT_EQ(spoken.out, "");
  EXPECT_EQ(spoken.exit_code, 0) << "logging changed errno";
}

TEST(Log, SaysNothingWhenOff) { EXPECT_EQ(speak({"VERBATIM_LOG=off"}).err, ""); }

TEST(Log, EachLevelIncludesThoseBefore) {
  EXPECT_EQ(speak({"VERBATIM_LOG=error"}).err, std::string(kError) + kOnce);
  EXPECT_EQ(speak({"VERBATIM_LOG=warn"}).err, std::string(kError) + kWarning + kOnce);
  EXPECT_EQ(speak({"VERBATIM_LOG=info"}).err, std::string(kError) + kWarning + kFact + kOnce);
  EXPECT_EQ(speak({"VERBATIM_LOG=debug"}).err,
            std::string(kError) + kWarning + kFact + kDetail + kOnce);
}

TEST(Log, ReportsAnUnknownLevelOnceAndMeansWarn) {
  const std::string err = speak({"VERBATIM_LOG=loud"}).err;
  const std::size_t at = err.find("loud");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(err.find("loud", at + 1), std::string::npos);
  EXPECT_THAT(err, HasSubstr(kWarning));
  EXPECT_THAT(err, Not(HasSubstr(kFact)));
}

TEST(Log, WhatAUserNamedNeitherCommandsTheTerminalNorBeginsALine) {
  const Spoken spoken = speak({"VERBATIM_LOG=\x1b[2J\nverbatim: all is\rwell\x7f"});
  EXPECT_THAT(spoken.err, HasSubstr("VERBATIM_LOG='?[2J?verbatim: all is?well?' is not one of"));
}

// Those of 8 bits too, as they are and in UTF-8; what are letters stays.
TEST(Log, LettersOfAnyLanguagePassAndNoCommands) {
  const Spoken spoken = speak({"VERBATIM_LOG=\xc2\x9b[2J\xc2\x85\x9bJ gr\xc3\xb6\xc3\x9f"});
  EXPECT_THAT(spoken.err, HasSubstr("VERBATIM_LOG='??[2J???J gr\xc3\xb6\xc3\x9f' is not one of"));
}

TEST(Log, CutsALineThatIsTooLongAndStillEndsIt) {
  const std::string err = speak({}, "long").err;
  EXPECT_EQ(err.size(), 1023u);
  EXPECT_EQ(err.substr(0, 13), "verbatim: xxx");
  EXPECT_EQ(err.back(), '\n');
}

TEST(Environment, TakesWhatIsInRange) {
  const Spoken spoken = speak(
      {"VERBATIM_TEST_NUMBER=0x10", "VERBATIM_TEST_CHOICE=red", "VERBATIM_TEST_TEXT=12345678"},
      "environment");
  EXPECT_EQ(spoken.out, "16 0 yes\n");
  EXPECT_EQ(spoken.err, "");
}

TEST(Environment, FallsBackInSilenceWhenUnset) {
  const Spoken spoken = speak({"VERBATIM_TEST_NUMBER="}, "environment");
  EXPECT_EQ(spoken.out, "5 1 no\n");
  EXPECT_EQ(spoken.err, "");
}

TEST(Environment, NamesWhatItCannotUse) {
  for (const char* number : {"101", "1", "-3", "5x", "0x", " 7", "99999999999999999999999"}) {
    const Spoken spoken = speak({std::string("VERBATIM_TEST_NUMBER=") + number}, "environment");
    EXPECT_EQ(spoken.out, "5 1 no\n") << number;
    EXPECT_THAT(spoken.err, HasSubstr("VERBATIM_TEST_NUMBER")) << number;
    EXPECT_THAT(spoken.err, HasSubstr("from 2 to 100")) << number;
  }
  const Spoken spoken =
      speak({"VERBATIM_TEST_CHOICE=blue", "VERBATIM_TEST_TEXT=123456789"}, "environment");
  EXPECT_EQ(spoken.out, "5 1 no\n");
  EXPECT_THAT(spoken.err, HasSubstr("VERBATIM_TEST_CHOICE='blue' is not one of: red green"));
  EXPECT_THAT(spoken.err, HasSubstr("VERBATIM_TEST_TEXT is longer than 8"));
}

}  // namespace
