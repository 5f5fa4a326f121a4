// SPDX-License-Identifier: BSD-2-Clause
// What taking a pool's buffer and giving it back really executes: from the thread's own cache
// nothing that other threads hear of; when it has to be filled or emptied, locks of memory, and
// never the kernel.
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <verbatim/memory.h>

#include <array>
#include <iostream>
#include <string>
#include <string_view>

#include "perf/codegen/trace.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint32_t kAtOnce = 200;

// In this order: see the names below.
int run_traced() {
  vbt_pool_attr attr{};
  attr.buffer_size = 100;
  attr.count = 4000;
  vbt_pool* const pool = vbt_create_pool(&attr, sizeof attr, nullptr, 0);
  if (pool == nullptr) return 1;
  static std::array<void*, kAtOnce> taken;
  void* buffer = vbt_pool_alloc(pool);
  int error = vbt_pool_free(pool, buffer);
  be_traced();
  traced([&] { buffer = vbt_pool_alloc(pool); });
  traced([&] { error |= vbt_pool_free(pool, buffer); });
  traced([&] {
    for (void*& each : taken) each = vbt_pool_alloc(pool);
  });
  traced([&] {
    for (void* const each : taken) error |= vbt_pool_free(pool, each);
  });
  for (void* const each : taken) error |= each == nullptr;
  return error != 0 ? 2 : vbt_destroy_pool(pool);
}

struct Step {
  const char* name;
  std::uint32_t most_instructions;
  std::uint32_t most_locked;  // one for each batch of 32
  std::uint32_t calls;        // of the library's functions
};
constexpr Step kSteps[] = {{"vbt_pool_alloc", 45, 0, 1},
                           {"vbt_pool_free", 66, 0, 1},
                           {"vbt_pool_alloc, 200 times", 55 * kAtOnce, 8, kAtOnce},
                           {"vbt_pool_free, 200 times", 75 * kAtOnce, 8, kAtOnce}};

TEST(PoolPath, LeavesOtherThreadsAndTheKernelAlone) {
  const long offered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (offered <= 0 || (offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0)
    GTEST_SKIP() << "membarrier is refused here: no lock becomes a thread's own";
  const TraceResult result = trace_program({own_path(), "--traced"});
  if (!result.refusal.empty()) GTEST_SKIP() << result.refusal;
  ASSERT_EQ(result.traces.size(), std::size(kSteps));
  for (std::size_t i = 0; i < result.traces.size(); ++i) {
    const Trace& trace = result.traces[i];
    const Step& step = kSteps[i];
    std::cout << step.name << ": " << trace.instructions << " instructions, " << trace.locked
              << " locked\n";
    EXPECT_EQ(trace.system_calls, 0u) << step.name;
#ifdef __OPTIMIZE__
    if (step.calls == 1) {
      EXPECT_EQ(trace.direct_calls, 1u) << step.name;
      EXPECT_EQ(trace.indirect_jumps + trace.indirect_calls, 0u) << step.name;
    }
    EXPECT_LE(trace.instructions, step.most_instructions) << step.name;
    EXPECT_LE(trace.locked, step.most_locked) << step.name;
#endif
  }
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--traced") return verbatim::perf::run_traced();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
