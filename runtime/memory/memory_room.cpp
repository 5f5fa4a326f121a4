// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/memory_room.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/memory/proc_text.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
// Version 1 writes "no limit" as the largest page multiple; anything of that order is no limit.
constexpr std::uint64_t kNoLimitFrom = std::uint64_t{1} << 60;

/// The first number of `directory/name`; `fallback` for "max", nonsense and a missing file.
std::uint64_t read_number(const char* directory, const char* name,
                          std::uint64_t fallback) noexcept {
  char path[PATH_MAX];
  char text[64];
  const int length = std::snprintf(path, sizeof path, "%s/%s", directory, name);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return fallback;
  if (!read_proc_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return fallback;
  return std::strtoull(text, nullptr, 10);
}

/// The number after `key` at the start of a line ("inactive_file 4096", "MemFree:  12 kB").
std::uint64_t number_after(const char* text, const char* key) noexcept {
  const std::size_t length = std::strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (std::strncmp(line, key, length) == 0) return std::strtoull(line + length, nullptr, 10);
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return 0;
}

struct Tightest {
  std::uint64_t room = kUnlimited;
  char where[PATH_MAX] = "";
};

/// The cgroup and its ancestors: the tightest limit counts.
void look_up_the_tree(const char* mount, const char* path, bool version_2,
                      Tightest& tightest) noexcept {
  char directory[PATH_MAX];
  const int length = std::snprintf(directory, sizeof directory, "%s%s", mount, path);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof directory) return;
  const std::size_t mount_length = std::strlen(mount);
  for (;;) {
    const std::uint64_t room = cgroup_room(directory, version_2);
    if (room < tightest.room) {
      tightest.room = room;
      std::memcpy(tightest.where, directory, sizeof directory);
    }
    char* slash = std::strrchr(directory, '/');
    if (slash == nullptr || static_cast<std::size_t>(slash - directory) < mount_length) return;
    *slash = '\0';
  }
}

Tightest tightest_cgroup() noexcept {
  Tightest tightest;
  char text[4096];
  char path[PATH_MAX];
  if (!read_proc_text("/proc/self/cgroup", text, sizeof text)) return tightest;
  // Inside a container without its own cgroup namespace the path is the host's and does not exist
  // here: the walk then ends at the mount's root, which is the container's own cgroup.
  if (parse_cgroup_path(text, true, path, sizeof path)) {
    look_up_the_tree("/sys/fs/cgroup", path, true, tightest);
  }
  if (parse_cgroup_path(text, false, path, sizeof path)) {
    look_up_the_tree("/sys/fs/cgroup/memory", path, false, tightest);
  }
  return tightest;
}

}  // namespace

bool parse_cgroup_path(const char* text, bool version_2, char* path, unsigned capacity) noexcept {
  // Lines "id:controllers:path"; version 2 is "0::path", version 1 names "memory" among the
  // controllers.
  for (const char* line = text; line != nullptr && *line != '\0';) {
    const char* end = std::strchr(line, '\n');
    const char* const line_end = end != nullptr ? end : line + std::strlen(line);
    const char* const first =
        static_cast<const char*>(std::memchr(line, ':', static_cast<std::size_t>(line_end - line)));
    const char* const second =
        first == nullptr ? nullptr
                         : static_cast<const char*>(std::memchr(
                               first + 1, ':', static_cast<std::size_t>(line_end - first - 1)));
    if (second != nullptr) {
      bool ours = false;
      if (version_2) {
        ours = first - line == 1 && *line == '0' && second == first + 1;
      } else {
        for (const char* name = first + 1; name < second;) {
          const char* comma = static_cast<const char*>(
              std::memchr(name, ',', static_cast<std::size_t>(second - name)));
          const char* const name_end = comma != nullptr ? comma : second;
          ours = ours || (name_end - name == 6 && std::memcmp(name, "memory", 6) == 0);
          name = name_end + 1;
        }
      }
      if (ours) {
        const auto length = static_cast<std::size_t>(line_end - second - 1);
        if (length >= capacity) return false;
        std::memcpy(path, second + 1, length);
        path[length] = '\0';
        if (length == 1) path[0] = '\0';  // "/": the mount itself
        return true;
      }
    }
    line = end != nullptr ? end + 1 : nullptr;
  }
  return false;
}

std::uint64_t cgroup_room(const char* directory, bool version_2) noexcept {
  const std::uint64_t limit =
      read_number(directory, version_2 ? "memory.max" : "memory.limit_in_bytes", kUnlimited);
  if (limit >= kNoLimitFrom) return kUnlimited;
  std::uint64_t used =
      read_number(directory, version_2 ? "memory.current" : "memory.usage_in_bytes", 0);
  char path[PATH_MAX];
  char text[8192];
  const int length = std::snprintf(path, sizeof path, "%s/memory.stat", directory);
  if (length > 0 && static_cast<std::size_t>(length) < sizeof path &&
      read_proc_text(path, text, sizeof text)) {
    const std::uint64_t cache =
        number_after(text, version_2 ? "inactive_file " : "total_inactive_file ") +
        number_after(text, version_2 ? "active_file " : "total_active_file ");
    used = used > cache ? used - cache : 0;
  }
  return limit > used ? limit - used : 0;
}

int check_memory_room(std::uint64_t bytes, const char* what) noexcept {
  const Tightest cgroup = tightest_cgroup();
  // Callers ask once per MiB, and what is backed needs page tables: the last of the room stays
  // unused.
  constexpr std::uint64_t kMargin = 2u << 20;
  const std::uint64_t usable = cgroup.room > kMargin ? cgroup.room - kMargin : 0;
  if (bytes > usable) {
    log_error("%s needs %llu KiB, the memory cgroup %s can spare %llu KiB: raise its memory limit",
              what, static_cast<unsigned long long>(bytes >> 10), cgroup.where,
              static_cast<unsigned long long>(usable >> 10));
    return ENOMEM;
  }
  char text[4096];
  if (!read_proc_text("/proc/meminfo", text, sizeof text)) return 0;
  const std::uint64_t available =
      number_after(text, "MemAvailable:") + number_after(text, "SwapFree:");
  if (available != 0 && (bytes >> 10) > available) {
    log_error("%s needs %llu KiB, the machine has %llu KiB of memory and swap left", what,
              static_cast<unsigned long long>(bytes >> 10),
              static_cast<unsigned long long>(available));
    return ENOMEM;
  }
  return 0;
}

}  // namespace verbatim
