// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/doctor_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "runtime/base/cgroup.hpp"
#include "runtime/base/sysfs.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::cli {
namespace {

constexpr std::size_t kMostText = 1 << 20;
constexpr std::size_t kMostNames = 1024;

}  // namespace

HostFiles::HostFiles(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::string HostFiles::sysfs(const std::string& file) const {
  return (sysfs_root_is_chosen() ? std::string(sysfs_root()) : path("/sys")) + file;
}

std::optional<std::string> HostFiles::text(const std::string& path) {
  // Without O_NONBLOCK a pipe in the place of a file would hold us for ever.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return std::nullopt;
  std::string all;
  char part[4096];
  for (ssize_t got; all.size() < kMostText && (got = ::read(fd.get(), part, sizeof part)) > 0;)
    all.append(part, static_cast<std::size_t>(got));
  if (all.empty()) return std::nullopt;
  return all;
}

std::optional<std::string> HostFiles::line(const std::string& path) {
  std::optional<std::string> all = text(path);
  if (all) all->resize(std::min(all->find('\n'), std::min<std::size_t>(all->size(), 256)));
  return all;
}

std::optional<std::uint64_t> HostFiles::number(const std::string& path) {
  const std::optional<std::string> all = line(path);
  if (!all) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = all->data() + all->size();
  const auto [stop, error] = std::from_chars(all->data(), end, value);
  if (error != std::errc() || (stop != end && *stop != ' ' && *stop != '\t')) return std::nullopt;
  return value;
}

std::vector<std::string> HostFiles::names(const std::string& folder) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  while (entries != nullptr && found.size() < kMostNames) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> HostFiles::link(const std::string& path) {
  char target[256];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length <= 0) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(length));
}

std::vector<std::string> group_folders(const HostFiles& files, const char* controller,
                                       bool version_2) {
  std::vector<std::string> folders;
  const std::optional<std::string> groups = HostFiles::text(files.path("/proc/self/cgroup"));
  char path[PATH_MAX];
  if (!groups ||
      !parse_cgroup_path(groups->c_str(), version_2 ? nullptr : controller, path, sizeof path))
    return folders;
  const std::string mount =
      files.path(version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + std::string(controller));
  // Where the path is the host's (no cgroup namespace) only the last, the mount itself, is there.
  for (std::string below = path;; below.resize(below.rfind('/'))) {
    folders.push_back(mount + below);
    if (below.rfind('/') == std::string::npos) break;
  }
  return folders;
}

std::optional<GroupLimit> tightest_limit(const HostFiles& files, const GroupFiles& names) {
  // Version 1 writes "no limit" as the largest multiple of a page.
  constexpr std::uint64_t kNoLimitFrom = std::uint64_t{1} << 60;
  std::optional<GroupLimit> tightest;
  for (const bool version_2 : {true, false}) {
    for (const std::string& folder : group_folders(files, names.controller, version_2)) {
      const std::string file = folder + '/' + (version_2 ? names.limit_v2 : names.limit_v1);
      const std::optional<std::uint64_t> limit = HostFiles::number(file);
      if (!limit || *limit >= kNoLimitFrom) continue;
      const std::uint64_t used =
          HostFiles::number(folder + '/' + (version_2 ? names.used_v2 : names.used_v1)).value_or(0);
      // What is left counts: a wide group may be fuller than a narrow one in it.
      const auto left = [](std::uint64_t of, std::uint64_t gone) {
        return of > gone ? of - gone : 0;
      };
      if (!tightest || left(*limit, used) < left(tightest->limit, tightest->used))
        tightest = GroupLimit{*limit, used, file};
    }
  }
  return tightest;
}

std::optional<std::string> field(const std::string& text, const std::string& name) {
  const std::string head = name + ':';
  std::size_t at = text.rfind(head, 0) == 0 ? 0 : text.find('\n' + head);
  if (at == std::string::npos) return std::nullopt;
  at = text.find(':', at) + 1;
  at = std::min(text.find_first_not_of(" \t", at), text.size());
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace verbatim::cli
