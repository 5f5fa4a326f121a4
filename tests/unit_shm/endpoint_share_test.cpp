// SPDX-License-Identifier: BSD-2-Clause
//
// How the endpoints that lead to a process are shared among those who ask for them.
#include "providers/shm/endpoints/endpoint_share.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {
namespace {

/// Who asks one after the other, each for as many as he can get.
std::vector<std::uint32_t> ask(std::uint32_t processes, std::uint32_t numbers) {
  std::vector<std::uint32_t> got(processes);
  std::uint32_t of_all = 0;
  for (std::uint32_t& of_process : got)
    for (; may_have_another_endpoint(of_process, of_all, numbers); ++of_all) ++of_process;
  return got;
}

std::uint32_t sum(const std::vector<std::uint32_t>& got) {
  std::uint32_t all = 0;
  for (const std::uint32_t of_process : got) all += of_process;
  return all;
}

TEST(EndpointShare, NobodyGetsMoreThanHeLeavesToOthers) {
  const auto got = ask(2, kMaxQps);
  EXPECT_EQ(got[0], 12288u);
  EXPECT_EQ(got[1], got[0] / 2);
}

TEST(EndpointShare, AThousandWhoTakeAllTheyGetLeaveOneWhoComesLateWhatHeIsAssuredOf) {
  const auto got = ask(1000, kMaxQps);
  EXPECT_EQ(got.back(), kAssuredEndpoints);
}

TEST(EndpointShare, HalfOfTheNumbersAreNeverTaken) {
  for (const std::uint32_t numbers : {kMaxQps, 4096u, 100u, 1u, 0u})
    EXPECT_LE(sum(ask(5000, numbers)), numbers / 2);
}

TEST(EndpointShare, AHundredWithAHundredEachGetWhatTheyAskFor) {
  std::uint32_t of_all = 0;
  for (std::uint32_t process = 0; process < 100; ++process)
    for (std::uint32_t mine = 0; mine < 100; ++mine, ++of_all)
      ASSERT_TRUE(may_have_another_endpoint(mine, of_all, kMaxQps)) << process << ", " << mine;
}

TEST(EndpointShare, OneProcessHasRoomForTenThousandSenders) {
  EXPECT_GT(ask(1, kMaxQps)[0], 10'000u);
}

}  // namespace
}  // namespace verbatim::shm
