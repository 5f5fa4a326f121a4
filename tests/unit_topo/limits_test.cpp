// SPDX-License-Identifier: BSD-2-Clause
// What of a machine this process may use, and the sets in which the kernel says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/topo/process_limits.hpp"
#include "tests/support/limited_cgroup.hpp"
#include "tests/unit_topo/made_machine.hpp"

namespace verbatim::topo {
namespace {

TEST(NumberSet, ReadsWhatTheKernelWrites) {
  NumberSet set;
  ASSERT_TRUE(set.parse("\t0-2,8,64-65\n"));
  EXPECT_EQ(set.count(), 6u);
  for (const std::uint32_t in : {0u, 1u, 2u, 8u, 64u, 65u}) EXPECT_TRUE(set.has(in)) << in;
  for (const std::uint32_t out : {3u, 7u, 9u, 63u, 66u, 8191u, 8192u, kNone})
    EXPECT_FALSE(set.has(out)) << out;
  EXPECT_EQ(set.next(3), 8u);
  EXPECT_EQ(set.next(9), 64u);
  EXPECT_EQ(set.next(66), NumberSet::kEnd);
  EXPECT_TRUE(set.parse("\n"));
  EXPECT_EQ(set.count(), 0u);
  EXPECT_TRUE(set.parse("8191"));
  EXPECT_TRUE(set.has(8191));
}

TEST(NumberSet, RefusesEverythingElse) {
  NumberSet set;
  for (const char* text : {"x", "1,", ",1", "3-1", "1-", "-1", "1--2", "1 2", "8192", "0-8192",
                           "99999999999999999999", "1,2x", "0x3"}) {
    set.add(5);
    EXPECT_FALSE(set.parse(text)) << text;
    EXPECT_EQ(set.count(), 0u) << text;
  }
}

TEST(ProcessLimits, FollowTheAffinityOfTheCallingThread) {
  static ProcessLimits before;
  read_process_limits(before);
  ASSERT_TRUE(before.affinity_known);
  ASSERT_GT(before.affinity.count(), 0u);
  EXPECT_EQ(before.affinity.count(),
            static_cast<std::uint32_t>(std::thread::hardware_concurrency()));
  std::uint32_t last = 0;
  for (std::uint32_t cpu = before.affinity.next(0); cpu < NumberSet::kEnd;
       cpu = before.affinity.next(cpu + 1))
    last = cpu;
  // In a thread of its own, so that the rest of the tests keeps its processors.
  std::thread([last] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    static ProcessLimits limits;
    read_process_limits(limits);
    EXPECT_EQ(limits.affinity.count(), 1u);
    EXPECT_TRUE(limits.affinity.has(last));
    EXPECT_TRUE(limits.cpus.has(last));
    EXPECT_EQ(allowed_processors(Machine(), limits).processors, 1u);
  }).join();
}

/// What the kernel writes behind `key` of /proc/self/status.
std::string status_line(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0) return line.substr(key.size() + 1);
  }
  return "";
}

TEST(ProcessLimits, KnowTheNodesThatTheKernelTells) {
  static ProcessLimits limits;
  read_process_limits(limits);
  const std::string told = status_line("Mems_allowed_list");
  EXPECT_EQ(limits.nodes_known, told != "");
  if (told == "") GTEST_SKIP() << "/proc/self/status has no Mems_allowed_list";
  static NumberSet nodes;
  ASSERT_TRUE(nodes.parse(told.c_str()));
  EXPECT_GT(limits.nodes.count(), 0u);
  EXPECT_EQ(limits.nodes.count(), nodes.count());
  for (std::uint32_t node = nodes.next(0); node < NumberSet::kEnd; node = nodes.next(node + 1))
    EXPECT_TRUE(limits.nodes.has(node)) << node;
}

TEST(ProcessLimits, TellTheTightestMemoryLimitOfTheGroupsThatWeAreIn) {
  constexpr std::uint64_t kLimit = 512u << 20;
  const harness::LimitedCgroup group(kLimit);
  if (!group.made()) GTEST_SKIP() << "no memory control group can be made here";
  static ProcessLimits limits;
  read_process_limits(limits);
  const std::uint64_t tightest = std::min(limits.memory_bytes, kLimit);
  // A process of its own, since nobody leaves a group that goes.
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream(group.folder() + "/cgroup.procs") << getpid() << std::flush;
    read_process_limits(limits);
    _exit(limits.memory_bytes == tightest ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ProcessLimits, AreLaidOverTheMachine) {
  const Snapshot made = made_by_hand();
  const Machine machine(made.bytes());
  static ProcessLimits limits;
  limits.affinity_known = limits.nodes_known = true;
  ASSERT_TRUE(limits.affinity.parse("1-69"));
  ASSERT_TRUE(limits.nodes.parse("3"));
  const AllowedProcessors allowed = allowed_processors(machine, limits);
  EXPECT_EQ(allowed.processors, 3u);
  EXPECT_EQ(allowed.cores, 2u);
  EXPECT_FALSE(node_is_allowed(machine, limits, 0));
  EXPECT_TRUE(node_is_allowed(machine, limits, 1)) << "the kernel's number 3";
  EXPECT_FALSE(node_is_allowed(machine, limits, 2));
  limits.nodes_known = false;
  EXPECT_TRUE(node_is_allowed(machine, limits, 0)) << "nobody knows otherwise";
  ASSERT_TRUE(limits.affinity.parse("68"));
  limits.nodes_known = true;
  EXPECT_EQ(allowed_processors(machine, limits).cores, 1u);
  made.head().origin = Origin::kXml;
  EXPECT_EQ(allowed_processors(machine, limits).cores, 2u) << "of a machine that is made up";
  EXPECT_TRUE(node_is_allowed(machine, limits, 0));
}

}  // namespace
}  // namespace verbatim::topo
