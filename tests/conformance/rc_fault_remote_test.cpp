// SPDX-License-Identifier: BSD-2-Clause
//
// A request for remote memory that the responder must refuse (IBTA 9.7.4.1.5, 9.7.5.1.3): the
// status at the requester, the error state and its event at the responder, not a byte moved.
#include <signal.h>

#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"
#include "tests/support/rc_fault.hpp"

namespace verbatim::harness {
namespace {

class RcRemoteFault : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRemoteFault, on_every_device(each_way()));

class RcRemoteFaultOfProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRemoteFaultOfProcesses, on_every_device(between_processes()));

void denied(FaultScene& scene, const char* what, const Request& request) {
  scene.expect(what, request, IBV_WC_REM_ACCESS_ERR, kAccessFault);
}

/// Every operation on `size` bytes from `offset` of what `target` says.
void all_denied(FaultScene& scene, const char* what, const RegionInfo& target, std::uint64_t offset,
                std::uint64_t size) {
  const Slice local = slice(scene.local, 0, size);
  denied(scene, what, write(0, local, target, offset));
  denied(scene, what, write(0, local, target, offset).with_imm(7));
  if (size <= 220) denied(scene, what, write(0, local, target, offset).with(IBV_SEND_INLINE));
  denied(scene, what, read(0, local, target, offset));
  if (size != 8 || (target.address + offset) % 8 != 0) return;
  denied(scene, what, fetch_add(0, local, target, offset, 1));
  denied(scene, what, compare_swap(0, local, target, offset, 0, 1));
}

TEST_P(RcRemoteFault, AKeyThatMeansNothingIsAnAccessErrorAtBothEnds) {
  FaultScene scene(GetParam());
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{100}, 1_MiB}) {
    RegionInfo wrong = scene.remote;
    for (const std::uint32_t flipped : {0x100u, 0x80000000u, 0x00A5A500u}) {
      wrong.rkey = scene.remote.rkey ^ flipped;
      all_denied(scene, "no such key", wrong, 0, size);
    }
    wrong.rkey = scene.remote.rkey ^ 1;
    all_denied(scene, "another generation", wrong, 0, size);
  }
  RegionInfo zero = scene.remote;
  zero.rkey = 0;
  all_denied(scene, "zero", zero, 0, 8);
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, ARangeOutsideTheRegionIsAnAccessErrorAtBothEnds) {
  FaultScene scene(GetParam());
  const RegionInfo part = scene.pair.b.register_part(scene.remote, 4096, 8192);
  all_denied(scene, "one past its end", part, 8192 - 7, 8);
  all_denied(scene, "behind its end", part, 8192, 8);
  all_denied(scene, "before its start", part, ~std::uint64_t{7}, 8);
  all_denied(scene, "one byte too long", part, 0, 8193);
  all_denied(scene, "around the end of the address space", part,
             ~std::uint64_t{0} - part.address - 3, 16);
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, ARightThatTheRegionLacksIsAnAccessErrorAtBothEnds) {
  FaultScene scene(GetParam());
  struct Case {
    const char* what;
    int access;
    bool write, read, atomic;  ///< what is then allowed
  };
  for (const Case& has :
       {Case{"none", IBV_ACCESS_LOCAL_WRITE, false, false, false},
        Case{"write", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, true, false, false},
        Case{"read", IBV_ACCESS_REMOTE_READ, false, true, false},
        Case{"atomic", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, false, false, true}}) {
    const RegionInfo target =
        scene.pair.b.register_part(scene.remote, 0, FaultScene::kSize, has.access);
    for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{100'000}}) {
      const Slice local = slice(scene.local, 0, size);
      if (!has.write) denied(scene, has.what, write(0, local, target));
      if (!has.read) denied(scene, has.what, read(0, local, target));
    }
    const Slice eight = slice(scene.local, 0, 8);
    if (!has.atomic) denied(scene, has.what, fetch_add(0, eight, target, 0, 1));
    if (!has.atomic) denied(scene, has.what, compare_swap(0, eight, target, 0, 0, 1));
  }
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, AKeyOfAnotherProtectionDomainIsAnAccessErrorAtBothEnds) {
  FaultScene scene(GetParam());
  const RegionInfo foreign = scene.pair.b.register_foreign(scene.remote);
  all_denied(scene, "small", foreign, 0, 8);
  all_denied(scene, "large", foreign, 0, 1_MiB);
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, AKeyThatWasUsedAndThenDeregisteredIsAnAccessErrorAtBothEnds) {
  FaultScene scene(GetParam());
  const RegionInfo once = scene.pair.b.register_part(scene.remote, 0, FaultScene::kSize);
  const Slice local = slice(scene.local, 0, 0);
  // So that whatever a requester remembers of it is there to be forgotten.
  expect_posted(scene.pair.a.post_send(scene.pair.qa, read(1, local, once)));
  expect_wc(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], 1, IBV_WC_RDMA_READ, scene.pair.qa);
  ASSERT_EQ(scene.pair.b.deregister(once), 0);
  all_denied(scene, "small", once, 0, 8);
  all_denied(scene, "large", once, 0, 1_MiB);
  // The next registration, which may take the same place in the table, has another key.
  const RegionInfo next = scene.pair.b.register_part(scene.remote, 0, FaultScene::kSize);
  EXPECT_NE(next.rkey, once.rkey);
  all_denied(scene, "old key", once, 0, 8);
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, ARightThatTheQueuePairLacksIsAnInvalidRequest) {
  for (const int access :
       {0, static_cast<int>(IBV_ACCESS_REMOTE_WRITE), static_cast<int>(IBV_ACCESS_REMOTE_READ),
        static_cast<int>(IBV_ACCESS_REMOTE_ATOMIC)}) {
    SCOPED_TRACE(access);
    PairWish wish;
    wish.link_b.access = access;
    FaultScene scene(GetParam(), wish);
    const auto invalid = [&](const char* what, int need, const Request& request) {
      if (access == need) return;
      scene.expect(what, request, IBV_WC_REM_INV_REQ_ERR, kRightFault);
    };
    const Slice eight = slice(scene.local, 0, 8);
    invalid("write", IBV_ACCESS_REMOTE_WRITE, write(0, eight, scene.remote));
    invalid("inline write", IBV_ACCESS_REMOTE_WRITE,
            write(0, eight, scene.remote).with(IBV_SEND_INLINE));
    invalid("large write", IBV_ACCESS_REMOTE_WRITE,
            write(0, slice(scene.local, 0, 1_MiB), scene.remote));
    invalid("write with immediate", IBV_ACCESS_REMOTE_WRITE,
            write(0, eight, scene.remote).with_imm(1));
    invalid("read", IBV_ACCESS_REMOTE_READ, read(0, eight, scene.remote));
    invalid("large read", IBV_ACCESS_REMOTE_READ,
            read(0, slice(scene.local, 0, 1_MiB), scene.remote));
    invalid("fetch_add", IBV_ACCESS_REMOTE_ATOMIC, fetch_add(0, eight, scene.remote, 0, 1));
    invalid("compare_swap", IBV_ACCESS_REMOTE_ATOMIC,
            compare_swap(0, eight, scene.remote, 0, 0, 1));
    scene.expect_memory_untouched();
  }
}

TEST_P(RcRemoteFault, AnAtomicOnAnUnalignedAddressIsAnInvalidRequest) {
  FaultScene scene(GetParam());
  const Slice eight = slice(scene.local, 0, 8);
  for (const std::uint64_t offset : {1u, 4u, 7u}) {
    scene.expect("fetch_add", fetch_add(0, eight, scene.remote, offset, 1), IBV_WC_REM_INV_REQ_ERR,
                 kRequestFault);
    scene.expect("compare_swap", compare_swap(0, eight, scene.remote, offset, 0, 1),
                 IBV_WC_REM_INV_REQ_ERR, kRequestFault);
  }
  scene.expect_memory_untouched();
}

TEST_P(RcRemoteFault, TheResponderLearnsOfItAlsoWhenTheRequesterIsDestroyedAtOnce) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  RegionInfo wrong = pair.b.allocate(GetParam().memory, 64);
  wrong.rkey ^= 0x80000000u;
  for (std::uint32_t round = 0; round < 30; ++round) {
    const auto [qa, qb] = pair.add_qps({}, {});
    expect_posted(pair.a.post_send(qa, write(1, slice(local, 0, 8), wrong)));
    expect_error(pair.a.poll_sends(qa, 1)[0], 1, IBV_WC_REM_ACCESS_ERR, qa);
    if (round % 2 == 0) {
      ASSERT_EQ(pair.a.call<&Endpoint::destroy_qp>(qa.id), 0);
    } else {
      ASSERT_EQ(pair.a.to_state(qa, IBV_QPS_RESET), 0);
    }
    if (!quirk_of(qb.vendor, kNoEventsOfResponders).empty()) {
      EXPECT_TRUE(wait_until([&, qp = qb] { return pair.b.state(qp) == IBV_QPS_ERR; }));
      continue;
    }
    const AsyncEvent event = pair.b.call<&Endpoint::take_async_event>(2000);
    ASSERT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR) << "round " << round;
    EXPECT_EQ(event.qp, qb.id);
    EXPECT_EQ(pair.b.state(qb), IBV_QPS_ERR);
  }
}

/// The responder is stopped until the requester is gone: what it finds then is a request that it
/// must refuse, and a dead process.
TEST_P(RcRemoteFaultOfProcesses, TheResponderLearnsOfItAlsoWhenTheRequesterHasExited) {
  Side b(std::map<std::string, std::string>{});
  const QpInfo qb = b.create_qp();
  SKIP_IF(quirk_of(qb.vendor, kNoEventsOfResponders));
  RegionInfo wrong = b.allocate(GetParam().memory, 64);
  wrong.rkey ^= 0x80000000u;
  {
    Side a(std::map<std::string, std::string>{});
    const QpInfo qa = a.create_qp();
    a.connect(qa, qb);
    b.connect(qb, qa);
    const RegionInfo local = a.allocate(GetParam().memory, 64);
    // They have met: both ways.
    expect_posted(b.post_receive(qb, receive(1)));
    expect_posted(a.post_send(qa, send(1, {})));
    expect_wc(a.poll_sends(qa, 1)[0], 1, IBV_WC_SEND, qa);
    expect_receive(b.poll_receives(qb, 1)[0], 1, 0, qb);
    b.child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return b.child().is_stopped(); }));
    expect_posted(a.post_send(qa, write(2, slice(local, 0, 8), wrong)));
    expect_error(a.poll_sends(qa, 1)[0], 2, IBV_WC_REM_ACCESS_ERR, qa);
  }  // destroys its queue pair, closes, exits
  b.child().signal(SIGCONT);
  const AsyncEvent event = b.call<&Endpoint::take_async_event>(kDefaultWaitMs);
  EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.qp, qb.id);
  EXPECT_EQ(b.state(qb), IBV_QPS_ERR);
}

}  // namespace
}  // namespace verbatim::harness
