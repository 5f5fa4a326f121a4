// SPDX-License-Identifier: BSD-2-Clause
// The launcher's side of PMI-1, line by line: what MPICH's client says and is answered, and clients
// that say something else.
#include "perf/cli/run_pmi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;
using Kind = PmiEvent::Kind;

class Pmi : public ::testing::Test {
 protected:
  /// The answer to one line, or how the rank was ended.
  std::string say(int rank, const std::string& line) {
    const PmiEvent event = server_.take(rank, line + "\n");
    if (event.kind == Kind::kNonsense) return "nonsense: " + event.text;
    if (event.kind == Kind::kAbort)
      return "abort " + std::to_string(event.code) + ": " + event.text;
    return hear(rank);
  }
  std::string hear(int rank) { return std::exchange(server_.answers(rank), {}); }
  void begin() {
    for (const int rank : {0, 1})
      EXPECT_EQ(say(rank, "cmd=init pmi_version=1 pmi_subversion=1"),
                "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
  }
  PmiServer server_{2, "job"};
};

TEST_F(Pmi, TellsWhatAClientAsksFirst) {
  begin();
  EXPECT_EQ(say(0, "cmd=get_maxes"),
            "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(say(0, "cmd=get_appnum"), "cmd=appnum rc=0 appnum=0\n");
  EXPECT_EQ(say(0, "cmd=get_my_kvsname"), "cmd=my_kvsname rc=0 kvsname=job\n");
  EXPECT_EQ(say(1, "cmd=get_universe_size"), "cmd=universe_size rc=0 size=2\n");
}

TEST_F(Pmi, WhatOnePutsTheOthersGet) {
  begin();
  EXPECT_EQ(say(0, "cmd=put kvsname=job key=a value=b=c"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(say(1, "cmd=get kvsname=job key=a"), "cmd=get_result rc=0 msg=success value=b=c\n");
  EXPECT_THAT(say(1, "cmd=get kvsname=job key=z"), HasSubstr("rc=-1"));
  EXPECT_THAT(say(1, "cmd=get kvsname=other key=a"), HasSubstr("rc=-1"));
  EXPECT_THAT(say(1, "cmd=put kvsname=job key=a value=d"), HasSubstr("rc=-1"));
}

TEST_F(Pmi, TheBarrierOpensWhenAllAreIn) {
  begin();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(say(1, "cmd=barrier_in"), "");
    EXPECT_EQ(say(0, "cmd=barrier_in"), "cmd=barrier_out rc=0\n");
    EXPECT_EQ(hear(1), "cmd=barrier_out rc=0\n");
  }
}

TEST_F(Pmi, LinesMayComeInPieces) {
  EXPECT_EQ(server_.take(0, "cmd=init pmi_ver").kind, Kind::kNone);
  EXPECT_EQ(hear(0), "");
  EXPECT_EQ(server_.take(0, "sion=1 pmi_subversion=1\ncmd=get_appnum\ncmd=").kind, Kind::kNone);
  EXPECT_EQ(hear(0),
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\ncmd=appnum rc=0 appnum=0\n");
}

TEST_F(Pmi, AbortHasACodeAndAText) {
  begin();
  EXPECT_EQ(say(0, "cmd=abort exitcode=7 message=no more soup\x1b[2J"),
            "abort 7: no more soup?[2J");
  EXPECT_EQ(say(1, "cmd=abort"), "abort 1: ");
}

TEST_F(Pmi, KnowsWhoIsBetweenItsBeginAndItsEnd) {
  EXPECT_FALSE(server_.is_within(0));
  begin();
  EXPECT_TRUE(server_.is_within(0));
  EXPECT_EQ(say(0, "cmd=finalize"), "cmd=finalize_ack rc=0\n");
  EXPECT_FALSE(server_.is_within(0));
  EXPECT_TRUE(server_.has_ended(0));
}

TEST_F(Pmi, RefusesWhatIsNotOfTheProtocol) {
  EXPECT_THAT(say(0, "cmd=get_maxes"), HasSubstr("without cmd=init"));
  begin();
  EXPECT_THAT(say(0, "GET / HTTP/1.1"), HasSubstr("no such request ('GET / HTTP/1.1')"));
  EXPECT_THAT(say(0, "cmd=init pmi_version=1 pmi_subversion=1"), HasSubstr("twice"));
  EXPECT_THAT(say(0, "cmd=put kvsname=job key= value=x"), HasSubstr("nonsense"));
  EXPECT_THAT(say(0, "cmd=put kvsname=job key=" + std::string(65, 'k') + " value=x"),
              HasSubstr("nonsense"));
  EXPECT_THAT(say(0, "cmd=put kvsname=job key=k value=" + std::string(1025, 'v')),
              HasSubstr("nonsense"));
  EXPECT_THAT(say(0, std::string(5000, 'x')), HasSubstr("too long"));
  EXPECT_EQ(server_.take(1, std::string(5000, '\0')).kind, Kind::kNonsense);
}

TEST_F(Pmi, NobodyWaitsForARankThatHasEnded) {
  begin();
  say(0, "cmd=finalize");
  EXPECT_THAT(say(1, "cmd=barrier_in"), HasSubstr("have ended"));
}

TEST_F(Pmi, NorForOneThatNeverBegan) {
  const std::string hello = "cmd=init pmi_version=1 pmi_subversion=1";
  say(0, hello);
  PmiServer late = server_;
  EXPECT_TRUE(late.leave(1));
  EXPECT_EQ(late.take(0, "cmd=barrier_in\n").kind, Kind::kNonsense);
  say(0, "cmd=barrier_in");
  EXPECT_FALSE(server_.leave(1));
}

TEST_F(Pmi, ARankThatWaitsSaysNothing) {
  begin();
  say(0, "cmd=barrier_in");
  EXPECT_THAT(say(0, "cmd=barrier_in"), HasSubstr("while it waits"));
}

TEST_F(Pmi, WhoNeverReadsItsAnswersIsEnded) {
  begin();
  std::string flood;
  for (int i = 0; i < 4000; ++i) flood += "cmd=get_maxes\n";
  EXPECT_EQ(server_.take(0, flood).kind, Kind::kNonsense);
}

TEST_F(Pmi, MoreThanItsRoomIsNotStored) {
  begin();
  std::string last;
  for (int i = 0; i < 70000 && last.find("nonsense") == std::string::npos; ++i)
    last = say(
        0, "cmd=put kvsname=job key=k" + std::to_string(i) + " value=" + std::string(1000, 'v'));
  EXPECT_THAT(last, HasSubstr("than there is room for"));
}

TEST_F(Pmi, SpawnIsRefusedAndNotTheEnd) {
  begin();
  EXPECT_EQ(say(0, "mcmd=spawn"), "");
  EXPECT_EQ(say(0, "execname=x"), "");
  EXPECT_THAT(say(0, "endcmd"), HasSubstr("cmd=spawn_result rc=-1"));
  EXPECT_THAT(say(0, "cmd=get_appnum"), HasSubstr("rc=0"));
}

}  // namespace
}  // namespace verbatim::cli
