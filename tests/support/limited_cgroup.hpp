// SPDX-License-Identifier: BSD-2-Clause
//
// A memory control group of a test's own, with a limit, below the one that the test is in: made
// where that is permitted, else not. Processes join by writing their number into its cgroup.procs;
// it goes with the last of them. One thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/base/cgroup.hpp"
#include "tests/support/deadline.hpp"

namespace verbatim::harness {

class LimitedCgroup {
 public:
  explicit LimitedCgroup(std::uint64_t limit) {
    std::ifstream file("/proc/self/cgroup");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    char path[4096];
    for (const bool version_2 : {false, true}) {
      if (!parse_cgroup_path(text.c_str(), version_2 ? nullptr : "memory", path, sizeof path))
        continue;
      folder_ = (version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + std::string(path) +
                "/vbt-" + std::to_string(getpid());
      if (mkdir(folder_.c_str(), 0755) != 0) continue;
      const char* const name = version_2 ? "memory.max" : "memory.limit_in_bytes";
      std::ofstream(folder_ + '/' + name) << limit;
      if (read_cgroup_number(folder_.c_str(), name, ~std::uint64_t{0}) == limit) return;
      rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~LimitedCgroup() {
    // The processes in it have ended; the kernel takes its time to notice.
    if (!folder_.empty()) (void)wait_until([&] { return rmdir(folder_.c_str()) == 0; }, 2000);
  }
  LimitedCgroup(const LimitedCgroup&) = delete;
  LimitedCgroup& operator=(const LimitedCgroup&) = delete;

  bool made() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace verbatim::harness
