// SPDX-License-Identifier: BSD-2-Clause
//
// A peer's memory as a pointer (verbatim/map.h), where the provider has it.
#include <sched.h>
#include <verbatim/map.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

constexpr unsigned kBoth = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

class MapRemote : public ::testing::TestWithParam<Setting> {
 protected:
  static bool has_it() { return std::string_view(GetParam().device).starts_with("shm"); }
  static bool can_be_mapped() {
    return GetParam().placement != Placement::kTwoProcesses ||
           GetParam().memory == MemoryKind::kMapped;
  }
  /// Asked until the two have met.
  static int ask(Pair& pair, std::uint32_t rkey, std::uint64_t address, std::size_t length,
                 unsigned access, void** mapped) {
    ibv_qp* const qp = pair.a.here().qp(pair.qa.id);
    int error = EAGAIN;
    for (int asked = 0; asked < 100'000 && error == EAGAIN; ++asked) {
      error = vbt_map_remote(qp, rkey, address, length, access, mapped);
      ::sched_yield();
    }
    return error;
  }
};
RUN_OVER_SETTINGS(MapRemote, on_every_device(each_way_and_loopback()));

TEST_P(MapRemote, GivesThePeersBytesThemselvesWhereTheyCanBeMapped) {
  const AllowedLog of_devices_without_it("map_remote is not supported");
  Pair pair(GetParam());
  const RegionInfo theirs = pair.b.allocate(GetParam().memory, 8192);
  pair.b.store(theirs, 64, 0x1122334455667788u);
  void* mapped = nullptr;
  const int error = ask(pair, theirs.rkey, theirs.address + 64, 128, kBoth, &mapped);
  if (!has_it() || !can_be_mapped()) {
    EXPECT_EQ(error, EOPNOTSUPP);
    EXPECT_EQ(mapped, nullptr);
    return;
  }
  ASSERT_EQ(error, 0);
  auto* const words = static_cast<std::uint64_t*>(mapped);
  EXPECT_EQ(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE), 0x1122334455667788u);
  __atomic_store_n(&words[1], 42u, __ATOMIC_RELEASE);
  EXPECT_EQ(pair.b.load(theirs, 72), 42u);
  // What the peer takes back may be another's by then, but is there to be looked at.
  EXPECT_EQ(pair.b.deregister(theirs), 0);
  if (GetParam().placement == Placement::kTwoProcesses) {
    EXPECT_EQ(__atomic_load_n(&words[1], __ATOMIC_ACQUIRE), 42u);
  }
}

TEST_P(MapRemote, JudgesKeyRangeAndRightsAsARequestWouldBe) {
  if (!has_it()) GTEST_SKIP() << "vbt_map_remote";
  Pair pair(GetParam());
  const RegionInfo theirs =
      pair.b.allocate(GetParam().memory, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  void* mapped = nullptr;
  const auto refused = [&](std::uint32_t rkey, std::uint64_t address, std::size_t length,
                           unsigned access) {
    EXPECT_EQ(ask(pair, rkey, address, length, access, &mapped), EACCES);
    EXPECT_EQ(mapped, nullptr);
  };
  refused(theirs.rkey ^ 1, theirs.address, 8, IBV_ACCESS_REMOTE_READ);
  refused(theirs.rkey, theirs.address - 1, 8, IBV_ACCESS_REMOTE_READ);
  refused(theirs.rkey, theirs.address + 8185, 8, IBV_ACCESS_REMOTE_READ);
  refused(theirs.rkey, theirs.address, ~std::size_t{0}, IBV_ACCESS_REMOTE_READ);
  refused(theirs.rkey, theirs.address, 8, IBV_ACCESS_REMOTE_WRITE);
  refused(theirs.rkey, theirs.address, 8, kBoth);
}

TEST_P(MapRemote, RefusesWhatIsNoQuestion) {
  Pair pair(GetParam());
  ibv_qp* const qp = pair.a.here().qp(pair.qa.id);
  const RegionInfo theirs = pair.b.allocate(GetParam().memory, 4096);
  void* mapped = nullptr;
  EXPECT_EQ(vbt_map_remote(nullptr, theirs.rkey, theirs.address, 8, kBoth, &mapped), EINVAL);
  EXPECT_EQ(vbt_map_remote(qp, theirs.rkey, theirs.address, 8, kBoth, nullptr), EINVAL);
  EXPECT_EQ(vbt_map_remote(qp, theirs.rkey, theirs.address, 0, kBoth, &mapped), EINVAL);
  EXPECT_EQ(vbt_map_remote(qp, theirs.rkey, theirs.address, 8, 0, &mapped), EINVAL);
  EXPECT_EQ(vbt_map_remote(qp, theirs.rkey, theirs.address, 8, IBV_ACCESS_REMOTE_ATOMIC, &mapped),
            EINVAL);
  EXPECT_EQ(mapped, nullptr);
}

TEST_P(MapRemote, IsNotAskedAgainOfAQueuePairThatHasFailed) {
  if (!has_it()) GTEST_SKIP() << "vbt_map_remote";
  Pair pair(GetParam());
  const RegionInfo theirs = pair.b.allocate(GetParam().memory, 4096);
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
  void* mapped = nullptr;
  EXPECT_EQ(
      vbt_map_remote(pair.a.here().qp(pair.qa.id), theirs.rkey, theirs.address, 8, kBoth, &mapped),
      EINVAL);
  EXPECT_EQ(mapped, nullptr);
}

}  // namespace
}  // namespace verbatim::harness
