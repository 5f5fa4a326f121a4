// SPDX-License-Identifier: BSD-2-Clause
//
// Memory regions in all the ways in which they can be registered, and registered anew (IBTA 10.6,
// man ibv_reg_mr, ibv_rereg_mr).
#include <sys/mman.h>

#include <future>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kWhole = 64_KiB;
constexpr int kMoves = IBV_REREG_MR_CHANGE_TRANSLATION;
constexpr int kChangesPd = IBV_REREG_MR_CHANGE_PD;
constexpr int kChangesAccess = IBV_REREG_MR_CHANGE_ACCESS;

class MemoryRegion : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(MemoryRegion, each_way_and_two_contexts());

/// `b` writes to, reads from and adds to every corner of `target`, which is `memory` of `a` from
/// `at` on.
void expect_reachable(Pair& pair, const RegionInfo& memory, std::uint64_t at,
                      const RegionInfo& target, std::uint64_t length) {
  const RegionInfo local = pair.b.allocate(MemoryKind::kMapped, length);
  pair.b.fill(local, 0, length, 5);
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(local, 0, length), target)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  EXPECT_EQ(pair.a.mismatch(memory, at, length, 5), -1);
  pair.a.fill(memory, at, length, 6);
  expect_posted(pair.b.post_send(pair.qb, read(2, slice(local, 0, length), target)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 2, IBV_WC_RDMA_READ, pair.qb);
  EXPECT_EQ(pair.b.mismatch(local, 0, length, 6), -1);
  pair.a.store(memory, at + length - 8, 40);
  expect_posted(pair.b.post_send(pair.qb, fetch_add(3, slice(local, 0, 8), target, length - 8, 2)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 3, IBV_WC_FETCH_ADD, pair.qb);
  EXPECT_EQ(pair.a.load(memory, at + length - 8), 42u);
}

void expect_denied(Pair& pair, const RegionInfo& target, std::uint64_t offset,
                   std::uint64_t length) {
  const RegionInfo local = pair.b.allocate(MemoryKind::kMapped, length);
  expect_posted(pair.b.post_send(pair.qb, write(9, slice(local, 0, length), target, offset)));
  expect_error(pair.b.poll_sends(pair.qb, 1)[0], 9, IBV_WC_REM_ACCESS_ERR, pair.qb);
  pair.reconnect();
}

TEST_P(MemoryRegion, PeersNameItsBytesByTheIovaThatItWasGiven) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  for (const std::uint64_t iova :
       {std::uint64_t{0}, std::uint64_t{0x100000}, ~std::uint64_t{0xffff}}) {
    SCOPED_TRACE(iova);
    RegionWish wish;
    wish.of = memory.id;
    wish.offset = 4096;
    wish.size = 8192;
    wish.with_iova = 1;
    wish.iova = iova;
    const RegionInfo target = pair.a.register_as(wish);
    EXPECT_EQ(target.address, iova);
    expect_reachable(pair, memory, 4096, target, 8192);
    RegionInfo by_address = target;
    by_address.address = memory.address + 4096;
    expect_denied(pair, by_address, 0, 8);
  }
}

TEST_P(MemoryRegion, ItsOwnWorkRequestsNameItsBytesByTheIovaToo) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  const RegionInfo target = pair.b.allocate(GetParam().memory, kWhole);
  RegionWish wish;
  wish.of = memory.id;
  wish.offset = 4096;
  wish.size = 8192;
  wish.with_iova = 1;
  wish.iova = 0x7000;
  const RegionInfo source = pair.a.register_as(wish);
  pair.a.fill(memory, 4096, 8192, 3);
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}}) {
    expect_posted(pair.a.post_send(pair.qa, write(1, slice(source, 0, bytes), target)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
    EXPECT_EQ(pair.b.mismatch(target, 0, bytes, 3), -1);
  }
}

TEST_P(MemoryRegion, ZeroBasedItCountsFromZeroAtBothEnds) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  RegionWish wish;
  wish.of = memory.id;
  wish.offset = 8192;
  wish.size = 8192;
  wish.access = kAllAccess | IBV_ACCESS_ZERO_BASED;
  const RegionInfo based = pair.a.register_as(wish);
  EXPECT_EQ(based.address, 0u);
  expect_reachable(pair, memory, 8192, based, 8192);
  expect_denied(pair, based, 8192 - 7, 8);
  const RegionInfo target = pair.b.allocate(GetParam().memory, kWhole);
  pair.a.fill(memory, 8192, 100, 7);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(based, 0, 100), target)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(target, 0, 100, 7), -1);
}

TEST_P(MemoryRegion, OnDemandAllOfTheAddressSpaceIsOneRegion) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  RegionWish wish;  // addr NULL, length SIZE_MAX
  wish.access = kAllAccess | IBV_ACCESS_ON_DEMAND;
  RegionInfo all = pair.a.register_as(wish);
  EXPECT_EQ(all.size, SIZE_MAX);
  all.address = memory.address;
  expect_reachable(pair, memory, 0, all, kWhole);
  // As the key of an SGE too: offsets of it are addresses.
  const RegionInfo target = pair.b.allocate(GetParam().memory, kWhole);
  pair.a.fill(memory, 0, 5000, 8);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(all, memory.address, 5000), target)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(target, 0, 5000, 8), -1);
}

class MemoryRegionOfProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(MemoryRegionOfProcesses, between_processes());

TEST_P(MemoryRegionOfProcesses, AnAddressOfItWithoutMemoryIsAnAccessErrorAndHarmsNobody) {
  Pair pair(GetParam());
  RegionWish wish;
  wish.access = kAllAccess | IBV_ACCESS_ON_DEMAND;
  RegionInfo all = pair.a.register_as(wish);
  void* const hole = mmap(nullptr, kWhole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{reinterpret_cast<std::uintptr_t>(hole)},
        ~std::uint64_t{4095}}) {
    SCOPED_TRACE(address);
    all.address = address;
    expect_denied(pair, all, 0, 64);
  }
  munmap(hole, kWhole);
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  all.address = memory.address;
  expect_reachable(pair, memory, 0, all, kWhole);
}

TEST_P(MemoryRegion, EveryHintAndRightIsAccepted) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  for (const int more :
       {int{IBV_ACCESS_RELAXED_ORDERING}, int{IBV_ACCESS_HUGETLB}, int{IBV_ACCESS_MW_BIND},
        int{IBV_ACCESS_FLUSH_GLOBAL}, int{IBV_ACCESS_ON_DEMAND}}) {
    RegionWish wish;
    wish.of = memory.id;
    wish.size = 4096;
    wish.access = kAllAccess | more;
    expect_reachable(pair, memory, 0, pair.a.register_as(wish), 4096);
  }
}

/// Every combination of what can change, one after another on one region.
TEST_P(MemoryRegion, ChangedItKeepsItsKeysAndIsOnlyWhatItWasChangedTo) {
  for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; ++flags) {
    SCOPED_TRACE(flags);
    Pair pair(GetParam());
    const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
    const RegionInfo elsewhere = pair.a.allocate(GetParam().memory, kWhole);
    const RegionInfo before = pair.a.register_part(memory, 0, 8192);
    expect_reachable(pair, memory, 0, before, 8192);
    RegionWish wish;
    wish.of = elsewhere.id;
    wish.offset = 4096;
    wish.size = 16384;
    wish.foreign_pd = 1;
    wish.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    ASSERT_EQ(pair.a.change_region(before, flags, wish), 0);
    const RegionInfo after = pair.a.call<&Endpoint::region_info>(before.id);
    EXPECT_EQ(after.lkey, before.lkey);
    EXPECT_EQ(after.rkey, before.rkey);
    const bool moved = (flags & kMoves) != 0;
    EXPECT_EQ(after.size, moved ? 16384u : 8192u);
    EXPECT_EQ(after.address, moved ? elsewhere.address + 4096 : memory.address);

    const std::uint64_t at = moved ? 4096 : 0;
    const RegionInfo& behind = moved ? elsewhere : memory;
    pair.a.set(memory, 0, kWhole, 0x11);
    pair.a.set(elsewhere, 0, kWhole, 0x11);
    if (flags == kMoves) {
      expect_reachable(pair, behind, at, after, after.size);
      pair.a.set(behind, 0, kWhole, 0x11);
      expect_denied(pair, before, 0, 8);  // the old range
    } else if ((flags & kChangesPd) != 0) {
      expect_denied(pair, after, 0, 8);
    } else {
      const RegionInfo local = pair.b.allocate(MemoryKind::kMapped, 64);
      expect_posted(pair.b.post_send(pair.qb, read(1, slice(local, 0, 64), after)));
      expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_READ, pair.qb);
      expect_untouched(pair.b, local, 0, 64, 0x11);
      expect_denied(pair, after, 0, 8);  // the right to write is gone
    }
    expect_untouched(pair.a, memory, 0, kWhole, 0x11);
    expect_untouched(pair.a, elsewhere, 0, kWhole, 0x11);
  }
}

TEST_P(MemoryRegion, AChangeThatIsRefusedLeavesItAsItWas) {
  const AllowedLog says_why("ibv_rereg_mr");
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kWhole);
  const RegionInfo region = pair.a.register_part(memory, 0, 8192);
  RegionWish wish;
  wish.of = memory.id;
  wish.size = 4096;
  EXPECT_EQ(pair.a.change_region(region, 0, wish), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(pair.a.change_region(region, 8, wish), IBV_REREG_MR_ERR_INPUT);
  wish.size = 0;
  EXPECT_EQ(pair.a.change_region(region, kMoves, wish), IBV_REREG_MR_ERR_INPUT);
  wish.access = IBV_ACCESS_REMOTE_WRITE;  // without the local right
  EXPECT_EQ(pair.a.change_region(region, kChangesAccess, wish), IBV_REREG_MR_ERR_INPUT);
  wish.access = IBV_ACCESS_REMOTE_ATOMIC;
  EXPECT_EQ(pair.a.change_region(region, kChangesAccess, wish), IBV_REREG_MR_ERR_INPUT);
  expect_reachable(pair, memory, 0, region, 8192);
}

/// The promise of deregistration holds for the old range (runtime design: deregistration).
TEST_P(MemoryRegion, AfterItMovedNoPeerTouchesWhereItWas) {
  constexpr std::uint64_t kLong = 1_MiB;
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kLong);
  const RegionInfo memory = pair.a.allocate(GetParam().memory, kLong);
  const RegionInfo elsewhere = pair.a.allocate(GetParam().memory, kLong);
  pair.b.set(source, 0, kLong, 0x99);
  for (std::uint32_t round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t size = round % 3 == 0 ? 8 : kLong;
    const RegionInfo target = pair.a.register_part(memory, 0, kLong);
    pair.a.set(memory, 0, kLong, 0);
    const Request request = write(1, slice(source, 0, size), target, kLong - size);
    auto storm = std::async(std::launch::async, [&] {
      return pair.b.call<&Endpoint::storm>(pair.qb.id, request, 8u, ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return pair.a.load(memory, kLong - 8) != 0; }));
    RegionWish wish;
    wish.of = elsewhere.id;
    wish.size = kLong;
    ASSERT_EQ(pair.a.change_region(target, kMoves, wish), 0);
    pair.a.fill(memory, 0, kLong, round);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures[0].status, IBV_WC_REM_ACCESS_ERR) << describe(failures);
    EXPECT_EQ(pair.a.mismatch(memory, 0, kLong, round), -1);
    ASSERT_EQ(pair.a.deregister(target), 0);
    pair.reconnect();
  }
}

/// man ibv_reg_mr: the conditions under which it fails.
TEST(MemoryRegionRules, ARegistrationThatCannotBeIsRefused) {
  const AllowedLog says_why("reg_mr");
  Session session;
  static unsigned char memory[4096];
  const struct {
    const char* what;
    void* addr;
    std::size_t length;
    int access;
    int error;
  } cases[] = {
      {"remote write without local write", memory, 64, IBV_ACCESS_REMOTE_WRITE, EINVAL},
      {"remote atomic without local write", memory, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
      {"no bytes", memory, 0, IBV_ACCESS_LOCAL_WRITE, EINVAL},
      {"past the end", reinterpret_cast<void*>(~std::uintptr_t{0}), 2, 0, EINVAL},
      {"an unknown right", memory, 64, 1 << 15, EINVAL},
      {"persistence", memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(session.pd.get(), c.addr, c.length, c.access), nullptr);
    EXPECT_EQ(errno, c.error);
  }
  errno = 0;
  EXPECT_EQ(ibv_reg_mr_iova(session.pd.get(), memory, 4096, ~std::uint64_t{0} - 100, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(MemoryRegionRules, TheDeviceSaysThatEverythingIsOnDemand) {
  Session session;
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
  constexpr std::uint32_t kRc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                                IBV_ODP_SUPPORT_ATOMIC;
  EXPECT_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps & kRc, kRc);
  EXPECT_GT(attr.max_dm_size, 0u);
}

}  // namespace
}  // namespace verbatim::harness
