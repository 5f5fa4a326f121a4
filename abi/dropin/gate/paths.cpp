// SPDX-License-Identifier: BSD-2-Clause
#include "abi/dropin/gate/paths.hpp"

#include <string_view>

namespace verbatim::gate {
namespace {

/// Takes `prefix` away where `text` begins with it.
bool begins(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

Place place_of(const char* path) noexcept {
  if (path == nullptr || path[0] != '/') return Place::kElsewhere;
  std::string_view rest = path;
  if (begins(rest, "/dev/infiniband/")) {
    if (rest == "rdma_cm") return Place::kConnectionManager;
    const bool is_shm = begins(rest, "shm") && !rest.empty() &&
                        rest.find_first_not_of("0123456789") == std::string_view::npos;
    return is_shm ? Place::kDeviceNode : Place::kElsewhere;
  }
  if (begins(rest, "/sys/class/infiniband") && (rest.empty() || rest == "/"))
    return Place::kClassFolder;
  return Place::kElsewhere;
}

}  // namespace verbatim::gate
