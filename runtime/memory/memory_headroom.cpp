// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/memory_headroom.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/cgroup.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
// Version 1 writes "no limit" as the largest page multiple; anything of that order is no limit.
constexpr std::uint64_t kNoLimitFrom = std::uint64_t{1} << 60;

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

/// Our cgroup and its ancestors: the tightest limit counts.
Tightest tightest_cgroup() noexcept {
  Tightest tightest;
  for (const bool version_2 : {true, false}) {
    CgroupWalk walk;
    if (!walk.begin("memory", version_2)) continue;
    do {
      const std::uint64_t room = cgroup_headroom(walk.directory(), version_2);
      if (room < tightest.room) {
        tightest.room = room;
        std::memcpy(tightest.where, walk.directory(), std::strlen(walk.directory()) + 1);
      }
    } while (walk.up());
  }
  return tightest;
}

}  // namespace

std::uint64_t cgroup_headroom(const char* directory, bool version_2) noexcept {
  const std::uint64_t limit =
      read_cgroup_number(directory, version_2 ? "memory.max" : "memory.limit_in_bytes", kUnlimited);
  if (limit >= kNoLimitFrom) return kUnlimited;
  std::uint64_t used =
      read_cgroup_number(directory, version_2 ? "memory.current" : "memory.usage_in_bytes", 0);
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

int check_memory_headroom(std::uint64_t bytes, const char* what) noexcept {
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
