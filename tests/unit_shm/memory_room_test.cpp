// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/memory_room.hpp"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/log_watch.hpp"

namespace verbatim {
namespace {

TEST(MemoryRoom, FindsTheCgroupOfEitherVersion) {
  constexpr const char* kText =
      "11:cpu,cpuacct:/a\n"
      "7:hugetlb,memory:/user.slice/x\n"
      "4:memoryish:/wrong\n"
      "0::/init.scope/y\n";
  char path[64];
  ASSERT_TRUE(parse_cgroup_path(kText, true, path, sizeof path));
  EXPECT_STREQ(path, "/init.scope/y");
  ASSERT_TRUE(parse_cgroup_path(kText, false, path, sizeof path));
  EXPECT_STREQ(path, "/user.slice/x");
  ASSERT_TRUE(parse_cgroup_path("0::/\n", true, path, sizeof path));
  EXPECT_STREQ(path, "");
  EXPECT_FALSE(parse_cgroup_path("0::/\n", false, path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("", true, path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("0", true, path, sizeof path));
  EXPECT_FALSE(parse_cgroup_path("0::/longer-than-fits\n", true, path, 8));
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
  EXPECT_EQ(cgroup_room(folder_.c_str(), true), 100000u);
  write("memory.stat", "anon 1\ninactive_file 200000\nactive_file 50000\n");
  EXPECT_EQ(cgroup_room(folder_.c_str(), true), 350000u);
}

TEST_F(CgroupFiles, VersionOneHasItsOwnNames) {
  write("memory.limit_in_bytes", "5000\n");
  write("memory.usage_in_bytes", "6000\n");
  EXPECT_EQ(cgroup_room(folder_.c_str(), false), 0u);
  write("memory.stat", "inactive_file 1\ntotal_inactive_file 3000\n");
  EXPECT_EQ(cgroup_room(folder_.c_str(), false), 2000u);
  write("memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_room(folder_.c_str(), false), ~std::uint64_t{0});
}

TEST_F(CgroupFiles, NoLimitAndNoFilesMeanRoom) {
  EXPECT_EQ(cgroup_room(folder_.c_str(), true), ~std::uint64_t{0});
  write("memory.max", "max\n");
  EXPECT_EQ(cgroup_room(folder_.c_str(), true), ~std::uint64_t{0});
}

TEST(MemoryRoom, MoreThanTheMachineHasIsRefusedWithTheReason) {
  const harness::AllowedLog expected("needs");
  EXPECT_EQ(check_memory_room(std::uint64_t{1} << 50, "a test"), ENOMEM);
  EXPECT_EQ(check_memory_room(4096, "a test"), 0);
}

}  // namespace
}  // namespace verbatim
