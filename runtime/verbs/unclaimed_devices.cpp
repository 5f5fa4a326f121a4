// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/unclaimed_devices.hpp"

#include <cstdio>
#include <cstring>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/provider_names.hpp"

namespace verbatim {

void UnclaimedDevices::saw(const char* name, const char* folder, bool ours) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (std::strcmp(seen_[i].name, name) != 0) continue;
    seen_[i].driven = seen_[i].driven || ours;
    return;
  }
  if (count_ == kRoom) return;
  Seen& seen = seen_[count_++];
  std::snprintf(seen.name, sizeof seen.name, "%s", name);
  std::snprintf(seen.folder, sizeof seen.folder, "%s", folder);
  seen.driven = ours;
}

bool UnclaimedDevices::any() const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!seen_[i].driven) return true;
  }
  return false;
}

void UnclaimedDevices::tell(std::span<const ProviderTable* const> providers) const noexcept {
  constexpr std::size_t kLongest = 64;
  const bool wanted = environment_text("IBV_SHOW_WARNINGS", kLongest) != nullptr;
  char names[128];
  print_provider_names(names, providers);
  for (std::size_t i = 0; i < count_; ++i) {
    if (seen_[i].driven) continue;
    (wanted ? log_warn : log_info)(
        "no userspace device-specific driver found for %s (%s): the providers of this program are "
        "%s; use its network interface through Soft-RoCE ('rdma link add rxe0 type rxe netdev "
        "...'), or link a library that drives it",
        seen_[i].folder, seen_[i].name, names);
  }
}

}  // namespace verbatim
