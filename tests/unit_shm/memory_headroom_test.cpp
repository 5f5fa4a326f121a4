// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/memory_headroom.hpp"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/cgroup.hpp"
#include "runtime/memory/arena.hpp"
#include "tests/support/child.hpp"
#include "tests/support/limited_cgroup.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim {
namespace {

TEST(MemoryHeadroom, FindsTheCgroupOfEitherVersion) {
  constexpr const char* kText =
      "11:cpu,cpuacct:/a\n"
      "7:hugetlb,memory:/user.slice/x\n"
      "4:memoryish:/wrong\n"
      "0::/init.scope/y\n";
  char path[64];
  ASSERT_TRUE(parse_cgroup_path(kText, nullptr, path, sizeof path));
  EXPECT_STREQ(path, "/init.scope/y");
  ASSERT_TRUE(parse_cgroup_path(kText, "memory", path, sizeof path));
  EXPECT_STREQ(path, "/user.slice/x");
  ASSERT_TRUE(parse_cgroup_path("0::/\n", nullptr, path, sizeof path));
  EXPECT_STREQ(path, "");
  EXPECT_FALSE(parse_cgroup_path("0::/\n", "memory", path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("", nullptr, path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("0", nullptr, path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("0::/longer-than-fits\n", nullptr, path, 8));
}

class CgroupFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/vbt-cgroup-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::string folder_;
};

TEST_F(CgroupFiles, RoomIsTheLimitLessWhatCannotBeDropped) {
  write("memory.max", "1000000\n");
  write("memory.current", "900000\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), true), 100000u);
  write("memory.stat", "anon 1\ninactive_file 200000\nactive_file 50000\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), true), 350000u);
}

TEST_F(CgroupFiles, VersionOneHasItsOwnNames) {
  write("memory.limit_in_bytes", "5000\n");
  write("memory.usage_in_bytes", "6000\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), false), 0u);
  write("memory.stat", "inactive_file 1\ntotal_inactive_file 3000\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), false), 2000u);
  write("memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), false), ~std::uint64_t{0});
}

TEST_F(CgroupFiles, NoLimitAndNoFilesMeanRoom) {
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), true), ~std::uint64_t{0});
  write("memory.max", "max\n");
  EXPECT_EQ(cgroup_headroom(folder_.c_str(), true), ~std::uint64_t{0});
}

TEST(MemoryHeadroom, MoreThanTheMachineHasIsRefusedWithTheReason) {
  const harness::AllowedLog expected("needs");
  EXPECT_EQ(check_memory_headroom(std::uint64_t{1} << 50, "a test"), ENOMEM);
  EXPECT_EQ(check_memory_headroom(4096, "a test"), 0);
}

/// Joins the cgroup and takes shared memory until there is no more, in large and in small pieces.
VBT_ROLE(greedy) {
  const auto folder = control.receive_value<std::string>();
  {
    std::ofstream procs(folder + "/cgroup.procs");
    procs << getpid();
  }
  int error = 0;
  std::uint64_t taken = 0;
  for (const std::size_t bytes : {std::size_t{8} << 20, std::size_t{100} << 10}) {
    for (error = 0; error == 0; taken += bytes) {
      auto* const memory = static_cast<unsigned char*>(alloc_shared(bytes, error));
      if (memory == nullptr) break;
      std::memset(memory, 1, bytes);
    }
  }
  control.send_value(static_cast<std::int32_t>(error));
  control.send_value(taken);
  return 0;
}

TEST(MemoryHeadroom, AFullCgroupIsAnErrorAndKillsNobody) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer's shadow memory fills the cgroup faster than we do";
#endif
  const harness::AllowedLog expected("raise its memory limit");
  constexpr std::uint64_t kLimit = 64u << 20;
  const harness::LimitedCgroup cgroup(kLimit);
  if (!cgroup.made()) GTEST_SKIP() << "no memory cgroup may be made here";
  harness::Child child("greedy");
  child.control().send_value(cgroup.folder());
  EXPECT_EQ(child.control().receive_value<std::int32_t>(), ENOMEM);
  EXPECT_GT(child.control().receive_value<std::uint64_t>(), kLimit / 2);
  EXPECT_EQ(child.wait().exit_status, 0);
}

}  // namespace
}  // namespace verbatim
