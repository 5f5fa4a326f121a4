// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point communication between processes (MPI 5.0 chapter 3): each sentence is a part of
// point_to_point.c, run with several counts of ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/mpi/ranks.hpp"

namespace {

using verbatim::harness::RanksEnd;
using verbatim::harness::RanksOptions;
using verbatim::harness::run_ranks;

constexpr const char* kPointToPoint = VERBATIM_MPI_POINT_TO_POINT;

bool are_there_rings() {
  const char* const map = std::getenv("VERBATIM_SHM_MAP");
  return map == nullptr || std::string_view(map) != "off";
}

struct Sentence {
  const char* name;
  const char* part;
  int fewest = 1;
};

class PointToPoint : public testing::TestWithParam<std::tuple<Sentence, int>> {};

TEST_P(PointToPoint, Holds) {
  const auto& [sentence, ranks] = GetParam();
  if (ranks < sentence.fewest) GTEST_SKIP() << "it takes " << sentence.fewest << " ranks";
  const RanksEnd end = run_ranks(ranks, kPointToPoint, {sentence.part});
  EXPECT_TRUE(end.is_success()) << end.told();
  EXPECT_EQ(end.output, "");
}

constexpr Sentence kSentences[] = {
    {"MessagesOfAnySizeArriveUnharmed", "sizes"},
    {"MessagesOfOneTagArriveInTheOrderOfSending", "ordering", 2},
    {"TheFirstPostedOfMatchingReceivesTakesTheMessage", "wildcards", 2},
    {"UnexpectedMessagesAreReceivedInAnyOrder", "unexpected"},
    {"AMessageThatIsTooLongIsTruncated", "truncation"},
    {"ASynchronousSendCompletesWhenItIsMatched", "synchronous"},
    {"RequestsAreWaitedForTestedFreedAndCancelled", "requests"},
    {"PersistentRequestsStartAgain", "persistent"},
    {"BufferedSendsReturnAtOnce", "buffered"},
    {"AMatchedMessageIsOutOfOthersReach", "probes"},
    {"WrongArgumentsAreNamedByTheirClass", "arguments"},
    {"ATokenGoesRound", "ring"},
    {"AllSendToAllAtOnce", "crowd"},
    {"WhatIsSentIsReplacedByWhatComes", "replace"},
    {"AReceiverThatComputesDoesNotStopWhatItsReceiveWaitsFor", "computing", 2},
    {"LongMessagesArriveInPiecesWhoeverComputes", "streams", 2},
    {"LongMessagesKeepTheirOrderHoweverReceivesArePosted", "invitations"},
    {"AnInvitationThatIsOutOfDateIsNotUsed", "crossing", 2},
    {"DataThatDoesNotLieInARowArrives", "strided"},
};

INSTANTIATE_TEST_SUITE_P(, PointToPoint,
                         testing::Combine(testing::ValuesIn(kSentences),
                                          testing::Values(1, 2, 4, 7)),
                         [](const auto& parameters) {
                           const int ranks = std::get<1>(parameters.param);
                           return std::string(std::get<0>(parameters.param).name) + "With" +
                                  std::to_string(ranks) + (ranks == 1 ? "Rank" : "Ranks");
                         });

TEST(PointToPointLimits, AMillionUnexpectedMessagesAreReceivedInReverseOrder) {
  RanksOptions options;
  options.time_limit_ms = 110'000;
  const RanksEnd end = run_ranks(2, kPointToPoint, {"million"}, options);
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(PointToPointLimits, SixtyFourRanksFinishARing) {
  RanksOptions options;
  options.environment["VERBATIM_WAIT"] = "";  // as users run so many
  const RanksEnd end = run_ranks(64, kPointToPoint, {"ring"}, options);
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(PointToPointWaiting, WhoWaitsLongLeavesAProcessorThatIsShared) {
  for (const char* how : {"sleep", "share"}) {
    RanksOptions options;
    options.environment["VERBATIM_WAIT"] = how;
    const RanksEnd end = run_ranks(2, kPointToPoint, {"patient"}, options);
    EXPECT_TRUE(end.is_success()) << how << ": " << end.told();
  }
}

TEST(PointToPointWaiting, RanksThatSpinOrSleepFinishToo) {
  for (const char* how : {"spin", "sleep", "share"}) {
    RanksOptions options;
    options.environment["VERBATIM_WAIT"] = how;
    for (const char* part : {"ring", "sizes", "requests"}) {
      const RanksEnd end = run_ranks(2, kPointToPoint, {part}, options);
      EXPECT_TRUE(end.is_success()) << how << ": " << end.told();
    }
  }
}

TEST(PointToPointWaiting, WordsThatNobodyKnowsAreNamedAndChangeNothing) {
  for (const char* variable : {"VERBATIM_WAIT", "VERBATIM_MPI_MAPPED"}) {
    if (std::string_view(variable) == "VERBATIM_MPI_MAPPED" && !are_there_rings()) continue;
    RanksOptions options;
    options.environment[variable] = "-1,on;%s";
    const RanksEnd end = run_ranks(2, kPointToPoint, {"streams"}, options);
    EXPECT_TRUE(end.is_success()) << variable << ": " << end.told();
    EXPECT_NE(end.output.find(variable), std::string::npos) << end.told();
  }
}

/// As if each rank were on a host of its own, as far as messages are concerned.
TEST(PointToPointByQueuePairs, MessagesGoWithoutMappedMemoryToo) {
  RanksOptions options;
  options.environment["VERBATIM_MPI_MAPPED"] = "off";
  for (const char* part : {"ring", "sizes", "requests", "ordering", "wildcards", "invitations",
                           "crossing", "strided", "synchronous", "unexpected"}) {
    const RanksEnd end = run_ranks(2, kPointToPoint, {part}, options);
    EXPECT_TRUE(end.is_success()) << part << ": " << end.told();
  }
}

TEST(PointToPointThreads, AllThreadsOfARankMayTalkAtOnce) {
  for (int ranks : {1, 2, 3}) {
    const RanksEnd end = run_ranks(ranks, VERBATIM_MPI_TALKING_THREADS, {});
    EXPECT_TRUE(end.is_success()) << end.told();
  }
}

TEST(PointToPointFailure, RanksThatNeedADeadOneHearOfIt) {
  for (int ranks : {2, 4}) {
    RanksOptions options;
    options.end_all_with_one = false;
    options.environment["VERBATIM_LOG"] = "off";
    const RanksEnd end = run_ranks(ranks, kPointToPoint, {"killed"}, options);
    ASSERT_TRUE(end.is_in_time) << end.told();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& one = end.ranks[static_cast<std::size_t>(rank)];
      if (rank == 1)
        EXPECT_EQ(one.signal, 6) << end.told();
      else
        EXPECT_EQ(one.exit_status, 0) << end.told();
      EXPECT_LT(one.after_ms, 5000) << end.told();
    }
    EXPECT_NE(end.output.find("rank 1 is lost"), std::string::npos) << end.told();
  }
}

TEST(PointToPointFailure, AlsoOneThatNobodyHadTalkedTo) {
  RanksOptions options;
  options.end_all_with_one = false;
  const RanksEnd end = run_ranks(3, kPointToPoint, {"killed_stranger"}, options);
  ASSERT_TRUE(end.is_in_time) << end.told();
  EXPECT_EQ(end.ranks[0].exit_status, 0) << end.told();
  EXPECT_EQ(end.ranks[2].exit_status, 0) << end.told();
}

void expect_loss_of_who_says(const char* lie) {
  for (const bool is_probed : {false, true}) {
    std::vector<std::string> arguments = {lie};
    if (is_probed) arguments.emplace_back("probed");
    RanksOptions options;
    options.environment["VERBATIM_LOG"] = "off";
    const RanksEnd end = run_ranks(3, VERBATIM_MPI_LYING_RANK, arguments, options);
    EXPECT_TRUE(end.is_success()) << lie << is_probed << ": " << end.told();
    EXPECT_NE(end.output.find("rank 1 is lost: it"), std::string::npos) << end.told();
  }
}

TEST(PointToPointFailure, AndThoseThatNeedOneThatLies) {
  for (const char* lie :
       {"three_bytes", "no_kind", "another_kind", "half_an_envelope", "half_an_invitation",
        "it_is_nobody", "it_is_any", "it_is_another", "any_tag", "too_much"})
    expect_loss_of_who_says(lie);
}

TEST(PointToPointFailure, AndOneThatLiesInItsRing) {
  if (!are_there_rings()) GTEST_SKIP() << "without mapped memory there are no rings";
  for (const char* lie : {"ring_three_bytes", "ring_no_kind", "ring_it_is_another", "ring_beyond",
                          "ring_piece", "ring_too_much"})
    expect_loss_of_who_says(lie);
}

TEST(PointToPointFailure, AndOneThatLiesAboutItsPieces) {
  if (!are_there_rings()) GTEST_SKIP() << "without mapped memory there are no windows";
  for (const char* lie : {"window_beyond", "window_behind", "window_across"})
    expect_loss_of_who_says(lie);
}

TEST(PointToPointFailure, AndOneThatEndsAmidTheirPieces) {
  if (!are_there_rings()) GTEST_SKIP() << "without mapped memory there are no windows";
  for (const char* way : {"window_ends_from", "window_ends_to"}) {
    RanksOptions options;
    options.end_all_with_one = false;
    options.environment["VERBATIM_LOG"] = "off";
    const RanksEnd end = run_ranks(2, VERBATIM_MPI_LYING_RANK, {way}, options);
    ASSERT_TRUE(end.is_in_time) << way << ": " << end.told();
    EXPECT_EQ(end.ranks[1].signal, 6) << way << ": " << end.told();
    EXPECT_EQ(end.ranks[0].exit_status, 0) << way << ": " << end.told();
    EXPECT_LT(end.ranks[0].after_ms, 5000) << way << ": " << end.told();
  }
}

TEST(PointToPointFailure, AnswersToWhatNobodyAskedChangeNothing) {
  const RanksEnd end = run_ranks(2, VERBATIM_MPI_LYING_RANK, {"answers"});
  EXPECT_TRUE(end.is_success()) << end.told();
  EXPECT_EQ(end.output, "");
}

TEST(PointToPointFailure, AnErrorEndsTheJobUnlessTheProgramSaysOtherwise) {
  const RanksEnd end = run_ranks(3, kPointToPoint, {"fatal"});
  ASSERT_TRUE(end.is_in_time) << end.told();
  EXPECT_NE(end.aborted_with, -1) << end.told();
  EXPECT_NE(end.output.find("rank 2 of 3: MPI_Send: argument `dest` is 3"), std::string::npos)
      << end.told();
}

TEST(PointToPointFailure, AbortEndsAllWithItsCode) {
  const RanksEnd end = run_ranks(3, kPointToPoint, {"abort_of_one"});
  ASSERT_TRUE(end.is_in_time) << end.told();
  EXPECT_EQ(end.aborted_with, 42) << end.told();
}

}  // namespace
