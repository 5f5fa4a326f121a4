// SPDX-License-Identifier: BSD-2-Clause
//
// A library that was closed has left nothing: no descriptor, no thread, no file, no mapping.
#include <algorithm>

#include "tests/shm/fork_family.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::harness {
namespace {

class RcResources : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcResources, each_way());

/// Uses every tier once.
void use(Pair& pair) {
  const Setting& setting = pair.setting;
  const RegionInfo local = pair.a.allocate(setting.memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(setting.memory, 1_MiB);
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{300}, 8_KiB, 1_MiB}) {
    expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, 0, size))));
    expect_posted(pair.a.post_send(
        pair.qa,
        {send(1, slice(local, 0, size)), write(2, slice(local, 0, size), remote),
         read(3, slice(local, 0, size), remote), fetch_add(4, slice(local, 0, 8), remote, 0, 1)}));
    for (const ibv_wc& wc : pair.a.poll_sends(pair.qa, 4)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    pair.b.poll_receives(pair.qb, 1);
  }
}
PairWish with_channel() {
  PairWish wish;
  wish.a.with_channel = 1;
  return wish;
}
/// And closes everything, in order.
void use_everything(Setting setting) {
  Pair pair(setting, with_channel());
  use(pair);
}
/// Of which all that was made is left; the verbs that destroy it come afterwards.
void close_at_a(Pair& pair) {
  EXPECT_EQ(ibv_close_device(pair.a.here().session()->context.release()), 0);
}

/// The process and the fabric folder, where other tests' killed children may still have names.
struct Before {
  ProcessCensus census = ProcessCensus::take();
  std::vector<std::string> files = fabric_contents();
};

void expect_nothing_left(const Before& before) {
  // The kernel may take a moment to forget a thread that has been joined.
  std::string left;
  if (!wait_until(
          [&] { return (left = left_behind(before.census, ProcessCensus::take())).empty(); },
          2000)) {
    ADD_FAILURE() << left;
  }
  // The lock belongs to the folder, not to a process: it stays as long as the folder does.
  for (const std::string& file : fabric_contents()) {
    EXPECT_TRUE(file == "lock" || std::ranges::count(before.files, file) != 0) << file;
  }
}

TEST_P(RcResources, NothingIsLeftWhenAllIsClosed) {
  use_everything(GetParam());  // what the C library keeps, it keeps from here on
  const Before before;
  use_everything(GetParam());
  expect_nothing_left(before);
}

TEST_P(RcResources, NothingIsLeftWhenADeviceIsClosedBeforeItsObjects) {
  use_everything(GetParam());
  const Before before;
  {
    Pair pair(GetParam(), with_channel());
    use(pair);
    close_at_a(pair);
    // Memory that peers map is the test's, and goes with it.
    if (GetParam().placement == Placement::kOneContext &&
        GetParam().memory == MemoryKind::kOrdinary) {
      expect_nothing_left(before);
    }
  }
  expect_nothing_left(before);
}

TEST_P(RcResources, TheAddressSpaceDoesNotGrowWithUse) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer keeps memory that was freed";
#endif
  use_everything(GetParam());
  use_everything(GetParam());
  const ProcessCensus before = ProcessCensus::take();
  for (int round = 0; round < 10; ++round) use_everything(GetParam());
  const ProcessCensus after = ProcessCensus::take();
  // The heap may settle anew; a megabyte forgotten in each round would be ten.
  EXPECT_LE(after.address_space, before.address_space + 4_MiB);
  EXPECT_EQ(after.descriptors.size(), before.descriptors.size());
}

TEST(RcLeftovers, OfEveryKindAreGoneWhenTheDeviceIsClosed) {
  const AllowedLog of_the_group("an object whose device was closed");
  { Family first; }
  const Before before;
  {
    Family left;
    left.complete_one();
    left.complete_others();
    EXPECT_EQ(ibv_close_device(left.own.session()->context.release()), 0);
    EXPECT_TRUE(
        wait_until([&] { return ProcessCensus::take().threads == before.census.threads; }, 2000));
    EXPECT_EQ(ProcessCensus::take().segments(), before.census.segments());
  }
  expect_nothing_left(before);  // of the memory that the test had for itself
}

class RcClosed : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcClosed, between_processes());

TEST_P(RcClosed, APeerOfADeviceThatWasClosedBeforeItsObjectsReachesNothing) {
  const Setting& setting = GetParam();
  Pair pair(setting);
  const RegionInfo local = pair.a.allocate(setting.memory, 4096);
  const RegionInfo remote = pair.b.allocate(setting.memory, 4096);
  pair.b.fill(remote, 0, 4096, 5);
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(remote, 0, 2048), local)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  pair.a.set(local, 0, 4096, 0x5a);
  close_at_a(pair);
  expect_posted(pair.b.post_send(pair.qb, write(2, slice(remote, 0, 2048), local)));
  EXPECT_EQ(pair.b.poll_sends(pair.qb, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  expect_untouched(pair.a, local, 0, 4096, 0x5a);
}

TEST(RcLeftovers, OfAPeerThatWasKilledAreGoneWithTheNextWhoLooksForIt) {
  const Setting setting{Placement::kTwoProcesses, MemoryKind::kMapped};
  use_everything(setting);
  const Before before;
  QpInfo dead;
  {
    Pair pair(setting);
    const RegionInfo local = pair.a.allocate(MemoryKind::kMapped, 64);
    const RegionInfo remote = pair.b.allocate(MemoryKind::kMapped, 64);
    expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), remote)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
    dead = pair.qb;
    pair.b.child().kill_and_collect();
    expect_posted(pair.a.post_send(pair.qa, send(2, slice(local, 0, 8))));
    EXPECT_NE(pair.a.poll_sends(pair.qa, 1)[0].status, IBV_WC_SUCCESS);
  }
  {
    Side late(std::make_shared<Session>());
    const QpInfo qp = late.create_qp();
    Link link;
    link.retry_count = 1;
    late.connect(qp, dead, link);
    expect_posted(late.post_send(qp, send(1, {})));
    expect_error(late.poll_sends(qp, 1)[0], 1, IBV_WC_RETRY_EXC_ERR, qp);
  }
  expect_nothing_left(before);
}

TEST(RcLeftovers, AnOpenDeviceAloneLeavesNothingEither) {
  const auto open_and_close = [] { const Session session; };
  open_and_close();
  const Before before;
  for (int round = 0; round < 20; ++round) open_and_close();
  expect_nothing_left(before);
}

}  // namespace
}  // namespace verbatim::harness
