// SPDX-License-Identifier: BSD-2-Clause
//
// Memory that goes while it is registered (runtime/memory/README.md): what
// shm promises of plain regions, of windows on memory on demand, and in words. What every device
// promises of regions on demand is in conformance/on_demand_test.cpp.
#include <gmock/gmock.h>

#include <cinttypes>
#include <cstdio>

#include "tests/shm/peer_tier.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kThere = 1_MiB;  // and as much that is not
constexpr Loss kLosses[] = {Loss::kForbidden, Loss::kTruncated};

ibv_wc_status ask(Pair& pair, const Request& request) {
  expect_posted(pair.a.post_send(pair.qa, request));
  return pair.a.poll_sends(pair.qa, 1)[0].status;
}

class PlainMemory : public BetweenTwo {};
RUN_OVER_SETTINGS(PlainMemory, std::vector(1, Setting{.memory = MemoryKind::kOrdinary}));

TEST_P(PlainMemory, ThatIsGoneIsItsOwnersErrorWhereTheKernelCopies) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(memory(), kThere);
  const RegionInfo to = pair.b.allocate(memory(), kThere);
  ASSERT_EQ(ask(pair, write(1, slice(from, 0, 8), to)), IBV_WC_SUCCESS);
  if (!copies_itself(pair, from))
    GTEST_SKIP() << "the kernel copies nothing between processes here";
  for (const Loss how : kLosses) {
    const RegionInfo ours = pair.a.allocate_losing(2 * kThere, kAllAccess, kThere, how);
    const RegionInfo theirs = pair.b.allocate_losing(2 * kThere, kAllAccess, kThere, how);
    for (const std::uint64_t size : {std::uint64_t{32}, 64_KiB, 1_MiB}) {
      for (const std::uint64_t place : {kThere, kThere - size / 2}) {
        SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(place));
        EXPECT_EQ(ask(pair, write(1, slice(ours, place, size), to)), IBV_WC_LOC_PROT_ERR);
        pair.reconnect();
        EXPECT_EQ(ask(pair, read(2, slice(ours, place, size), to)), IBV_WC_LOC_PROT_ERR);
        pair.reconnect();
        EXPECT_EQ(ask(pair, write(3, slice(from, 0, size), theirs, place)), IBV_WC_REM_ACCESS_ERR);
        pair.reconnect();
        EXPECT_EQ(ask(pair, read(4, slice(from, 0, size), theirs, place)), IBV_WC_REM_ACCESS_ERR);
        pair.reconnect();
      }
    }
  }
}

class LostMemory : public BetweenTwo {
 protected:
  static constexpr int kAccess = kAllAccess | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND;
};
RUN_OVER_SETTINGS(LostMemory, each_way());

TEST_P(LostMemory, AWindowOnItOpensWhatIsThereAndNothingElse) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(memory(), kThere);
  const RegionInfo lost = pair.b.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
  const WindowInfo window = pair.b.allocate_window(IBV_MW_TYPE_1);
  WindowBind bind;
  bind.window = window.id;
  bind.region = lost.id;
  bind.address = lost.address;
  bind.length = 2 * kThere;
  bind.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ASSERT_EQ(pair.b.bind_window(pair.qb, bind), 0);
  ASSERT_EQ(pair.b.poll_sends(pair.qb, 1)[0].status, IBV_WC_SUCCESS);
  RegionInfo shown = lost;
  shown.rkey = pair.b.call<&Endpoint::window_key>(window.id);
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{64}, 64_KiB}) {
    SCOPED_TRACE(size);
    const Slice piece = slice(from, 0, size);
    EXPECT_EQ(ask(pair, write(1, piece, shown, kThere - size)), IBV_WC_SUCCESS);
    EXPECT_EQ(ask(pair, read(2, piece, shown, kThere - size)), IBV_WC_SUCCESS);
    EXPECT_EQ(ask(pair, write(3, piece, shown, kThere)), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
    EXPECT_EQ(ask(pair, read(4, piece, shown, kThere)), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
  }
  EXPECT_EQ(ask(pair, fetch_add(5, slice(from, 0, 8), shown, 0, 1)), IBV_WC_SUCCESS);
  EXPECT_EQ(ask(pair, fetch_add(6, slice(from, 0, 8), shown, kThere, 1)), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(LostMemory, TheExplanationNamesTheFirstByteAndWhatItLacks) {
  Pair pair(GetParam());
  const RegionInfo to = pair.b.allocate(memory(), kThere);
  const RegionInfo lost = pair.a.allocate_losing(2 * kThere, kAccess, kThere, Loss::kForbidden);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(lost, kThere - 100, 200), to)));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  ASSERT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
  char first[64];
  std::snprintf(first, sizeof first, "%#" PRIx64 " may not be read (PROT_NONE)",
                lost.address + kThere);
  EXPECT_THAT(pair.a.explain(pair.qa, wc), AllOf(HasSubstr("no memory is there"), HasSubstr(first),
                                                 HasSubstr("map what is on demand")));
}

}  // namespace
}  // namespace verbatim::harness
