// SPDX-License-Identifier: BSD-2-Clause
//
// Kernel devices that are there and that no provider of this program drives: each provider says
// which it saw, and whose they are, while the list of devices is made; then one line tells of those
// that are nobody's. One thread: the one that makes the list.
//
// As in libibverbs the line is a warning for who asks (IBV_SHOW_WARNINGS), and else at level info:
// most hosts with two kinds of adapters are as their users want them.
#pragma once

#include <cstddef>
#include <span>

namespace verbatim {

struct ProviderTable;

class UnclaimedDevices {
 public:
  /// `folder` is its place in sysfs. `ours`: the provider drives such devices, used or not.
  void saw(const char* name, const char* folder, bool ours) noexcept;
  [[nodiscard]] bool any() const noexcept;
  void tell(std::span<const ProviderTable* const> providers) const noexcept;

 private:
  struct Seen {
    char name[64];
    char folder[128];
    bool driven;
  };
  static constexpr std::size_t kRoom = 16;  // what is beyond is not told of

  Seen seen_[kRoom];
  std::size_t count_ = 0;
};

}  // namespace verbatim
