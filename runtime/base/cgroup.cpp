// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/cgroup.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/proc_text.hpp"

namespace verbatim {

bool parse_cgroup_path(const char* text, const char* controller, char* path,
                       unsigned capacity) noexcept {
  const std::size_t wanted = controller != nullptr ? std::strlen(controller) : 0;
  // Lines "id:controllers:path"; version 2 is "0::path", version 1 names the controller among
  // others.
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
      if (controller == nullptr) {
        ours = first - line == 1 && *line == '0' && second == first + 1;
      } else {
        for (const char* name = first + 1; name < second;) {
          const char* comma = static_cast<const char*>(
              std::memchr(name, ',', static_cast<std::size_t>(second - name)));
          const char* const name_end = comma != nullptr ? comma : second;
          ours = ours || (static_cast<std::size_t>(name_end - name) == wanted &&
                          std::memcmp(name, controller, wanted) == 0);
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

std::uint64_t read_cgroup_number(const char* directory, const char* name,
                                 std::uint64_t fallback) noexcept {
  char path[PATH_MAX];
  char text[64];
  const int length = std::snprintf(path, sizeof path, "%s/%s", directory, name);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return fallback;
  if (!read_proc_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return fallback;
  return std::strtoull(text, nullptr, 10);
}

bool CgroupWalk::begin(const char* controller, bool version_2) noexcept {
  char text[4096];
  char path[PATH_MAX];
  if (!read_proc_text("/proc/self/cgroup", text, sizeof text)) return false;
  // Inside a container without its own cgroup namespace the path is the host's and does not exist
  // here: the walk then ends at the mount's root, which is the container's own cgroup.
  if (!parse_cgroup_path(text, version_2 ? nullptr : controller, path, sizeof path)) return false;
  const int mount =
      version_2 ? std::snprintf(directory_, sizeof directory_, "/sys/fs/cgroup")
                : std::snprintf(directory_, sizeof directory_, "/sys/fs/cgroup/%s", controller);
  mount_length_ = static_cast<unsigned>(mount);
  const std::size_t length = std::strlen(path);
  if (mount_length_ + length >= sizeof directory_) return false;
  std::memcpy(directory_ + mount_length_, path, length + 1);
  return true;
}

bool CgroupWalk::up() noexcept {
  char* const slash = std::strrchr(directory_, '/');
  if (slash == nullptr || slash < directory_ + mount_length_) return false;
  *slash = '\0';
  return true;
}

}  // namespace verbatim
