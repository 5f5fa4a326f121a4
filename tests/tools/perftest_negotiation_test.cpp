// SPDX-License-Identifier: BSD-2-Clause
// What perftest from 6.28 on says of its options, byte by byte, and how a mismatch is told.
#include "perf/cli/perftest_negotiation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;

PerftestNegotiation told_by(const PerfOptions& options) {
  return negotiation_of(options, ibv_device_attr{});
}

std::string verdict(const PerftestNegotiation& ours, const PerftestNegotiation& theirs,
                    double version = 6.29) {
  try {
    check_negotiation(ours, theirs, version);
  } catch (const Failure& failure) {
    return failure.line;
  }
  return "";
}

std::string at(const std::string& bytes, std::size_t from, std::size_t size) {
  return bytes.substr(from, size);
}

TEST(PerftestNegotiation, HasEachNumberWherePerftestHasIt) {
  PerfOptions options({PerfVerb::kAtomic, PerfMeasure::kBandwidth});
  options.connection = PerfConnection::kXrc;
  options.iterations = 0x01020304;
  options.queue_pairs = 3;
  options.bidirectional = true;
  ibv_device_attr device = {};
  device.max_qp_rd_atom = 0x0a0b0c0d;
  const std::string bytes = encode(negotiation_of(options, device));
  ASSERT_EQ(bytes.size(), 312u);
  EXPECT_EQ(at(bytes, 0, 28), std::string("\0\0\0\0"
                                          "\0\0\0\4"
                                          "\0\0\0\5"
                                          "\0\0\0\1"
                                          "\0\0\0\1"
                                          "\0\0\0\0"
                                          "\0\0\0\1",
                                          28));
  EXPECT_EQ(at(bytes, 32, 16), std::string("\0\0\0\0\0\0\0\10\0\0\0\0\1\2\3\4", 16));
  EXPECT_EQ(at(bytes, 52, 8), std::string("\0\0\0\6\0\0\0\5", 8));
  int reads;  // in the order of the host
  std::memcpy(&reads, &bytes[80 + offsetof(ibv_device_attr, max_qp_rd_atom)], sizeof reads);
  EXPECT_EQ(reads, 0x0a0b0c0d);
  const auto read = decode_negotiation(std::span<const char, 312>(bytes.data(), 312));
  EXPECT_EQ(encode(read), bytes);
}

TEST(PerftestNegotiation, SaysWhatARunOfTimeIs) {
  PerfOptions options({PerfVerb::kSend, PerfMeasure::kBandwidth});
  options.duration = 7;
  options.gbits = options.immediate = true;
  const PerftestNegotiation told = told_by(options);
  EXPECT_EQ(told.timed, 1u);
  EXPECT_EQ(told.seconds, 7u);
  EXPECT_EQ(told.iterations, 0u);
  EXPECT_EQ(told.report, 0u);
  EXPECT_EQ(told.verb, 1u);
}

TEST(PerftestNegotiation, TellsEachMismatchByTheOption) {
  const PerftestNegotiation ours = told_by(PerfOptions({PerfVerb::kSend, PerfMeasure::kLatency}));
  struct Change {
    std::uint32_t PerftestNegotiation::*member;
    std::uint32_t value;
    std::string says;
  };
  for (const Change& change : std::vector<Change>{
           {&PerftestNegotiation::verb, 4, "another operation: READ there, SEND here"},
           {&PerftestNegotiation::verb, 77, "another operation: number 77 there, SEND here"},
           {&PerftestNegotiation::bandwidth, 1, "another test: bandwidth there, latency here"},
           {&PerftestNegotiation::connection, 5, "(-c): DC there, RC here"},
           {&PerftestNegotiation::method, 1, "of all sizes there, of one size here"},
           {&PerftestNegotiation::timed, 1, "(-n, -D): a time there, a number of messages here"},
           {&PerftestNegotiation::atomic, 1, "FETCH_AND_ADD there"},
           {&PerftestNegotiation::report, 0, "(--report_gbits): Gbit/s there, MiB/s here"},
           {&PerftestNegotiation::queue_pairs, 9, "(-q): 9 there, 1 here"},
           {&PerftestNegotiation::seconds, 8, "(-D): 8 there, 5 here"},
           {&PerftestNegotiation::encryption, 1, "(--aes_xts): on there, off here"},
           {&PerftestNegotiation::rdma_cm, 1, "(-R, -z): on there, off here"},
           {&PerftestNegotiation::write_immediate, 1, "(--write_with_imm): on there"},
           {&PerftestNegotiation::no_reorder, 1, "(--no_enhanced_reorder): on there"},
           {&PerftestNegotiation::signatures, 1, "signatures: on there"},
           {&PerftestNegotiation::validation, 1, "(--data_validation): on there"}}) {
    PerftestNegotiation theirs = ours;
    theirs.*change.member = change.value;
    EXPECT_THAT(verdict(ours, theirs), HasSubstr(change.says));
    EXPECT_THAT(verdict(ours, theirs), HasSubstr("perftest 6.29"));
  }
  PerftestNegotiation theirs = ours;
  theirs.size = 64;
  EXPECT_THAT(verdict(ours, theirs), HasSubstr("another size (-s): 64 there, 2 here"));
  theirs = ours;
  theirs.iterations = 5'000'000'000;
  EXPECT_THAT(verdict(ours, theirs), HasSubstr("(-n): 5000000000 there, 1000 here"));
  EXPECT_EQ(verdict(ours, ours), "");
}

TEST(PerftestNegotiation, ReadsNothingWhereAnEarlierVersionHasNothing) {
  const PerftestNegotiation ours = told_by(PerfOptions({PerfVerb::kRead, PerfMeasure::kLatency}));
  PerftestNegotiation theirs = ours;
  theirs.validation = 0x7f454c46;
  EXPECT_EQ(verdict(ours, theirs, 6.28), "");
}

}  // namespace
}  // namespace verbatim::cli
