// SPDX-License-Identifier: BSD-2-Clause
//
// Keys, bounds and rights (IBTA 10.6.3, 9.7.4.1.5): a request that oversteps fails at the requester
// with the right status and leaves every byte as it was.
#include "tests/shm/rc_expect.hpp"

namespace verbatim::harness {
namespace {

class RcAccess : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcAccess, settings_with_two_ends());

class RcAccessInOneProcess : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcAccessInOneProcess, settings_in_one_process());

constexpr std::uint64_t kSize = 64_KiB;
constexpr int kNoRemote = IBV_ACCESS_LOCAL_WRITE;

struct Scene {
  Pair& pair;
  RegionInfo local;
  RegionInfo remote;

  explicit Scene(Pair& p)
      : pair(p),
        local(p.a.allocate(p.setting.memory, 2 * kSize)),
        remote(p.b.allocate(p.setting.memory, kSize)) {
    pair.a.set(local, 0, 2 * kSize, 0x77);
  }

  /// On a queue pair pair of its own: the request fails so, what follows is flushed, both queue
  /// pairs are left in error or not as the specification says, nothing is written at either end.
  void expect_refused(const char* what, const Request& request, ibv_wc_status status) {
    SCOPED_TRACE(what);
    const auto [qa, qb] = pair.add_qps({}, {});
    expect_posted(pair.a.post_send(qa, {request, write(99, slice(local, 0, 8), remote)}));
    const auto done = pair.a.poll_sends(qa, 2);
    expect_error(done[0], request.wr_id, status, qa);
    expect_error(done[1], 99, IBV_WC_WR_FLUSH_ERR, qa);
    EXPECT_EQ(pair.a.state(qa), IBV_QPS_ERR);
    expect_untouched(pair.b, remote, 0, kSize, 0);
    expect_untouched(pair.a, local, 0, 2 * kSize, 0x77);
  }
};

TEST_P(RcAccess, AWrongRemoteKeyIsARemoteAccessError) {
  Pair pair(GetParam());
  Scene scene(pair);
  for (const std::uint32_t flipped : {1u, 0x100u, 0x80000000u, 0x00A5A500u}) {
    RegionInfo wrong = scene.remote;
    wrong.rkey ^= flipped;
    const Slice local = slice(scene.local, 0, 8);
    scene.expect_refused("write", write(1, local, wrong), IBV_WC_REM_ACCESS_ERR);
    scene.expect_refused("inline write", write(1, local, wrong).with(IBV_SEND_INLINE),
                         IBV_WC_REM_ACCESS_ERR);
    scene.expect_refused("read", read(2, local, wrong), IBV_WC_REM_ACCESS_ERR);
    scene.expect_refused("fetch_add", fetch_add(3, local, wrong, 0, 1), IBV_WC_REM_ACCESS_ERR);
    scene.expect_refused("compare_swap", compare_swap(4, local, wrong, 0, 0, 1),
                         IBV_WC_REM_ACCESS_ERR);
  }
}

TEST_P(RcAccess, ABytePastTheRegionIsARemoteAccessError) {
  Pair pair(GetParam());
  Scene scene(pair);
  const RegionInfo& remote = scene.remote;
  const auto refused = [&](const char* what, std::uint64_t offset, std::uint64_t length) {
    scene.expect_refused(what, write(1, slice(scene.local, 0, length), remote, offset),
                         IBV_WC_REM_ACCESS_ERR);
    scene.expect_refused(what, read(1, slice(scene.local, 0, length), remote, offset),
                         IBV_WC_REM_ACCESS_ERR);
  };
  refused("one past the end", kSize, 1);
  refused("last byte too many", kSize - 7, 8);
  refused("large, last byte too many", 1, kSize);
  refused("one before the start", ~std::uint64_t{0}, 8);
  refused("wraps around the address space", ~std::uint64_t{0} - remote.address - 3, 8);
  scene.expect_refused("atomic past the end",
                       fetch_add(1, slice(scene.local, 0, 8), remote, kSize, 1),
                       IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RcAccess, APartsKeyDoesNotReachTheRestOfTheAllocation) {
  Pair pair(GetParam());
  Scene scene(pair);
  const RegionInfo part = pair.b.register_part(scene.remote, 8192, 4096);
  scene.expect_refused("below", write(1, slice(scene.local, 0, 8), part, -8ull),
                       IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("above", write(1, slice(scene.local, 0, 8), part, 4089),
                       IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RcAccess, ARegionWithoutTheRightIsARemoteAccessError) {
  Pair pair(GetParam());
  Scene scene(pair);
  const Slice local = slice(scene.local, 0, 8);
  const auto region = [&](int access) {
    return pair.b.register_part(scene.remote, 0, kSize, access);
  };
  const RegionInfo none = region(kNoRemote);
  const RegionInfo write_only = region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  const RegionInfo read_only = region(IBV_ACCESS_REMOTE_READ);
  scene.expect_refused("write, none", write(1, local, none), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("read, none", read(1, local, none), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("add, none", fetch_add(1, local, none, 0, 1), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("write, read-only", write(1, local, read_only), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("read, write-only", read(1, local, write_only), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("add, write-only", fetch_add(1, local, write_only, 0, 1),
                       IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RcAccess, ADeregisteredRegionIsARemoteAccessError) {
  Pair pair(GetParam());
  Scene scene(pair);
  const RegionInfo doomed = pair.b.register_part(scene.remote, 0, kSize);
  // Used before, so that whatever a requester remembers of it is there to be forgotten.
  const auto [qa, qb] = pair.add_qps({}, {});
  expect_posted(pair.a.post_send(qa, read(1, slice(scene.local, 0, 8), doomed)));
  expect_wc(pair.a.poll_sends(qa, 1)[0], 1, IBV_WC_RDMA_READ, qa);
  pair.a.set(scene.local, 0, 8, 0x77);
  ASSERT_EQ(pair.b.deregister(doomed), 0);
  scene.expect_refused("write", write(1, slice(scene.local, 0, 8), doomed), IBV_WC_REM_ACCESS_ERR);
  scene.expect_refused("read", read(1, slice(scene.local, 0, kSize), doomed),
                       IBV_WC_REM_ACCESS_ERR);
  // The next registration, which may take the same place in the table, has another key.
  const RegionInfo next = pair.b.register_part(scene.remote, 0, kSize);
  EXPECT_NE(next.rkey, doomed.rkey);
  scene.expect_refused("old key", write(1, slice(scene.local, 0, 8), doomed),
                       IBV_WC_REM_ACCESS_ERR);
}

TEST_P(RcAccess, AQueuePairWithoutTheRightRefuses) {
  PairWish wish;
  wish.link_b.access = 0;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  for (const Request& request :
       {write(1, slice(local, 0, 8), remote), read(1, slice(local, 0, 8), remote),
        fetch_add(1, slice(local, 0, 8), remote, 0, 1)}) {
    const auto [qa, qb] = pair.add_qps({}, {});
    expect_posted(pair.a.post_send(qa, request));
    const ibv_wc wc = pair.a.poll_sends(qa, 1)[0];
    // The specification has it an invalid request; some adapters say access error.
    EXPECT_TRUE(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_ACCESS_ERR)
        << ibv_wc_status_str(wc.status);
    expect_untouched(pair.b, remote, 0, 64, 0);
  }
}

TEST_P(RcAccessInOneProcess, AKeyOfAnotherProtectionDomainIsRefused) {
  Pair pair(GetParam());
  Scene scene(pair);
  ibv_context* context = pair.b.here().context();
  ibv_pd* other = ibv_alloc_pd(context);
  ASSERT_NE(other, nullptr);
  ibv_mr* mr = ibv_reg_mr(other, pair.b.here().bytes(scene.remote.id), kSize, kAllAccess);
  ASSERT_NE(mr, nullptr);
  RegionInfo foreign = scene.remote;
  foreign.rkey = mr->rkey;
  scene.expect_refused("write", write(1, slice(scene.local, 0, 8), foreign), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_P(RcAccess, AWrongLocalKeyIsALocalProtectionError) {
  Pair pair(GetParam());
  Scene scene(pair);
  Slice wrong = slice(scene.local, 0, 8);
  wrong.lkey = scene.local.lkey ^ 0x80000000u;
  const Slice past_end = slice(scene.local, 2 * kSize - 7, 8);
  scene.expect_refused("send", send(1, wrong), IBV_WC_LOC_PROT_ERR);
  scene.expect_refused("write", write(1, wrong, scene.remote), IBV_WC_LOC_PROT_ERR);
  scene.expect_refused("second sge", write(1, {slice(scene.local, 0, 8), wrong}, scene.remote),
                       IBV_WC_LOC_PROT_ERR);
  scene.expect_refused("write past its end", write(1, past_end, scene.remote), IBV_WC_LOC_PROT_ERR);
  scene.expect_refused("read", read(1, wrong, scene.remote), IBV_WC_LOC_PROT_ERR);
  scene.expect_refused("read past its end", read(1, past_end, scene.remote), IBV_WC_LOC_PROT_ERR);
  const RegionInfo read_only = pair.a.register_part(scene.local, 0, kSize, IBV_ACCESS_REMOTE_READ);
  scene.expect_refused("read into memory without LOCAL_WRITE",
                       read(1, slice(read_only, 0, 8), scene.remote), IBV_WC_LOC_PROT_ERR);
}

TEST_P(RcAccess, AWrongKeyInAReceiveIsALocalErrorThereAndARemoteOperationErrorHere) {
  Pair pair(GetParam());
  Scene scene(pair);
  for (const std::uint64_t size : {8, 3000, 50'000}) {
    SCOPED_TRACE(size);
    const auto [qa, qb] = pair.add_qps({}, {});
    Slice wrong = slice(scene.remote, 0, kSize);
    wrong.lkey = scene.remote.lkey ^ 0x80000000u;
    expect_posted(pair.b.post_receive(qb, std::vector<Receive>{{1, wrong}, receive(2)}));
    expect_posted(pair.a.post_send(qa, send(7, slice(scene.local, 0, size))));
    expect_error(pair.a.poll_sends(qa, 1)[0], 7, IBV_WC_REM_OP_ERR, qa);
    const auto got = pair.b.poll_receives(qb, 2);
    expect_error(got[0], 1, IBV_WC_LOC_PROT_ERR, qb);
    expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, qb);
    EXPECT_EQ(pair.b.state(qb), IBV_QPS_ERR);
    expect_untouched(pair.b, scene.remote, 0, kSize, 0);
  }
}

}  // namespace
}  // namespace verbatim::harness
