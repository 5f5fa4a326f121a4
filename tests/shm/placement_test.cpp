// SPDX-License-Identifier: BSD-2-Clause
//
// ATOMIC_WRITE and FLUSH (IBTA annex A19): eight bytes that appear as one behind what was written
// before, and the promise that what was written is visible to everybody.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RemotePlacement : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RemotePlacement, each_way());

Request atomic_write(std::uint64_t wr_id, const Slice& value, const RegionInfo& remote,
                     std::uint64_t offset) {
  return one_sided(IBV_WR_ATOMIC_WRITE, wr_id, value, remote, offset);
}

Request flush(std::uint64_t wr_id, const RegionInfo& remote, std::uint64_t offset,
              std::uint64_t length, std::uint64_t type = IBV_FLUSH_GLOBAL,
              std::uint64_t level = IBV_FLUSH_RANGE) {
  Request request = one_sided(IBV_WR_FLUSH, wr_id, SliceList{}, remote, offset);
  request.compare_add = length;
  request.swap = type | level << 8;
  return request;
}

TEST_P(RemotePlacement, AnAtomicWriteStoresItsEightBytesFromAListOrInline) {
  Pair pair(GetParam());
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  pair.a.store(local, 0, 0x1122334455667788);
  expect_posted(pair.a.post_send(pair.qa, atomic_write(1, slice(local, 0, 8), remote, 16)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_ATOMIC_WRITE, pair.qa);
  EXPECT_EQ(pair.b.load(remote, 16), 0x1122334455667788u);
  pair.a.store(local, 0, 99);
  expect_posted(pair.a.post_send(
      pair.qa, atomic_write(2, slice(local, 0, 8), remote, 24).with(IBV_SEND_INLINE)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_ATOMIC_WRITE, pair.qa);
  EXPECT_EQ(pair.b.load(remote, 24), 99u);
  EXPECT_EQ(pair.b.load(remote, 32), 0u);
}

TEST_P(RemotePlacement, AnAtomicWriteIsSeenBehindAllThatWasWrittenBefore) {
  constexpr std::uint64_t kSize = 1_MiB;
  Pair pair(GetParam());
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kSize + 64);
  const RegionInfo local = pair.a.allocate(GetParam().memory, kSize + 64);
  for (std::uint32_t round = 1; round <= 8; ++round) {
    pair.a.fill(local, 0, kSize, round);
    pair.a.store(local, kSize, round);
    expect_posted(pair.a.post_send(
        pair.qa, {write(1, slice(local, 0, kSize), remote).unsignaled(),
                  atomic_write(2, slice(local, kSize, 8), remote, kSize).with(IBV_SEND_FENCE)}));
    pair.b.call<&Endpoint::await_word>(remote.id, kSize, std::uint64_t{round});
    EXPECT_EQ(pair.b.mismatch(remote, 0, kSize, round), -1);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_ATOMIC_WRITE, pair.qa);
  }
}

TEST_P(RemotePlacement, AnAtomicWriteThatIsNotEightAlignedPermittedBytesIsRefused) {
  Pair pair(GetParam());
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  const RegionInfo readable = pair.b.register_part(remote, 0, 4096, IBV_ACCESS_REMOTE_READ);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  for (const std::uint64_t bytes : {0, 4, 7, 9, 16})
    EXPECT_EQ(pair.a.post_send(pair.qa, atomic_write(1, slice(local, 0, bytes), remote, 0)).error,
              EINVAL);
  const struct {
    Request request;
    ibv_wc_status status;
  } cases[] = {{atomic_write(1, slice(local, 0, 8), remote, 4), IBV_WC_REM_INV_REQ_ERR},
               {atomic_write(1, slice(local, 0, 8), readable, 0), IBV_WC_REM_ACCESS_ERR},
               {atomic_write(1, slice(local, 0, 8), remote, 4096), IBV_WC_REM_ACCESS_ERR}};
  for (const auto& c : cases) {
    expect_posted(pair.a.post_send(pair.qa, c.request));
    expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, c.status, pair.qa);
    pair.reconnect();
  }
  expect_untouched(pair.b, remote, 0, 4096, 0);
}

TEST_P(RemotePlacement, AFlushOfARangeOrAWholeRegionSucceedsWhereTheRegionPermitsIt) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.b.allocate(GetParam().memory, 8192);
  const RegionInfo remote =
      pair.b.register_part(memory, 0, 4096, kAllAccess | IBV_ACCESS_FLUSH_GLOBAL);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  pair.a.fill(local, 0, 4096, 7);
  expect_posted(pair.a.post_send(
      pair.qa, {write(1, slice(local, 0, 4096), remote).unsignaled(), flush(2, remote, 0, 4096)}));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_FLUSH, pair.qa);
  EXPECT_EQ(pair.b.mismatch(memory, 0, 4096, 7), -1);
  // Of the whole region the range says nothing.
  expect_posted(
      pair.a.post_send(pair.qa, flush(3, remote, 9999, 9999, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_FLUSH, pair.qa);

  const RegionInfo plain = pair.b.register_part(memory, 0, 4096);
  for (const Request& wrong : {flush(4, remote, 1, 4096), flush(4, remote, ~std::uint64_t{0}, 1),
                               flush(4, plain, 0, 8), flush(4, remote, 0, 8, IBV_FLUSH_PERSISTENT),
                               flush(4, remote, 0, 8, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL)}) {
    expect_posted(pair.a.post_send(pair.qa, wrong));
    expect_error(pair.a.poll_sends(pair.qa, 1)[0], 4, IBV_WC_REM_ACCESS_ERR, pair.qa);
    pair.reconnect();
  }
  for (const Request& senseless : {flush(5, remote, 0, 8, 0), flush(5, remote, 0, 8, 4),
                                   flush(5, remote, 0, 8, IBV_FLUSH_GLOBAL, 2)})
    EXPECT_EQ(pair.a.post_send(pair.qa, senseless).error, EINVAL);
}

}  // namespace
}  // namespace verbatim::harness
