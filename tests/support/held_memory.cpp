// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/held_memory.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

namespace verbatim::harness {

static std::int64_t kib_of(const std::string& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;) {
    std::int64_t value;
    if (word == name && lines >> value) return value;
  }
  return 0;
}

HeldMemory held_by(pid_t process) {
  const std::string home = "/proc/" + std::to_string(process);
  std::map<ino_t, std::int64_t> files;
  DIR* const folder = ::opendir((home + "/fd").c_str());
  if (folder == nullptr) return {};
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string at = home + "/fd/" + entry->d_name;
    char name[256] = {};
    struct stat status {};
    if (::readlink(at.c_str(), name, sizeof name - 1) < 0 ||
        std::string(name).find("memfd:verbatim-") == std::string::npos ||
        ::stat(at.c_str(), &status) != 0)
      continue;
    files[status.st_ino] = std::int64_t{status.st_blocks} * 512;
  }
  ::closedir(folder);
  HeldMemory held;
  for (const auto& [inode, bytes] : files) held.shared += bytes;
  held.own = kib_of(home + "/status", "RssAnon:") << 10;
  return held;
}

}  // namespace verbatim::harness
