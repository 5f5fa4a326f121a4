// SPDX-License-Identifier: BSD-2-Clause
//
// A request whose own memory is not what it says (IBTA 10.6.3.4): LOC_PROT_ERR, nothing leaves, the
// responder does not notice.
#include <cerrno>

#include "tests/support/rc_fault.hpp"

namespace verbatim::harness {
namespace {

class RcLocalFault : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcLocalFault, on_every_device(each_way()));

constexpr std::uint64_t kSize = FaultScene::kSize;

void refused(FaultScene& scene, const char* what, const Request& request) {
  scene.expect(what, request, IBV_WC_LOC_PROT_ERR, kUntouched);
}

/// Everything that reads from `piece` is refused ...
void reading_refused(FaultScene& scene, const char* what, const Slice& piece) {
  SCOPED_TRACE("reads its memory");
  refused(scene, what, send(0, piece));
  refused(scene, what, send(0, piece).with_imm(1));
  refused(scene, what, write(0, piece, scene.remote));
  refused(scene, what, write(0, piece, scene.remote).with_imm(1));
}

/// ... and everything that writes to it.
void writing_refused(FaultScene& scene, const char* what, const Slice& piece) {
  SCOPED_TRACE("writes its memory");
  refused(scene, what, read(0, piece, scene.remote));
  if (piece.length != 8) return;
  refused(scene, what, fetch_add(0, piece, scene.remote, 0, 1));
  refused(scene, what, compare_swap(0, piece, scene.remote, 0, 0, 1));
}

TEST_P(RcLocalFault, AKeyThatMeansNothingIsAProtectionErrorAndTheResponderIsUntouched) {
  FaultScene scene(GetParam());
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{100}, 1_MiB}) {
    Slice unknown = slice(scene.local, 0, size);
    unknown.lkey = scene.local.lkey ^ 0x80000000u;
    reading_refused(scene, "no such key", unknown);
    writing_refused(scene, "no such key", unknown);
    unknown.lkey = scene.local.lkey ^ 1;
    reading_refused(scene, "another generation", unknown);
    writing_refused(scene, "another generation", unknown);
  }
  scene.expect_memory_untouched({0, 8});
}

TEST_P(RcLocalFault, AKeyThatWasDeregisteredIsAProtectionError) {
  FaultScene scene(GetParam());
  const RegionInfo once = scene.pair.a.register_part(scene.local, 0, kSize);
  expect_posted(scene.pair.a.post_send(scene.pair.qa, read(1, slice(once, 0, 0), scene.remote)));
  expect_wc(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 1, IBV_WC_RDMA_READ, scene.pair.qa);
  ASSERT_EQ(scene.pair.a.deregister(once), 0);
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{5000}}) {
    Slice stale = slice(scene.local, 0, size);
    stale.lkey = once.lkey;
    reading_refused(scene, "deregistered", stale);
    writing_refused(scene, "deregistered", stale);
  }
  scene.expect_memory_untouched({0, 8});
}

TEST_P(RcLocalFault, AByteOutsideTheRegionIsAProtectionError) {
  FaultScene scene(GetParam());
  const RegionInfo part = scene.pair.a.register_part(scene.local, 4096, 8192);
  const auto refused_at = [&](const char* what, std::uint64_t offset, std::uint64_t size) {
    reading_refused(scene, what, slice(part, offset, size));
    writing_refused(scene, what, slice(part, offset, size));
  };
  refused_at("one past its end", 8192 - 7, 8);
  refused_at("one before its start", ~std::uint64_t{0}, 8);
  refused_at("one byte too long", 0, 8193);
  refused_at("far outside", 1_MiB, 8);
  scene.expect_memory_untouched({4096 + 8192, 8193});
}

TEST_P(RcLocalFault, AKeyOfAnotherProtectionDomainIsAProtectionError) {
  FaultScene scene(GetParam());
  const RegionInfo foreign = scene.pair.a.register_foreign(scene.local);
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{100'000}}) {
    reading_refused(scene, "other PD", slice(foreign, 0, size));
    writing_refused(scene, "other PD", slice(foreign, 0, size));
  }
  scene.expect_memory_untouched({0, 8});
}

TEST_P(RcLocalFault, MemoryWithoutLocalWriteTakesNoReadAndNoAtomicButCanBeSent) {
  FaultScene scene(GetParam());
  const RegionInfo constant =
      scene.pair.a.register_part(scene.local, 0, kSize, IBV_ACCESS_REMOTE_READ);
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{5000}, 1_MiB}) {
    writing_refused(scene, "no LOCAL_WRITE", slice(constant, 0, size));
  }
  scene.expect_memory_untouched({0, 8});
  Pair& pair = scene.pair;
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(scene.remote, 0, kSize))));
  expect_posted(pair.a.post_send(pair.qa, {write(2, slice(constant, 0, 5000), scene.remote),
                                           send(3, slice(constant, 0, 5000))}));
  const auto sent = pair.a.poll_sends(pair.qa, 2);
  expect_wc(sent[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[1], 3, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 5000, pair.qb);
}

TEST_P(RcLocalFault, OneBadPieceAmongGoodOnesIsAProtectionError) {
  FaultScene scene(GetParam());
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{3000}, std::uint64_t{200'000}}) {
    const Slice good = slice(scene.local, 0, size);
    Slice bad = slice(scene.local, size, size);
    bad.lkey = scene.local.lkey ^ 0x80000000u;
    for (const SliceList& list :
         {SliceList{bad, good}, SliceList{good, bad, good}, SliceList{good, good, bad}}) {
      refused(scene, "send", send(0, list));
      refused(scene, "write", write(0, list, scene.remote));
      refused(scene, "read", read(0, list, scene.remote));
    }
  }
  scene.expect_memory_untouched({200'000, 600'000});
}

TEST_P(RcLocalFault, AnAtomicNeedsEightBytesForItsAnswer) {
  FaultScene scene(GetParam());
  const Slice four = slice(scene.local, 0, 4);
  const auto [qa, qb] = scene.pair.add_qps({}, {});
  if (const Posted at_once = scene.pair.a.post_send(qa, fetch_add(1, four, scene.remote, 0, 1));
      at_once.error == EINVAL) {
    // A device may find it when it is posted (IBTA 11.4.1.1: an immediate error).
    EXPECT_EQ(at_once.bad, 0);
    const Posted swap = scene.pair.a.post_send(qa, compare_swap(2, four, scene.remote, 0, 0, 1));
    EXPECT_EQ(swap.error, EINVAL);
    expect_posted(scene.pair.a.post_send(qa, write(3, four, scene.remote, kSize - 4)));
    expect_wc(scene.pair.a.poll_sends(qa, 1)[0], 3, IBV_WC_RDMA_WRITE, qa);
    return;
  }
  scene.expect("fetch_add", fetch_add(0, four, scene.remote, 0, 1), IBV_WC_LOC_LEN_ERR, kUntouched);
  scene.expect("compare_swap", compare_swap(0, four, scene.remote, 0, 0, 1), IBV_WC_LOC_LEN_ERR,
               kUntouched);
  scene.expect_memory_untouched({0, 8});
}

TEST_P(RcLocalFault, InlineBytesAndEmptyPiecesNeedNoKey) {
  FaultScene scene(GetParam());
  Pair& pair = scene.pair;
  Slice keyless = slice(scene.local, 0, 100);
  keyless.lkey = 0xFFFFFFFFu;
  Slice empty = keyless;
  empty.length = 0;
  expect_posted(pair.b.post_receive(pair.qb, std::vector{receive(1, slice(scene.remote, 0, 4096)),
                                                         receive(2, slice(scene.remote, 0, 64))}));
  expect_posted(pair.a.post_send(pair.qa, {write(3, keyless, scene.remote).with(IBV_SEND_INLINE),
                                           send(4, keyless).with(IBV_SEND_INLINE),
                                           write(5, empty, scene.remote), send(6, empty)}));
  const auto sent = pair.a.poll_sends(pair.qa, 4);
  expect_wc(sent[0], 3, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[1], 4, IBV_WC_SEND, pair.qa);
  expect_wc(sent[2], 5, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[3], 6, IBV_WC_SEND, pair.qa);
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_receive(got[0], 1, 100, pair.qb);
  expect_receive(got[1], 2, 0, pair.qb);
}

}  // namespace
}  // namespace verbatim::harness
