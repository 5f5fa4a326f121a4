// SPDX-License-Identifier: BSD-2-Clause
//
// The control groups that this process is in, from its own up to the mount: a limit of any of them
// counts. Version 2 has one tree, version 1 one for each controller. Any thread; no allocation;
// reads /proc/self/cgroup. Spec: cgroups(7).
#pragma once

#include <limits.h>

#include <cstdint>

namespace verbatim {

/// Finds a path in the text of /proc/self/cgroup and copies it to `path`: of version 2 with a
/// `controller` of null, else of version 1 ("memory"). "" stands for the mount itself. False if
/// there is none.
[[nodiscard]] bool parse_cgroup_path(const char* text, const char* controller, char* path,
                                     unsigned capacity) noexcept;

///   CgroupWalk walk;
///   if (walk.begin("memory", true)) do { ... walk.directory() ... } while (walk.up());
class CgroupWalk {
 public:
  /// Goes to our own group. False: there is none of that version.
  [[nodiscard]] bool begin(const char* controller, bool version_2) noexcept;
  /// Goes to the parent. False: the mount was the last.
  [[nodiscard]] bool up() noexcept;
  [[nodiscard]] const char* directory() const noexcept { return directory_; }

 private:
  unsigned mount_length_ = 0;
  char directory_[PATH_MAX] = "";
};

/// The first number of `directory/name`; `fallback` for "max", nonsense and a missing file.
[[nodiscard]] std::uint64_t read_cgroup_number(const char* directory, const char* name,
                                               std::uint64_t fallback) noexcept;

}  // namespace verbatim
