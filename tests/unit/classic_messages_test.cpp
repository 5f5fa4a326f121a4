// SPDX-License-Identifier: BSD-2-Clause
// What people search for when verbs do not work: where libibverbs prints a line, this library
// prints one with the same words, what it is about, and the fix. (Those about the kernel's versions
// are in kernel_discovery_test.cpp.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "providers/uverbs/context.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/pinned_memory.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/provider_names.hpp"
#include "runtime/verbs/unclaimed_devices.hpp"
#include "tests/support/fake_uverbs.hpp"
#include "tests/support/limited_cgroup.hpp"
#include "tests/unit/captured_stderr.hpp"

namespace verbatim::unit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Variable {
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  const char* name_;
};

/// A memlock limit that counts, for root too: this thread has no CAP_IPC_LOCK meanwhile.
class MemlockLimit {
 public:
  explicit MemlockLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_MEMLOCK, &limit_);
    const rlimit low{bytes, limit_.rlim_max};
    ::setrlimit(RLIMIT_MEMLOCK, &low);
    ::syscall(SYS_capget, &head_, had_);
    __user_cap_data_struct less[2] = {had_[0], had_[1]};
    less[0].effective &= ~(1u << CAP_IPC_LOCK);
    ::syscall(SYS_capset, &head_, less);
  }
  ~MemlockLimit() {
    ::syscall(SYS_capset, &head_, had_);
    ::setrlimit(RLIMIT_MEMLOCK, &limit_);
  }

 private:
  rlimit limit_{};
  __user_cap_header_struct head_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct had_[2] = {};
};

/// Registers over a kernel that answers `error`.
class Registering : public ::testing::Test {
 protected:
  Registering() : kernel_(fake::Age::kMethods) {
    std::strcpy(device_.plain.name, "rxe0");
    context_ = std::make_unique<uverbs::Context>(device_, 14u, kernel_);
    pd_.plain.context = context_->handle();
    EXPECT_EQ(uverbs::start_context(*context_), 0);
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Registering() override { ::munmap(memory_, kBytes); }

  int reg(int error, void* addr, std::size_t length, unsigned access = IBV_ACCESS_LOCAL_WRITE) {
    kernel_.refusal = error;
    verbatim::Mr* mr = nullptr;
    const int result = uverbs::reg_mr(pd_, addr, length, 0, access, &mr);
    kernel_.refusal = 0;
    if (result == 0) {
      pinned_ = mr->pinned;
      mr->plain.context = context_->handle();
      EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
    }
    return result;
  }
  std::size_t pages_there() const {
    std::vector<unsigned char> there(kBytes / page_);
    EXPECT_EQ(::mincore(memory_, kBytes, there.data()), 0);
    return static_cast<std::size_t>(
        std::count_if(there.begin(), there.end(), [](unsigned char each) { return each & 1; }));
  }
  /// Emulators of another processor's programs say yes and do nothing.
  bool kernel_can_populate() const {
    return ::madvise(memory_, page_, 23 /* MADV_POPULATE_WRITE */) == 0 && pages_there() == 1;
  }

  static constexpr std::size_t kBytes = 1 << 20;
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  Device device_;
  fake::Uverbs kernel_;
  std::unique_ptr<uverbs::Context> context_;
  Pd pd_;
  void* memory_ = nullptr;
  std::uint64_t pinned_ = 0;
};

TEST_F(Registering, BeyondTheMemlockLimitTellsLimitNeedAndTheWaysToRaiseIt) {
  const MemlockLimit low(65536);
  const CapturedStderr said;
  EXPECT_EQ(reg(ENOMEM, memory_, kBytes), ENOMEM);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(),
              AllOf(HasSubstr("cannot register 1024 KiB"), HasSubstr("Cannot allocate memory"),
                    HasSubstr("memlock limit 64 KiB"), HasSubstr("RLIMIT_MEMLOCK"),
                    HasSubstr("0 KiB pinned already"), HasSubstr("1024 KiB needed"),
                    HasSubstr("ulimit -l")));
  EXPECT_THAT(said.text(), AllOf(HasSubstr("limits.conf"), HasSubstr("LimitMEMLOCK=infinity"),
                                 HasSubstr("--ulimit memlock=-1")));
  EXPECT_EQ(pages_there(), 0u) << "what is refused anyhow takes no memory";
}

TEST_F(Registering, BeyondALimitThatOnlyOtherDriversLiftIsBlamedOnIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs CAP_IPC_LOCK";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit low{65536, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
  const bool lifted = uverbs::read_pin_account().lifted;
  for (const bool heeds : {true, false}) {
    context_->heeds_ipc_lock = heeds;
    const CapturedStderr said;
    EXPECT_EQ(reg(ENOMEM, memory_, kBytes), ENOMEM);
    const std::string words = said.text();
    EXPECT_EQ(words.find("memlock limit 64 KiB") != std::string::npos, !heeds || !lifted) << words;
    EXPECT_EQ(words.find("this driver counts") != std::string::npos, !heeds && lifted) << words;
  }
  ::setrlimit(RLIMIT_MEMLOCK, &before);
}

TEST_F(Registering, WithinTheLimitIsNotBlamedOnIt) {
  const CapturedStderr said;
  EXPECT_EQ(reg(ENOMEM, memory_, page_), ENOMEM);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("Cannot allocate memory"), HasSubstr("or the device")));
  EXPECT_THAT(said.text(), Not(HasSubstr("ulimit")));
}

// The limit allows it, and the group that a container or a batch system made has less.
TEST_F(Registering, BeyondWhatTheCgroupHasLeftIsBlamedOnIt) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer's own memory does not fit into the group";
#endif
  constexpr std::uint64_t kMib = 1 << 20;
  const harness::LimitedCgroup cgroup(32 * kMib);
  if (!cgroup.made()) GTEST_SKIP() << "no memory cgroup may be made here";
  // Its pages are made, and so paid for, outside the group.
  void* const memory = ::mmap(nullptr, 64 * kMib, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const CapturedStderr said;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::ofstream(cgroup.folder() + "/cgroup.procs") << ::getpid();
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    const uverbs::PinAccount account = uverbs::read_pin_account();
    if (!account.lifted && account.limit < 64 * kMib) ::_exit(1);
    uverbs::Pinning(memory, 64 * kMib, 0).explain(ENOMEM, true);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::munmap(memory, 64 * kMib);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
    GTEST_SKIP() << "the memlock limit is what refuses here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("cannot register 65536 KiB"), HasSubstr("memory cgroup"),
                                 HasSubstr("--memory"), Not(HasSubstr("ulimit"))));
}

TEST_F(Registering, MakesThePagesBeforeTheKernelPinsThem) {
  if (!kernel_can_populate()) GTEST_SKIP() << "no MADV_POPULATE_WRITE (Linux 5.14)";
  const CapturedStderr said;
  // Refused for another reason, so that nobody but the library has touched them.
  EXPECT_EQ(reg(EBUSY, static_cast<char*>(memory_) + 100, kBytes / 2), EBUSY);
  EXPECT_EQ(pages_there(), kBytes / 2 / page_ + 1) << "the range begins and ends within a page";
  EXPECT_EQ(said.lines(), 0);
}

TEST_F(Registering, LeavesAFewPagesToTheKernel) {
  EXPECT_EQ(reg(EBUSY, memory_, 8 * page_), EBUSY);
  EXPECT_EQ(pages_there(), 0u);
}

TEST_F(Registering, OnDemandPinsNothing) {
  EXPECT_EQ(reg(0, memory_, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), 0);
  EXPECT_EQ(pinned_, 0u);
  EXPECT_EQ(pages_there(), 0u);
}

TEST_F(Registering, CountsWholePages) {
  EXPECT_EQ(reg(0, static_cast<char*>(memory_) + page_ - 1, 2), 0);
  EXPECT_EQ(pinned_, 2 * page_);
}

TEST_F(Registering, WhatIsNotMappedIsNoMatterOfLimits) {
  ASSERT_EQ(::mprotect(memory_, kBytes, PROT_READ), 0);
  const CapturedStderr said;
  EXPECT_EQ(reg(EFAULT, memory_, kBytes), EFAULT);
  char first[32];
  std::snprintf(first, sizeof first, "(Bad address): %p ", memory_);
  EXPECT_THAT(said.text(), AllOf(HasSubstr(first), HasSubstr("may only be read"),
                                 HasSubstr("IBV_ACCESS_LOCAL_WRITE")));
}

TEST(ClassicMessage, ALowMemlockLimitIsToldWhenAKernelDeviceIsOpened) {
  const CapturedStderr said;
  {
    const MemlockLimit enough(64 << 20);
    uverbs::warn_of_low_memlock("rxe0");
  }
  EXPECT_EQ(said.lines(), 0);
  const MemlockLimit low(32768);
  uverbs::warn_of_low_memlock("rxe0");
  uverbs::warn_of_low_memlock("rxe0");
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("RLIMIT_MEMLOCK is 32768 bytes"),
                                 HasSubstr("this will severely limit memory registrations"),
                                 HasSubstr("ulimit -l")));
}

TEST(ClassicMessage, ForkSafetyThatIsAskedForAndCannotBeHad) {
  {
    const CapturedStderr said;
    uverbs::tell_of_forks();
    EXPECT_THAT(said.text(),
                AllOf(HasSubstr("Linux 5.12"), Not(HasSubstr("fork()-safety requested"))));
  }
  {
    const Variable off("RDMAV_FORK_SAFE", "0");
    const CapturedStderr said;
    uverbs::tell_of_forks();
    EXPECT_THAT(said.text(), Not(HasSubstr("fork()-safety requested")));
  }
  for (const char* const name : {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE"}) {
    const Variable asked(name, "1");
    const CapturedStderr said;
    uverbs::tell_of_forks();
    EXPECT_THAT(said.text(), AllOf(HasSubstr("fork()-safety requested but init failed"),
                                   HasSubstr("fork before the first registration")));
  }
}

const ProviderTable kShm = [] {
  ProviderTable table{};
  table.name = "shm";
  return table;
}();
const ProviderTable kRxeTable = [] {
  ProviderTable table{};
  table.name = "rxe";
  return table;
}();
constexpr const ProviderTable* kBoth[] = {&kShm, &kRxeTable};

TEST(ClassicMessage, DriversThatAreNotLinkedAreNamed) {
  const Variable asked("RDMAV_DRIVERS", "rxe:/usr/lib/librxe-rdmav34.so;libshm:mlx5");
  const CapturedStderr said;
  check_asked_drivers(kBoth);
  check_asked_drivers(kBoth);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("couldn't load driver 'mlx5'"), HasSubstr("shm, rxe"),
                                 HasSubstr("RDMA_STATIC_PROVIDERS")));
}

TEST(ClassicMessage, ADeviceThatNoProviderDrivesIsNamed) {
  UnclaimedDevices unclaimed;
  unclaimed.saw("rxe0", "/sys/class/infiniband_verbs/uverbs0", true);
  unclaimed.saw("rxe0", "/sys/class/infiniband_verbs/uverbs0", false);
  {
    const CapturedStderr said;
    unclaimed.tell(kBoth);
    EXPECT_EQ(said.lines(), 0);
  }
  unclaimed.saw("mlx5_0", "/sys/class/infiniband_verbs/uverbs1", false);
  const Variable asked("IBV_SHOW_WARNINGS", "1");
  const CapturedStderr said;
  unclaimed.tell(kBoth);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("no userspace device-specific driver found for "
                                           "/sys/class/infiniband_verbs/uverbs1 (mlx5_0)"),
                                 HasSubstr("shm, rxe"), HasSubstr("rdma link add")));
}

TEST(ClassicMessage, NamesOfProvidersAreCutWhereTheyDoNotFit) {
  char text[12];
  print_provider_names(text, kBoth);
  EXPECT_STREQ(text, "...");
  char enough[64];
  print_provider_names(enough, {});
  EXPECT_STREQ(enough, "none");
}

TEST(ClassicMessage, ATreeOfDevicesThatIsNotThere) {
  const CapturedStderr said;
  uverbs::Found found;
  EXPECT_EQ(uverbs::find_by_sysfs({"/nonexistent/sys", "/nonexistent/dev"}, found), 0);
  EXPECT_THAT(said.text(),
              AllOf(HasSubstr("couldn't read uverbs ABI version from"), HasSubstr("SYSFS_PATH")));
}

}  // namespace
}  // namespace verbatim::unit
