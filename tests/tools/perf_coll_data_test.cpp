// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf coll` gives and checks, by the data of all ranks in one process, where the test
// plays the collective: right results pass, and each wrong byte is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_coll_data.hpp"
#include "perf/cli/perf_coll_overlap.hpp"

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

class CollDataOf {
 public:
  CollDataOf(const char* name, const char* type, std::uint64_t bytes) : bytes_(bytes) {
    options_.call = coll_call_named(name).call;
    options_.type = coll_type_named(type);
    options_.op = coll_op_named("sum");
    options_.validates = true;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(std::make_unique<CollData>(options_, rank, kRanks, bytes));
  }
  void prepare(std::uint64_t round) {
    arguments_.clear();
    for (const auto& rank : ranks_) arguments_.push_back(rank->prepare(round));
  }
  const unsigned char* given(std::size_t rank) const {
    return static_cast<const unsigned char*>(arguments_[rank].given);
  }
  unsigned char* taken(std::size_t rank) const {
    return static_cast<unsigned char*>(arguments_[rank].taken);
  }
  std::string wrong(std::size_t rank) const { return ranks_[rank]->wrong(); }
  void expect_all_right() const {
    for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(wrong(rank), "");
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  CollOptions options_;
  std::uint64_t bytes_;
  std::vector<std::unique_ptr<CollData>> ranks_;
  std::vector<CollArguments> arguments_;
};

TEST(CollData, OfAnAlltoallIsCheckedByteByByte) {
  CollDataOf data("alltoall", "char", 100);
  for (const std::uint64_t round : {0u, 1u, 9u}) {
    data.prepare(round);
    for (std::size_t to = 0; to < kRanks; ++to)
      for (std::size_t from = 0; from < kRanks; ++from)
        std::memcpy(data.taken(to) + 100 * from, data.given(from) + 100 * to, 100);
    data.expect_all_right();
    data.taken(1)[299] ^= 1;
    EXPECT_THAT(data.wrong(1), HasSubstr("byte 99 of what rank 2 gave"));
    EXPECT_EQ(data.wrong(0), "");
  }
}

TEST(CollData, OfOneRankIsNotTakenForAnothers) {
  CollDataOf data("allgather", "char", 8);
  data.prepare(4);
  for (std::size_t to = 0; to < kRanks; ++to)
    for (std::size_t from = 0; from < kRanks; ++from)
      std::memcpy(data.taken(to) + 8 * from, data.given(from), 8);
  data.expect_all_right();
  std::memcpy(data.taken(0), data.given(1), 8);
  EXPECT_THAT(data.wrong(0), HasSubstr("byte 0 of what rank 0 gave"));
}

TEST(CollData, OfTheRoundBeforeIsFoundToBeOld) {
  CollDataOf data("bcast", "char", 64);
  data.prepare(0);
  std::vector<unsigned char> old(data.taken(0), data.taken(0) + 64);
  data.prepare(1);
  std::memcpy(data.taken(1), data.taken(0), 64);
  std::memcpy(data.taken(2), old.data(), 64);
  EXPECT_EQ(data.wrong(1), "");
  EXPECT_THAT(data.wrong(2), HasSubstr("bcast of 64 bytes: byte 0 of what rank 0 gave"));
}

template <class T>
void expect_sums(const char* type) {
  CollDataOf data("allreduce", type, 20 * sizeof(T));
  data.prepare(3);
  for (std::size_t to = 0; to < kRanks; ++to) {
    for (std::size_t i = 0; i < 20; ++i) {
      T sum = 0;
      for (std::size_t from = 0; from < kRanks; ++from) {
        T one;
        std::memcpy(&one, data.given(from) + i * sizeof(T), sizeof(T));
        sum = static_cast<T>(sum + one);
      }
      std::memcpy(data.taken(to) + i * sizeof(T), &sum, sizeof(T));
    }
  }
  data.expect_all_right();
  data.taken(2)[19 * sizeof(T)] ^= 1;
  EXPECT_THAT(data.wrong(2), HasSubstr("element 19 is not the MPI_SUM of 3 ranks")) << type;
}

TEST(CollData, OfReductionsIsWhatEachRankGaveCombined) {
  expect_sums<double>("double");
  expect_sums<float>("mpi_float");
  expect_sums<std::int32_t>("MPI_INT");
  expect_sums<std::int8_t>("int8_t");
}

TEST(CollData, OfAScanEndsWithTheRankItself) {
  CollDataOf data("scan", "double", 8);
  data.prepare(1);
  double sum = 0;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    double one;
    std::memcpy(&one, data.given(rank), 8);
    sum += one;
    std::memcpy(data.taken(rank), &sum, 8);
  }
  data.expect_all_right();
  std::memcpy(data.taken(0), data.taken(2), 8);
  EXPECT_THAT(data.wrong(0), HasSubstr("is not the MPI_SUM of 1 ranks"));
}

/// The places that are given in eight rounds, and whether what stood there is written anew.
std::pair<std::set<const void*>, bool> given_in_turn(bool keeps_buffer) {
  CollOptions options;
  options.call = coll_call_named("allgather").call;
  options.type = coll_type_named("char");
  options.op = coll_op_named("sum");
  options.keeps_buffer = keeps_buffer;
  CollData data(options, 0, kRanks, 64);
  std::set<const void*> places;
  bool is_written = true;
  for (std::uint64_t round = 0; round < 8; ++round) {
    constexpr unsigned char kMark[] = {0xde, 0xad, 0xbe, 0xef};
    auto* const given = static_cast<unsigned char*>(const_cast<void*>(data.prepare(round).given));
    if (round > 0) is_written = is_written && std::memcmp(given, kMark, sizeof kMark) != 0;
    std::memcpy(given, kMark, sizeof kMark);
    places.insert(given);
  }
  return {places, is_written};
}

TEST(CollData, IsWrittenAnewIntoFourBuffersInTurnOrOnceIntoOne) {
  const auto [four, anew] = given_in_turn(false);
  EXPECT_EQ(four.size(), 4u);
  EXPECT_TRUE(anew);
  const auto [one, again] = given_in_turn(true);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_FALSE(again);
}

TEST(CollOverlap, IsWhatIsSavedAsAPartOfTheLesser) {
  struct Case {
    double pure, compute, overall, overlap;
  };
  for (const Case& one : {Case{10, 10, 20, 0},    // one after the other
                          Case{10, 10, 10, 1},    // all of it hidden
                          Case{10, 10, 15, 0.5},  //
                          Case{10, 40, 45, 0.5},  // of the lesser, whichever it is
                          Case{40, 10, 45, 0.5},  //
                          Case{10, 40, 40, 1},    //
                          Case{10, 10, 30, 0},    // no less than nothing, no more than all
                          Case{10, 10, 5, 1},     //
                          Case{0, 10, 10, 0},     // nothing to hide
                          Case{10, 0, 10, 0}})
    EXPECT_DOUBLE_EQ(overlap_of(one.pure, one.compute, one.overall), one.overlap)
        << one.pure << " " << one.compute << " " << one.overall;
}

TEST(CollData, BeyondTheLimitIsRefused) {
  CollOptions options;
  options.call = coll_call_named("ialltoall").call;
  options.type = coll_type_named("char");
  options.op = coll_op_named("sum");
  EXPECT_NO_THROW(check_coll_memory(options, 16, 1 << 20));
  try {
    check_coll_memory(options, 1024, 1 << 20);
    ADD_FAILURE() << "8 GiB are more than 1";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.line,
                HasSubstr("takes 8589934592 bytes of each, and the limit is 1073741824"));
  }
}

}  // namespace
}  // namespace verbatim::cli
