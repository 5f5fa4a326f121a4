// SPDX-License-Identifier: BSD-2-Clause
// Processes that a container, a batch system or an administrator keeps short: what has a fallback
// works as ever, what has none says in one line what is missing and what helps.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/sync/biased_lock.hpp"
#include "tests/support/condition.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

/// Every operation, small and large, from each side to the other.
void expect_all_traffic(Pair& pair) {
  const RegionInfo here = pair.a.allocate(pair.setting.memory, 2_MiB);
  const RegionInfo there = pair.b.allocate(pair.setting.memory, 2_MiB);
  struct Way {
    Side& from;
    Side& to;
    const QpInfo& qp;
    const QpInfo& peer;
    const RegionInfo& local;
    const RegionInfo& remote;
  };
  for (const Way& way : {Way{pair.a, pair.b, pair.qa, pair.qb, here, there},
                         Way{pair.b, pair.a, pair.qb, pair.qa, there, here}}) {
    for (const std::uint64_t size : {std::uint64_t{8}, 4_KiB, 1_MiB}) {
      SCOPED_TRACE(size);
      const auto seed = static_cast<std::uint32_t>(size);
      way.from.fill(way.local, 0, size, seed);
      expect_posted(way.to.post_receive(way.peer, receive(1, slice(way.remote, 0, size))));
      expect_posted(way.from.post_send(way.qp, send(2, slice(way.local, 0, size))));
      expect_receive(way.to.poll_receives(way.peer, 1)[0], 1, size, way.peer);
      expect_wc(way.from.poll_sends(way.qp, 1)[0], 2, IBV_WC_SEND, way.qp);
      EXPECT_EQ(way.to.mismatch(way.remote, 0, size, seed), -1);
      expect_posted(
          way.from.post_send(way.qp, {write(3, slice(way.local, 0, size), way.remote, 1_MiB),
                                      read(4, slice(way.local, 1_MiB, size), way.remote, 1_MiB),
                                      fetch_add(5, slice(way.local, 0, 8), way.remote, 0, 1)}));
      const auto done = way.from.poll_sends(way.qp, 3);
      expect_wc(done[0], 3, IBV_WC_RDMA_WRITE, way.qp);
      expect_wc(done[1], 4, IBV_WC_RDMA_READ, way.qp);
      expect_wc(done[2], 5, IBV_WC_FETCH_ADD, way.qp);
      EXPECT_EQ(way.from.mismatch(way.local, 1_MiB, size, seed), -1);
    }
  }
}

class Without : public ::testing::TestWithParam<Setting> {
 protected:
  static Pair with(const char* condition) {
    PairWish wish;
    wish.child_environment = {{kCondition, condition}};
    return Pair(GetParam(), wish);
  }
};
RUN_OVER_SETTINGS(Without, between_processes());

TEST_P(Without, CrossMemoryAttachTheServiceThreadsCopy) {
  Pair pair = with("deny process_vm_readv process_vm_writev");
  expect_all_traffic(pair);
}

TEST_P(Without, MembarrierSendersPayAFence) {
  Pair pair = with("deny membarrier");
  expect_all_traffic(pair);
}

TEST_P(Without, PidfdsTheDeathOfAPeerIsStillNoticed) {
  PairWish wish;
  wish.child_environment = {{kCondition, "deny pidfd_open"}};
  Pair pair(GetParam(), wish);
  expect_all_traffic(pair);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  expect_posted(pair.a.post_receive(pair.qa, receive(1, slice(local, 0, 8))));
  pair.b.child().kill_and_collect();
  expect_error(pair.a.poll_receives(pair.qa, 1)[0], 1, IBV_WC_WR_FLUSH_ERR, pair.qa);
  EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_ERR);
}

#ifdef VBT_UNDER_SANITIZER
constexpr bool kRoomToLimit = false;  // a sanitizer's shadow takes terabytes
#else
constexpr bool kRoomToLimit = true;
#endif

class LockingAll : public Without {
 protected:
  void SetUp() override {
    if (!kRoomToLimit) GTEST_SKIP() << "the sanitizer's shadow would be locked, too";
  }
};
RUN_OVER_SETTINGS(LockingAll, between_processes());

TEST_P(Without, AddressSpaceForAPeersSegmentItSaysSoAndSendsFail) {
  if (!kRoomToLimit) GTEST_SKIP() << "the sanitizer needs the address space";
  const AllowedLog announced("ulimit -v");
  const AllowedLog and_to_whom("refused a process");
  PairWish wish;
  wish.child_environment = {{kCondition, "limit as 700000000"}};
  wish.link_b.retry_count = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.b.post_send(pair.qb, send(1, slice(remote, 0, 8))));
  expect_error(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RETRY_EXC_ERR, pair.qb);
  EXPECT_LE(LogWatch::instance()->complaints().size(), 2u) << "the same words again and again";
}

TEST_P(Without, LargeFilesTheSegmentIsSmaller) {
  Pair pair = with("limit fsize 100000000");
  expect_all_traffic(pair);
}

TEST_P(Without, RoomToLockMemoryNothingIsMissing) {
  Pair pair = with("limit memlock 0");
  expect_all_traffic(pair);
}

/// Registers much memory where nothing may be locked; what of that the kernel counts as locked or
/// pinned, in KiB, or why something failed.
VBT_ROLE(registrar) {
  constexpr std::size_t kBytes = 64_MiB;
  const auto answer = [&](long words) {
    control.send_value(words);
    return 0;
  };
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // (Sanitizers take mlock itself for theirs.)
  if (syscall(SYS_mlock, memory, 4096) == 0) return answer(-1);
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* const context = list == nullptr ? nullptr : ibv_open_device(list[0]);
  ibv_pd* const pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  ibv_mr* const mr = pd == nullptr ? nullptr
                                   : ibv_reg_mr(pd, memory, kBytes,
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr == nullptr) return answer(-2);
  long kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long number = 0;
    if ((word == "VmLck:" || word == "VmPin:") && status >> number) kib += number;
  }
  ibv_dereg_mr(mr);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(list);
  return answer(kib);
}

TEST(LockedMemory, SharedMemoryPinsNoneAndNeedsNoLimit) {
  Child child("registrar", {{kCondition, "limit memlock 0"}});
  const long kib = child.control().receive_value<long>();
  EXPECT_EQ(child.wait().exit_status, 0);
  ASSERT_NE(kib, -1) << "the limit is not in force, so this shows nothing";
  ASSERT_NE(kib, -2) << "registering failed";
  EXPECT_EQ(kib, 0) << "KiB are locked or pinned";
}

VBT_ROLE(locker) { return 0; }

bool can_be(const char* condition) {
  Child child("locker", {{kCondition, condition}});
  return child.wait().exit_status == 0;
}

/// Of a process, in KiB.
long resident_kib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  long kib = -1;
  for (std::string word; status >> word;)
    if (word == "VmRSS:") status >> kib;
  return kib;
}

/// How many of the maps whose name contains `name` there are, and how many of them are locked.
std::pair<int, int> locked_maps(pid_t process, const std::string& name) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/smaps");
  int found = 0, locked = 0;
  bool is_one = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" rw-s ") != std::string::npos || line.find(" r--s ") != std::string::npos) {
      is_one = line.find(name) != std::string::npos;
      found += is_one ? 1 : 0;
    } else if (is_one && line.rfind("VmFlags:", 0) == 0) {
      locked += line.find(" lo ") != std::string::npos ? 1 : 0;
      is_one = false;
    }
  }
  return {found, locked};
}

/// All that is there of a device and one connection, with the traffic below: the queues' memory, a
/// stream ring, the program's own 2 MiB, and this program.
constexpr long kLittleKib = 100'000;

// mlockall(2), mlock2(2): real-time and storage programs lock what they have and will have.
TEST_P(LockingAll, CostsSomeMiBAndWhatIsUsedIsLocked) {
  if (!can_be("lock everything")) GTEST_SKIP() << "locking all memory is not allowed here";
  Pair pair = with("lock everything");
  expect_all_traffic(pair);
  const pid_t there = pair.b.child().pid();
  EXPECT_LT(resident_kib(there), kLittleKib);
  // Its own, and ours.
  EXPECT_EQ(locked_maps(there, "verbatim-segment"), std::pair(2, 2));
  EXPECT_EQ(locked_maps(there, "verbatim-doorbells"), std::pair(2, 2));
}

TEST_P(LockingAll, WithinALimitUsesUpLittleOfIt) {
  constexpr const char* kWithin = "lock future 8388608";
  if (!can_be(kWithin)) GTEST_SKIP() << "the hard limit is below 8 MiB";
  Pair pair = with(kWithin);
  expect_all_traffic(pair);
  EXPECT_LT(resident_kib(pair.b.child().pid()), kLittleKib);
}

VBT_ROLE(mounter) { return 0; }

/// Whether a child may have a file system of its own.
bool can_mount() {
  Child child("mounter", {{kCondition, "mount empty /tmp"}});
  return child.wait().exit_status == 0;
}

TEST(BiasedLock, IsTakenFromItsOwnerAlsoWhereMembarrierCameToBeDenied) {
  if (!register_for_membarrier()) GTEST_SKIP() << "membarrier is refused here";
  BiasedLock lock;
  const auto visit = [&] { const LockGuard<BiasedLock> guard(lock); };
  while (!lock.is_owned()) visit();
  std::thread([&] {
    setenv(kCondition, "deny membarrier", 1);
    apply_condition();  // to this thread alone
    unsetenv(kCondition);
    const LockGuard<BiasedLock> guard(lock);
    EXPECT_FALSE(lock.is_owned());
  }).join();
  for (std::uint32_t i = 0; i < 2 * BiasedLock::kStreak; ++i) visit();
  EXPECT_FALSE(lock.is_owned()) << "who cannot be fenced must not own";
  EXPECT_TRUE(register_for_membarrier());
}

class Kept : public ::testing::Test {
 protected:
  /// What a child's opening of the device answers; complaints with these words are expected, and
  /// counted.
  struct Answer {
    int error;
    unsigned told;
  };
  static Answer opens(const std::map<std::string, std::string>& environment,
                      const char* complaint) {
    const AllowedLog announced(complaint);
    const std::size_t told_before = LogWatch::instance()->complaints().size();
    Child child("opener", environment);
    Answer answer{child.control().receive_value<int>(), 0};
    EXPECT_EQ(child.wait().exit_status, 0);
    const std::vector<std::string> lines = LogWatch::instance()->complaints();
    for (std::size_t i = told_before; i < lines.size(); ++i)
      answer.told += lines[i].find(complaint) != std::string::npos ? 1 : 0;
    return answer;
  }
  /// The child's opening fails, and its one complaint names cause and cure.
  static void expect_refusal(const std::map<std::string, std::string>& environment,
                             const char* complaint) {
    const Answer answer = opens(environment, complaint);
    EXPECT_GT(answer.error, 0);
    EXPECT_EQ(answer.told, 1u) << "of lines with '" << complaint << "'";
  }
};

VBT_ROLE(opener) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  int error = 0;
  if (list == nullptr || count == 0) {
    error = errno;
  } else {
    errno = 0;
    ibv_context* context = ibv_open_device(list[0]);
    error = context == nullptr ? errno : 0;
    if (context != nullptr) ibv_close_device(context);
    ibv_free_device_list(list);
  }
  control.send_value(error);
  return 0;
}

TEST_F(Kept, FromMakingMemfdsItSaysSo) {
  expect_refusal({{kCondition, "deny memfd_create"}}, "memfd_create");
}
TEST_F(Kept, FromAFolderToMeetInItSaysSo) {
  expect_refusal({{"VERBATIM_FABRIC", "/proc/self/no-such-folder"}}, "/proc/self/no-such-folder");
}
TEST_F(Kept, FromWritingToTheFolderItSaysSo) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  expect_refusal({{kCondition, "mount readonly /mnt"}, {"VERBATIM_FABRIC", "/mnt/fabric"}},
                 "/mnt/fabric: it cannot be made: Read-only");
}
TEST_F(Kept, FromRoomInTheFolderItSaysSo) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  expect_refusal({{kCondition, "mount full /mnt"}, {"VERBATIM_FABRIC", "/mnt/fabric"}},
                 "/mnt/fabric: it cannot be made: No space");
}
TEST_F(Kept, FromAnyFolderNamedInItsEnvironmentItMeetsInTmp) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  Child child("opener",
              {{kCondition, "mount empty /tmp"}, {"VERBATIM_FABRIC", ""}, {"XDG_RUNTIME_DIR", ""}});
  EXPECT_EQ(child.control().receive_value<int>(), 0);
  EXPECT_EQ(child.wait().exit_status, 0);
}
TEST_F(Kept, FromOpeningFilesItSaysSo) {
  // Four it has from the start; each of the others is once the one that is missing.
  Answer answer{-1, 0};
  for (int most = 4; answer.error != 0; ++most) {
    SCOPED_TRACE(most);
    ASSERT_LT(most, 32);
    answer = opens({{kCondition, "limit nofile " + std::to_string(most)}}, "ulimit -n");
    EXPECT_EQ(answer.told, answer.error == 0 ? 0u : 1u);
  }
}

}  // namespace
}  // namespace verbatim::harness
