// SPDX-License-Identifier: BSD-2-Clause
//
// The largest message, 1 GiB. Needs 2 GiB of memory, and says so where there is less.
#include <sys/sysinfo.h>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcLarge : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcLarge, between_processes());

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST_P(RcLarge, OneGiBIsSentWrittenAndRead) {
  struct sysinfo machine {};
  ASSERT_EQ(sysinfo(&machine), 0);
  if (machine.freeram * machine.mem_unit < 3 * kGiB)
    GTEST_SKIP() << "less than 3 GiB of free memory";
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kGiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kGiB);
  pair.a.fill(local, 0, kGiB, 1);
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, 0, kGiB))));
  expect_posted(pair.a.post_send(pair.qa, send(2, slice(local, 0, kGiB))));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, kGiB, pair.qb);
  EXPECT_EQ(pair.b.mismatch(remote, 0, kGiB, 1), -1);

  pair.a.fill(local, 0, kGiB, 2);
  expect_posted(pair.a.post_send(pair.qa, write(3, slice(local, 0, kGiB), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(remote, 0, kGiB, 2), -1);

  pair.a.set(local, 0, kGiB, 0);
  expect_posted(pair.a.post_send(pair.qa, read(4, slice(local, 0, kGiB), remote)));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  expect_wc(wc, 4, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(wc.byte_len, kGiB);
  EXPECT_EQ(pair.a.mismatch(local, 0, kGiB, 2), -1);
}

}  // namespace
}  // namespace verbatim::harness
