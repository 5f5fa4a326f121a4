// SPDX-License-Identifier: BSD-2-Clause
// vbt_alloc and vbt_free: what is asked for is got or told, and what is registered is kept. Over a
// witness, since the rules are the runtime's; where pages lie is asked of the kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <verbatim/memory.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

unsigned char* allocate(const vbt_alloc_attr& attr, vbt_alloc_facts& facts) {
  return static_cast<unsigned char*>(vbt_alloc(&attr, sizeof attr, &facts, sizeof facts));
}

/// EINVAL or ENOMEM, and one line that says why.
void expect_refused(const vbt_alloc_attr& attr, int error, const char* word) {
  vbt_alloc_facts facts;
  const CapturedStderr captured;
  errno = 0;
  EXPECT_EQ(allocate(attr, facts), nullptr) << word;
  EXPECT_EQ(errno, error) << word;
  EXPECT_THAT(captured.text(), HasSubstr(word));
  EXPECT_EQ(captured.lines(), 1);
}

void expect_not_ours(void* address) {
  const CapturedStderr captured;
  EXPECT_EQ(vbt_free(address), EINVAL);
  EXPECT_THAT(captured.text(), HasSubstr("vbt_free"));
  EXPECT_EQ(captured.lines(), 1);
}

/// The kernel's node of the page, or a negative errno.
int node_of(const void* address) {
  const void* page = address;
  int status = -ENOENT;
  if (syscall(SYS_move_pages, 0, 1ul, &page, nullptr, &status, 0) != 0) return -errno;
  return status;
}

/// Of /proc/self/status, in KiB.
unsigned long locked_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    unsigned long value = 0;
    if (word == "VmLck:" && status >> value) return value;
  }
  return 0;
}

struct Kind {
  const char* name;
  std::uint32_t flags;
  std::size_t size;
};

class PlacedMemory : public OpenedDevice, public ::testing::WithParamInterface<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kind, PlacedMemory,
                         ::testing::Values(Kind{"PrivateSmall", 0, 5000},
                                           Kind{"PrivateLarge", 0, 5 * kMiB + 1},
                                           Kind{"SharedSmall", VBT_ALLOC_SHARED, 5000},
                                           Kind{"SharedLarge", VBT_ALLOC_SHARED, 5 * kMiB + 1}),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(PlacedMemory, IsZeroedAlignedAndLiesWhereItSays) {
  for (const std::uint32_t where :
       {VBT_WHERE_LOCAL, VBT_WHERE_DEVICE, VBT_WHERE_INTERLEAVED, VBT_WHERE_SPREAD}) {
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{8}, 64 * kKiB, 4 * kMiB}) {
      vbt_alloc_attr attr{};
      attr.size = GetParam().size;
      attr.alignment = alignment;
      attr.where = where;
      attr.device = context;
      attr.flags = GetParam().flags;
      vbt_alloc_facts facts;
      unsigned char* const memory = allocate(attr, facts);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (alignment < 4096 ? 4096 : alignment),
                0u);
      EXPECT_GE(facts.size, attr.size);
      EXPECT_EQ(facts.page_size, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
      EXPECT_EQ(facts.shared != 0, (attr.flags & VBT_ALLOC_SHARED) != 0);
      EXPECT_EQ(facts.locked, 0u);
      EXPECT_EQ(std::count(memory, memory + facts.size, 0), static_cast<long>(facts.size));
      if (facts.node < VBT_NODE_SEVERAL) {
        EXPECT_EQ(static_cast<int>(facts.node), node_of(memory));
      }
      std::memset(memory, 0xa5, facts.size);
      if (node_of(memory) >= 0) {
        EXPECT_NE(facts.node, VBT_NODE_UNKNOWN) << "the kernel does tell";
      }
      EXPECT_EQ(vbt_free(memory), 0);
    }
  }
}

TEST_P(PlacedMemory, IsKeptWhileAnyRegionOfAnyDomainCoversIt) {
  vbt_alloc_attr attr{};
  attr.size = GetParam().size;
  attr.flags = GetParam().flags;
  vbt_alloc_facts facts;
  unsigned char* const memory = allocate(attr, facts);
  ASSERT_NE(memory, nullptr);
  ibv_pd* const other_pd = ibv_alloc_pd(context);
  std::vector<ibv_mr*> regions = {
      ibv_reg_mr(pd, memory, attr.size, IBV_ACCESS_LOCAL_WRITE),
      ibv_reg_mr(other_pd, memory + 4096, 1, IBV_ACCESS_LOCAL_WRITE),
      ibv_reg_mr(pd, memory + attr.size - 1, 1, IBV_ACCESS_LOCAL_WRITE),
  };
  for (ibv_mr* const region : regions) {
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(vbt_free(memory), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
  }
  EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
  EXPECT_EQ(vbt_free(memory), 0);
}

TEST_P(PlacedMemory, IsFreedOnceAndByItsFirstByteOnly) {
  vbt_alloc_attr attr{};
  attr.size = GetParam().size;
  attr.flags = GetParam().flags;
  vbt_alloc_facts facts;
  unsigned char* const memory = allocate(attr, facts);
  ASSERT_NE(memory, nullptr);
  expect_not_ours(memory + 1);
  expect_not_ours(memory + 4096);
  EXPECT_EQ(vbt_free(memory), 0);
  expect_not_ours(memory);
  EXPECT_EQ(vbt_free(nullptr), 0);
}

using Alloc = OpenedDevice;

TEST_F(Alloc, AForeignPointerIsRefused) {
  int on_the_stack = 0;
  expect_not_ours(&on_the_stack);
  const std::vector<char> on_the_heap(1 << 20);
  expect_not_ours(const_cast<char*>(on_the_heap.data()));
}

TEST_F(Alloc, EitherFunctionFreesWhatTheOtherAllocatorShared) {
  vbt_alloc_attr attr{};
  attr.size = 2 * kMiB;
  attr.flags = VBT_ALLOC_SHARED;
  vbt_alloc_facts facts;
  void* const placed = allocate(attr, facts);
  EXPECT_EQ(vbt_free_shared(placed), 0);
  EXPECT_EQ(vbt_free_shared(placed), EINVAL);
  EXPECT_EQ(vbt_free(vbt_alloc_shared(5)), 0);
}

TEST_F(Alloc, ARegionThatMovesLetsGo) {
  vbt_alloc_attr attr{};
  attr.size = 4096;
  vbt_alloc_facts facts;
  void* const from = allocate(attr, facts);
  void* const to = allocate(attr, facts);
  ibv_mr* const mr = ibv_reg_mr(pd, from, 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, 4096, 0) == 0) {
    EXPECT_EQ(vbt_free(from), 0);
    EXPECT_EQ(vbt_free(to), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  } else {
    EXPECT_EQ(vbt_free(from), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(vbt_free(from), 0);
  }
  EXPECT_EQ(vbt_free(to), 0);
}

TEST_F(Alloc, ARegionHoldsNothingThatCameAfterIt) {
  // A region may cover addresses that nobody uses yet, and outlive a block there.
  vbt_alloc_attr attr{};
  attr.size = 4096;
  vbt_alloc_facts facts;
  auto* const first = allocate(attr, facts);
  ibv_mr* const wide = ibv_reg_mr(pd, first - 64 * kMiB, 128 * kMiB, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(wide, nullptr);
  auto* const second = allocate(attr, facts);
  EXPECT_EQ(vbt_free(first), EBUSY);
  ibv_mr* const exact = ibv_reg_mr(pd, second, 4096, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(ibv_dereg_mr(wide), 0);
  EXPECT_EQ(vbt_free(first), 0);
  EXPECT_EQ(vbt_free(second), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(exact), 0);
  EXPECT_EQ(vbt_free(second), 0);
}

TEST_F(Alloc, WhatCannotBeIsRefusedWithALine) {
  vbt_alloc_attr attr{};
  expect_refused(attr, EINVAL, "0 bytes");
  attr.size = std::size_t{1} << 63;
  expect_refused(attr, ENOMEM, "9223372036854775808 bytes");
  attr.size = 4096;
  attr.where = VBT_WHERE_NODE;
  attr.node = 1023;
  expect_refused(attr, EINVAL, "node 1023");
  attr.node = 1u << 31;
  expect_refused(attr, EINVAL, "node 2147483648");
  attr.where = VBT_WHERE_DEVICE;
  expect_refused(attr, EINVAL, "device");
  attr.where = 77;
  expect_refused(attr, EINVAL, "place");
  attr.where = VBT_WHERE_LOCAL;
  attr.alignment = 3;
  expect_refused(attr, EINVAL, "alignment");
  attr.alignment = 0;
  attr.page_size = 12345;
  expect_refused(attr, EINVAL, "2 MiB");
  attr.page_size = 0;
  attr.flags = 1u << 30;
  expect_refused(attr, EINVAL, "flags");
  attr.flags = VBT_ALLOC_LATER | VBT_ALLOC_LOCKED;
  expect_refused(attr, EINVAL, "later");
}

TEST_F(Alloc, AStructureOfANewerProgramIsTakenWhereItSaysNothingNew) {
  struct {
    vbt_alloc_attr known;
    std::uint64_t later;
  } newer{};
  newer.known.size = 100;
  void* const memory = vbt_alloc(&newer.known, sizeof newer, nullptr, 0);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(vbt_free(memory), 0);
  newer.later = 1;
  const CapturedStderr captured;
  EXPECT_EQ(vbt_alloc(&newer.known, sizeof newer, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(vbt_alloc(nullptr, 0, nullptr, 0), nullptr);
  // An older one has only the size.
  void* const old = vbt_alloc(&newer.known, sizeof newer.known.size, nullptr, 0);
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(vbt_free(old), 0);
}

TEST_F(Alloc, HugePagesThatAreNotThereAreToldOrRefused) {
  for (const std::uint32_t flags : {0u, unsigned{VBT_ALLOC_SHARED}}) {
    for (const std::size_t page : {2 * kMiB, kGiB}) {
      vbt_alloc_attr attr{};
      attr.size = 8 * kMiB;
      attr.page_size = page;
      attr.flags = flags;
      vbt_alloc_facts facts;
      unsigned char* const memory = allocate(attr, facts);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(facts.page_size < page, (facts.fallbacks & VBT_FALLBACK_PAGES) != 0);
      EXPECT_EQ(facts.fallbacks != 0, facts.reason[0] != '\0');
      std::memset(memory, 1, attr.size);
      EXPECT_EQ(vbt_free(memory), 0);
      if ((facts.fallbacks & VBT_FALLBACK_PAGES) == 0) continue;
      attr.flags |= VBT_ALLOC_EXACT;
      expect_refused(attr, ENOMEM, "pages");
    }
  }
}

/// From here on this thread's kernel does not know MADV_POPULATE_WRITE, as before Linux 5.14.
bool forget_populate() {
  constexpr unsigned kPopulateWrite = 23;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPopulateWrite, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(Alloc, AnOlderKernelGivesItsPagesToo) {
  bool possible = false;
  std::thread([&] {
    possible = forget_populate();
    for (const std::size_t page : {std::size_t{0}, 2 * kMiB}) {
      vbt_alloc_attr attr{};
      attr.size = 4 * kMiB;
      attr.page_size = page;
      vbt_alloc_facts facts;
      unsigned char* const memory = allocate(attr, facts);
      ASSERT_NE(memory, nullptr);
      EXPECT_NE(node_of(memory), -ENOENT);
      EXPECT_NE(node_of(memory + attr.size - 1), -ENOENT);
      EXPECT_EQ(vbt_free(memory), 0);
    }
  }).join();
  if (!possible) GTEST_SKIP() << "system calls cannot be filtered here";
}

/// KiB of the mapping at `address` that are huge pages of a file in memory.
unsigned long huge_file_kib(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    unsigned long kib = 0;
    const auto at = reinterpret_cast<unsigned long>(address);
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    if (inside && std::sscanf(line.c_str(), "ShmemPmdMapped: %lu", &kib) == 1) return kib;
  }
  return 0;
}

TEST_F(Alloc, SharedMemoryHasHugePagesWhereTheyAreGivenOnAdvice) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::string modes((std::istreambuf_iterator<char>(file)), {});
  vbt_alloc_attr attr{};
  attr.size = 8 * kMiB;
  attr.flags = VBT_ALLOC_SHARED;
  vbt_alloc_facts facts;
  unsigned char* const memory = allocate(attr, facts);
  ASSERT_NE(memory, nullptr);
  const unsigned long huge = huge_file_kib(memory);
  EXPECT_EQ(vbt_free(memory), 0);
  if (modes.find("[advise]") == std::string::npos)
    GTEST_SKIP() << "this system says " << (modes.empty() ? "nothing" : modes);
  EXPECT_EQ(huge, attr.size / kKiB);
}

TEST_F(Alloc, UntouchedMemoryHasNoPagesYet) {
  vbt_alloc_attr attr{};
  attr.size = kMiB;
  attr.flags = VBT_ALLOC_LATER;
  vbt_alloc_facts facts;
  unsigned char* const memory = allocate(attr, facts);
  ASSERT_NE(memory, nullptr);
  const int before = node_of(memory);
  std::thread([&] { memory[0] = 1; }).join();
  const int after = node_of(memory);
  if (after >= 0) {
    EXPECT_LT(before, 0);
    if (facts.node < VBT_NODE_SEVERAL) {
      EXPECT_EQ(static_cast<int>(facts.node), after);
    }
  }
  EXPECT_EQ(vbt_free(memory), 0);
}

TEST_F(Alloc, LockedMemoryCountsUntilItIsFreed) {
  for (const std::uint32_t flags : {0u, unsigned{VBT_ALLOC_SHARED}}) {
    const unsigned long before = locked_kib();
    vbt_alloc_attr attr{};
    attr.size = 16 * kKiB;
    attr.flags = flags | VBT_ALLOC_LOCKED;
    vbt_alloc_facts facts;
    void* const memory = allocate(attr, facts);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(facts.locked, 1u);
    const unsigned long locked = locked_kib();
    if (locked != before) {  // (an emulated process is told nothing, a sanitizer locks nothing)
      EXPECT_EQ(locked, before + facts.size / kKiB);
    }
    EXPECT_EQ(vbt_free(memory), 0);
    EXPECT_EQ(locked_kib(), before);
  }
}

TEST_F(Alloc, ALimitOfLockedMemoryIsExplainedAndNothingIsLost) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &old), 0);
  std::string refusal;
  int error = 0;
  const unsigned long before = locked_kib();
  const auto attempt = [&] {
    // Of this thread alone: whoever may lock without a limit is told nothing.
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    syscall(SYS_capset, &head, none);
    const rlimit low{64 * kKiB, old.rlim_max};
    setrlimit(RLIMIT_MEMLOCK, &low);
    vbt_alloc_attr attr{};
    attr.size = kMiB;
    attr.flags = VBT_ALLOC_LOCKED;
    vbt_alloc_facts facts;
    const CapturedStderr captured;
    errno = 0;
    void* const memory = allocate(attr, facts);
    error = memory == nullptr ? errno : 0;
    refusal = captured.text();
    EXPECT_EQ(vbt_free(memory), 0);
  };
  std::thread(attempt).join();
  EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &old), 0);
  if (error == 0) GTEST_SKIP() << "nothing is locked here (an emulated process, a sanitizer)";
  EXPECT_EQ(error, ENOMEM);
  EXPECT_THAT(refusal, HasSubstr("1024 KiB to lock, the limit is 64 KiB"));
  EXPECT_THAT(refusal, HasSubstr("ulimit -l"));
  EXPECT_EQ(locked_kib(), before);
}

TEST_F(Alloc, BlocksOfManyThreadsAreKeptApart) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t, this] {
      std::vector<unsigned char*> blocks;
      vbt_alloc_attr attr{};
      vbt_alloc_facts facts;
      for (unsigned i = 0; i < 40; ++i) {
        attr.size = 1 + 3000 * i;
        attr.flags = i % 2 != 0 ? unsigned{VBT_ALLOC_SHARED} : 0u;
        blocks.push_back(allocate(attr, facts));
        ASSERT_NE(blocks.back(), nullptr);
        std::memset(blocks.back(), static_cast<int>(t * 40 + i), attr.size);
      }
      for (unsigned i = 0; i < 40; ++i) {
        EXPECT_EQ(blocks[i][3000 * i], t * 40 + i);
        ibv_mr* const mr = ibv_reg_mr(pd, blocks[i], 1, IBV_ACCESS_LOCAL_WRITE);
        EXPECT_EQ(vbt_free(blocks[i]), EBUSY);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        EXPECT_EQ(vbt_free(blocks[i]), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace verbatim::unit
