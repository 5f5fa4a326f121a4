// SPDX-License-Identifier: BSD-2-Clause
#include "perf/footprint/memory_use.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace verbatim::perf {
namespace {

constexpr const char* kOurOwn = "memfd:verbatim-perf";

bool is_memory_file(const std::string& path) {
  return (path.find("/memfd:") != std::string::npos || path.starts_with("/dev/shm/")) &&
         path.find(kOurOwn) == std::string::npos;
}

std::uint64_t private_and_file_pages(const std::string& folder) {
  std::ifstream status(folder + "/status");
  std::uint64_t bytes = 0;
  bool seen = false;
  for (std::string name; status >> name;) {
    if (name != "RssAnon:" && name != "RssFile:") continue;
    std::uint64_t kilobytes = 0;
    status >> kilobytes;
    bytes += kilobytes * 1024;
    seen = true;
  }
  if (!seen) throw std::runtime_error("no memory figures in " + folder + "/status");
  return bytes;
}

using Files = std::map<std::uint64_t, std::uint64_t>;  // inode -> bytes

// Open files tell what is allocated.
void add_open_files(const std::string& folder, Files& files) {
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat facts {};
    if (gone || !is_memory_file(target) || stat(entry.path().c_str(), &facts) != 0) continue;
    std::uint64_t& bytes = files[facts.st_ino];
    bytes = std::max(bytes, static_cast<std::uint64_t>(facts.st_blocks) * 512);
  }
}

// Files that are mapped but no longer open: what is resident through this process's mappings.
void add_mapped_files(const std::string& folder, Files& files) {
  Files resident;
  std::ifstream smaps(folder + "/smaps");
  std::uint64_t inode = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first.find('-') != std::string::npos && !first.ends_with(':')) {
      std::string permissions, offset, device, path;
      words >> permissions >> offset >> device >> inode >> path;
      if (!is_memory_file(path)) inode = 0;
    } else if (first == "Rss:" && inode != 0) {
      std::uint64_t kilobytes = 0;
      words >> kilobytes;
      resident[inode] += kilobytes * 1024;
    }
  }
  for (const auto& [file, bytes] : resident) files[file] = std::max(files[file], bytes);
}

}  // namespace

MemoryUse memory_use(std::span<const pid_t> pids) {
  MemoryUse use;
  Files files;
  for (const pid_t pid : pids) {
    const std::string folder = "/proc/" + std::to_string(pid);
    use.own_pages += private_and_file_pages(folder);
    add_open_files(folder, files);
    add_mapped_files(folder, files);
  }
  for (const auto& [file, bytes] : files) use.shared += bytes;
  return use;
}

}  // namespace verbatim::perf
