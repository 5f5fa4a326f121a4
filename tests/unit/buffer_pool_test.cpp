// SPDX-License-Identifier: BSD-2-Clause
// vbt_pool: so many buffers and no more, whoever takes and returns them. Over a witness, since the
// rules are the runtime's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/valgrind.h>
#include <verbatim/memory.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/memory/buffer_pool_fast.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/pools.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = 1024 * 1024;

TEST_F(Pool, HasAsManyBuffersAsWereAskedForAndEachToItself) {
  for (const std::size_t size : {1, 8, 64, 100, 2000, 4097, 70'000}) {
    for (const std::size_t count : {1, 2, 33, 500}) {
      vbt_pool* const pool = make_pool(size, count);
      ASSERT_NE(pool, nullptr);
      const vbt_pool_facts facts = facts_of(pool);
      EXPECT_EQ(facts.count, count);
      EXPECT_EQ(facts.size, facts.stride * count);
      EXPECT_GE(facts.stride, size);
      EXPECT_LT(facts.stride, size + 64);
      EXPECT_EQ(facts.mr, nullptr);
      for (int round = 0; round < 2; ++round) {
        std::vector<unsigned char*> taken = take_all(pool);
        ASSERT_EQ(taken.size(), count);
        EXPECT_EQ(facts_of(pool).out, count);
        std::sort(taken.begin(), taken.end());
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_EQ(taken[i], static_cast<unsigned char*>(facts.memory) + i * facts.stride);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken[i]) % 64, 0u);
          std::memset(taken[i], round, size);
        }
        give_all(pool, taken);
        EXPECT_EQ(facts_of(pool).out, 0u);
      }
      EXPECT_EQ(vbt_destroy_pool(pool), 0);
    }
  }
}

TEST_F(Pool, IsARegionOfItsDomainAndMayBeOneOfOthers) {
  vbt_pool* const pool = make_pool(256, 100, pd);
  ASSERT_NE(pool, nullptr);
  const vbt_pool_facts facts = facts_of(pool);
  ASSERT_NE(facts.mr, nullptr);
  EXPECT_EQ(facts.mr->pd, pd);
  EXPECT_EQ(facts.mr->addr, facts.memory);
  EXPECT_EQ(facts.mr->length, facts.size);
  const CapturedStderr captured;
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  ibv_pd* const other = ibv_alloc_pd(context);
  ibv_mr* const again = ibv_reg_mr(other, facts.memory, facts.size, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(vbt_destroy_pool(pool), EBUSY);
  EXPECT_THAT(captured.text(), HasSubstr("1: memory regions"));
  EXPECT_EQ(take_all(pool).size(), 100u);  // (as if nothing had been tried)
  give_all(pool, {});
  EXPECT_EQ(ibv_dereg_mr(again), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  EXPECT_EQ(vbt_destroy_pool(pool), EBUSY);
  EXPECT_THAT(captured.text(), HasSubstr("100: buffers"));
  for (std::size_t i = 0; i < facts.count; ++i)
    EXPECT_EQ(vbt_pool_free(pool, static_cast<char*>(facts.memory) + i * facts.stride), 0);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

TEST_F(Pool, LiesWhereMemoryIsAskedFor) {
  vbt_alloc_attr memory{};
  memory.alignment = 2 * kMiB;
  memory.flags = VBT_ALLOC_SHARED;
  vbt_pool_attr attr{};
  attr.buffer_size = 1000;
  attr.alignment = 512;
  attr.count = 3000;
  attr.memory = &memory;
  attr.memory_size = sizeof memory;
  vbt_alloc_facts got;
  vbt_pool* const pool = vbt_create_pool(&attr, sizeof attr, &got, sizeof got);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(got.shared, 1u);
  const vbt_pool_facts facts = facts_of(pool);
  EXPECT_EQ(facts.stride, 1024u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(facts.memory) % memory.alignment, 0u);
  EXPECT_GE(got.size, facts.size);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

TEST_F(Pool, WhatIsNoBufferThatIsOutIsRefusedWithALine) {
  vbt_pool* const pool = make_pool(100, 20);
  ASSERT_NE(pool, nullptr);
  auto* const buffer = static_cast<unsigned char*>(vbt_pool_alloc(pool));
  auto* const first = static_cast<unsigned char*>(facts_of(pool).memory);
  const auto refused = [&](void* address, const char* word) {
    const CapturedStderr captured;
    EXPECT_EQ(vbt_pool_free(pool, address), EINVAL);
    EXPECT_THAT(captured.text(), HasSubstr(word));
    EXPECT_EQ(captured.lines(), 1);
  };
  int foreign = 0;
  refused(&foreign, "none of this pool");
  refused(first - 128, "none of this pool");
  refused(first + 20 * 128, "none of this pool");
  refused(buffer + 1, "inside");
  refused(buffer + 64, "inside");
  EXPECT_EQ(vbt_pool_free(pool, nullptr), 0);
  EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
  refused(buffer, "given back before");
  EXPECT_EQ(take_all(pool).size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(vbt_pool_free(pool, first + i * 128), 0);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

TEST_F(Pool, WhatCannotBeIsRefusedWithALine) {
  vbt_alloc_attr memory{};
  struct {
    vbt_pool_attr known{};
    std::uint64_t later = 0;
  } good;
  good.known.buffer_size = 64;
  good.known.count = 10;
  good.known.memory = &memory;
  good.known.memory_size = sizeof memory;
  const auto refused = [&](int error, const char* word, auto&& spoil) {
    auto attr = good;
    memory = {};
    spoil(attr);
    const CapturedStderr captured;
    errno = 0;
    EXPECT_EQ(vbt_create_pool(&attr.known, sizeof attr, nullptr, 0), nullptr) << word;
    EXPECT_EQ(errno, error) << word;
    EXPECT_THAT(captured.text(), HasSubstr(word));
    EXPECT_EQ(captured.lines(), 1);
  };
  refused(EINVAL, "0 bytes", [](auto& attr) { attr.known.buffer_size = 0; });
  refused(EINVAL, "1 GiB", [](auto& attr) { attr.known.buffer_size = SIZE_MAX; });
  refused(EINVAL, "no buffers", [](auto& attr) { attr.known.count = 0; });
  refused(EINVAL, "2^31", [](auto& attr) { attr.known.count = std::size_t{1} << 31; });
  refused(EINVAL, "alignment", [](auto& attr) { attr.known.alignment = 24; });
  refused(EINVAL, "alignment", [](auto& attr) { attr.known.alignment = 4; });
  refused(EINVAL, "flags", [](auto& attr) { attr.known.flags = 1; });
  refused(EINVAL, "does not know", [](auto& attr) { attr.later = 1; });
  refused(EINVAL, "does not know", [](auto& attr) { attr.known.memory_size = 3; });
  refused(EINVAL, "the pool knows", [&](auto&) { memory.size = 640; });
  refused(EINVAL, "node 1023", [&](auto&) {
    memory.where = VBT_WHERE_NODE;
    memory.node = 1023;
  });
  refused(ENOMEM, "bytes", [](auto& attr) {
    attr.known.buffer_size = std::size_t{1} << 30;
    attr.known.count = (std::size_t{1} << 31) - 1;
  });
  const CapturedStderr captured;
  EXPECT_EQ(vbt_create_pool(nullptr, 0, nullptr, 0), nullptr);
  EXPECT_EQ(vbt_destroy_pool(nullptr), 0);
  EXPECT_EQ(vbt_destroy_pool(reinterpret_cast<vbt_pool*>(&good)), EINVAL);
  vbt_pool* const pool = make_pool(64, 1);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
  EXPECT_EQ(vbt_destroy_pool(pool), EINVAL);
}

volatile sig_atomic_t calls_trapped = 0;

/// From here on each system call of this thread but those that end it is counted, and not made.
bool trap_system_calls() {
  struct sigaction count {};
  count.sa_handler = [](int) { calls_trapped = calls_trapped + 1; };
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return sigaction(SIGSYS, &count, nullptr) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(Pool, InTheSteadyStateTheKernelIsNotEntered) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "sanitizers make system calls of their own";
#endif
  if (RUNNING_ON_VALGRIND != 0) GTEST_SKIP() << "valgrind makes system calls of its own";
  constexpr std::size_t kCount = 1000;
  vbt_pool* const pool = make_pool(256, kCount);
  ASSERT_NE(pool, nullptr);
  bool possible = false;
  int control = 0;
  int counted = 0;
  std::size_t misses = 0;
  std::thread([&] {
    void* buffers[kCount];
    // More than a thread keeps, and few, to and fro.
    const auto rounds = [&](unsigned count) {
      for (unsigned round = 0; round < count; ++round) {
        const std::size_t most = round % 2 == 0 ? kCount : 3;
        for (std::size_t i = 0; i < most; ++i)
          misses += (buffers[i] = vbt_pool_alloc(pool)) == nullptr ? 1 : 0;
        for (std::size_t i = 0; i < most; ++i) misses += vbt_pool_free(pool, buffers[i]) != 0;
      }
    };
    rounds(1);
    possible = trap_system_calls();
    if (!possible) return;
    rounds(20);
    counted = calls_trapped;
    (void)syscall(SYS_getppid);
    control = calls_trapped - counted;
  }).join();
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
  if (!possible) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(misses, 0u);
  EXPECT_EQ(counted, 0);
  EXPECT_EQ(control, 1) << "a system call is seen";
}

TEST_F(Pool, OfADeviceThatWasClosedBeforeItIsDestroyedAllTheSame) {
  vbt_pool* const pool = make_pool(64, 4, pd);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(ibv_close_device(context), 0);
  context = nullptr;
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

TEST_F(Pool, IsTheParentsAfterAFork) {
  vbt_pool* const pool = make_pool(64, 100);
  ASSERT_NE(pool, nullptr);
  void* const buffer = vbt_pool_alloc(pool);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    errno = 0;
    const bool refused = vbt_pool_alloc(pool) == nullptr && errno == EPERM &&
                         vbt_pool_free(pool, buffer) == EPERM && vbt_destroy_pool(pool) == EPERM;
    vbt_pool* const own = make_pool(64, 100);
    const bool works = own != nullptr && vbt_pool_free(own, vbt_pool_alloc(own)) == 0 &&
                       vbt_destroy_pool(own) == 0;
    _exit(refused && works ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
  const std::vector<unsigned char*> taken = take_all(pool);
  EXPECT_EQ(taken.size(), 100u);
  give_all(pool, taken);
  EXPECT_EQ(vbt_destroy_pool(pool), 0);
}

// Over addresses that nobody has: a pool touches no buffer.
TEST(BufferPool, FindsTheNumberOfABufferOfAnySize) {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 40;
  for (const std::uint64_t stride : {8ull, 24ull, 4096ull, 4104ull, (1ull << 30) - 8, 1ull << 30}) {
    constexpr std::uint32_t kCount = 65'535;
    BufferPool pool;
    ASSERT_EQ(pool.create(reinterpret_cast<unsigned char*>(kFirst), {stride, kCount}, {}), 0);
    std::vector<void*> taken;
    while (void* const buffer = pool.alloc()) taken.push_back(buffer);
    ASSERT_EQ(taken.size(), kCount);
    const CapturedStderr captured;
    for (void* const buffer : taken) {
      const auto number = (reinterpret_cast<std::uintptr_t>(buffer) - kFirst) / stride;
      if (number % 1000 == 0 || number + 1 == kCount) {
        ASSERT_EQ(pool.free(static_cast<char*>(buffer) + stride - 1), EINVAL);
        ASSERT_EQ(pool.free(static_cast<char*>(buffer) + 1), EINVAL);
      }
      ASSERT_EQ(pool.free(buffer), 0);
    }
    ASSERT_EQ(BufferPool::unlist(&pool), 0);
  }
}

}  // namespace
}  // namespace verbatim::unit
