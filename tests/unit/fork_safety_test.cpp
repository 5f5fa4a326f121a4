// SPDX-License-Identifier: BSD-2-Clause
// ibv_fork_init and regions of a device whose kernel does not copy pinned pages at a fork.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/memory.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/fork_guard.hpp"
#include "tests/support/fake_uverbs.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/netlink_script.hpp"

namespace verbatim::unit {
namespace {

/// Whether a child would have the page: asked of a child.
bool is_in_a_child(void* page, std::size_t bytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char there;
    ::_exit(::mincore(page, bytes, &there) == 0 ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status) == 1;
}

/// In a process of its own, since it stays so.
void expect_in_a_child(int (*run)()) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(run());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ForkSafety, ThatComesTooLateIsRefused) {
  expect_in_a_child([] {
    static char memory[64];
    ForkGuard::Range range;
    fork_safety::need();
    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED) return 1;
    if (fork_safety::hold(memory, sizeof memory, range) != 0 || range.begin != range.end) return 2;
    return ibv_fork_init() == EINVAL ? 0 : 3;
  });
}

/// What a kernel says of forks when its device is opened.
enum class Says { kCopies, kDoesNotCopy, kNothing };
/// Opens over it; how many lines that were.
long open_over(Says says) {
  constexpr unsigned kSystem = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
  netlink::Script script;
  const std::string copies =
      netlink::attribute(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, netlink::number(std::uint8_t{1}));
  script.answers = {netlink::message(kSystem, says == Says::kCopies ? copies : ""),
                    netlink::status(0)};
  const CapturedStderr said;
  uverbs::prepare_for_forks(says == Says::kNothing ? nullptr : &script);
  return said.lines();
}

TEST(ForkSafety, IsNoConcernWhereTheKernelCopies) {
  expect_in_a_child([] {
    ::setenv("RDMAV_FORK_SAFE", "1", 1);
    if (open_over(Says::kCopies) != 0) return 1;
    return ibv_is_fork_initialized() == IBV_FORK_UNNEEDED ? 0 : 2;
  });
}

TEST(ForkSafety, IsOnWhereTheKernelDoesNotCopyAndItIsAskedFor) {
  expect_in_a_child([] {
    ::setenv("IBV_FORK_SAFE", "1", 1);
    if (open_over(Says::kDoesNotCopy) != 0) return 1;
    return ibv_is_fork_initialized() == IBV_FORK_ENABLED ? 0 : 2;
  });
}

TEST(ForkSafety, ThatNobodyAsksForIsToldOf) {
  expect_in_a_child([] {
    ::unsetenv("RDMAV_FORK_SAFE");
    ::setenv("IBV_FORK_SAFE", "0", 1);
    if (open_over(Says::kDoesNotCopy) != 1) return 1;
    return ibv_is_fork_initialized() == IBV_FORK_DISABLED ? 0 : 2;
  });
}

// It may copy all the same: no line, and who asks for safety has it.
TEST(ForkSafety, OfAKernelThatSaysNothingIsNotToldOf) {
  expect_in_a_child([] {
    ::unsetenv("RDMAV_FORK_SAFE");
    if (open_over(Says::kNothing) != 0) return 1;
    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED) return 2;
    return ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_ENABLED ? 0 : 3;
  });
}

TEST(ForkSafety, KeepsRegionsFromChildrenWhileTheyLive) {
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
  fork_safety::need();
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
  EXPECT_EQ(ibv_fork_init(), 0);

  fake::Uverbs kernel(fake::Age::kMethods);
  Device device;
  uverbs::Context context(device, 14, kernel);
  Pd* pd = nullptr;
  ASSERT_EQ(uverbs::alloc_pd(context, &pd), 0);
  pd->plain.context = context.handle();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  // An emulator of processes may keep the advice to itself.
  ASSERT_EQ(::madvise(memory, page, MADV_DONTFORK), 0);
  const bool is_obeyed = !is_in_a_child(memory, page);
  ASSERT_EQ(::madvise(memory, page, MADV_DOFORK), 0);
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(uverbs::reg_mr(*pd, memory, 8, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  mr->plain.context = context.handle();
  EXPECT_EQ(is_in_a_child(memory, page), !is_obeyed);
  kernel.refusal = EBUSY;
  EXPECT_EQ(uverbs::dereg_mr(*mr), EBUSY);
  EXPECT_EQ(is_in_a_child(memory, page), !is_obeyed) << "the device has it still";
  verbatim::Mr* refused = nullptr;
  EXPECT_EQ(uverbs::reg_mr(*pd, memory, 8, 0, IBV_ACCESS_LOCAL_WRITE, &refused), EBUSY);
  kernel.refusal = 0;
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_TRUE(is_in_a_child(memory, page));
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
  ::munmap(memory, page);
}

/// One of the parent's threads is at the pages nearly all the time.
TEST(ForkSafety, AChildRegistersThoughAThreadOfItsParentDidWhenItForked) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  fork_safety::need();
  ASSERT_EQ(ibv_fork_init(), 0);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto hold_once = [&](std::size_t which) {
    ForkGuard::Range held;
    const int error =
        fork_safety::hold(static_cast<unsigned char*>(memory) + which * page, 8, held);
    if (error == 0) fork_safety::release(held);
    return error;
  };
  ASSERT_EQ(hold_once(1), 0);
  std::atomic<bool> stop{false};
  std::thread registers([&] {
    while (!stop.load()) EXPECT_EQ(hold_once(0), 0);
  });
  for (int i = 0; i < 20 && !HasFailure(); ++i)
    EXPECT_EQ(harness::run_in_child([&] { return hold_once(1); }), 0);
  stop.store(true);
  registers.join();
  ::munmap(memory, 2 * page);
}

}  // namespace
}  // namespace verbatim::unit
